package sim

import (
	"math/rand/v2"
	"time"
)

// purpose names a stream of draws. One more draw in a stream does not change the others, so a scenario keeps its
// requests when a fault is switched off.
type purpose uint32

const (
	schedule purpose = iota // what runs next, and for how many turns
	network                 // latencies, sizes, choices of the system
	faults                  // which faults happen, and how
	workload                // draws of clients and scenarios
	purposes
)

// dice is a stream of draws.
type dice struct{ pcg rand.PCG }

func newDice(seed uint64, p purpose) dice {
	return dice{*rand.NewPCG(seed, uint64(p)+1)}
}

// Uint64 draws 64 bits: a dice is a rand.Source.
func (d *dice) Uint64() uint64 { return d.pcg.Uint64() }

// draw draws a number below n. The bias is below n/2⁶⁴.
func (d *dice) draw(n uint64) uint64 { return d.pcg.Uint64() % n }

// below draws from 0 to n-1.
func (d *dice) below(n int) int { return int(d.draw(uint64(n))) }

// choice draws from 0 to n-1. If there is no choice, it draws nothing and returns 0.
func (d *dice) choice(n int) int {
	if n < 2 {
		return 0
	}
	return d.below(n)
}

// between draws from lo to hi, both included.
func (d *dice) between(lo, hi int) int { return lo + d.below(hi-lo+1) }

// duration draws from lo to hi, both included, in nanoseconds.
func (d *dice) duration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.draw(uint64(hi-lo)+1))
}

// often is the scale of a weight.
const often = 1 << 16

// happens draws whether something of weight w happens. 0 draws nothing.
func (d *dice) happens(w int) bool {
	return w > 0 && d.below(often) < w
}
