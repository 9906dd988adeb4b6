package process

import (
	"fmt"
	"math/rand/v2"
)

// chooser decides how a run continues.
type chooser interface {
	// choose returns the index of one of fork.to.
	choose(f fork) int
	// mayPreempt reports whether a preemption would be chosen at all.
	mayPreempt() bool
	// step reports a step: its thread, the number of its address, and whether it has written.
	step(by, at int, wrote bool)
	// numberOf returns a number for a key, the same in all runs; 0 if it has none.
	numberOf(k key) int
}

// fork is a choice between threads, or of the world.
type fork struct {
	from       int // the thread at the fork; -1: none, or this is not a choice between threads
	to         []*thread
	preemption bool // the first of to is the thread at the fork, and could continue
}

// key names an address.
type key struct {
	of     string
	index  int
	offset uintptr
}

// search is a chooser that tries, run by run, all schedules with a bounded number of preemptions. It skips a schedule
// that has the same effect as another.
//
// A thread can be preempted before a step or, as another schedule, after it. If what the other threads do until it
// continues has no conflict with the step, the two schedules have the same effect.
type search struct {
	bound int
	taken []*branch
	at    int
	spent int

	stepping *branch    // the fork whose thread takes its step
	waiting  []*episode // the episodes that have not ended
	keys     map[key]int
}

// branch is a fork, and what was tried there.
type branch struct {
	fork
	way      int
	step     accesses   // of the thread, if it continues here
	episodes []*episode // one for each way
	next     *branch    // the fork after step, if that way was tried
}

// episode is what other threads have accessed, in all runs, from a fork until its thread continued.
type episode struct {
	of int
	accesses
}

// accesses are the addresses that were read and written.
type accesses struct {
	read, written [4]uint64
	anything      bool
}

func (x *accesses) add(at int, wrote bool) {
	switch {
	case at == 0 || at >= 256:
		x.anything = true
	case wrote:
		x.written[at/64] |= 1 << (at % 64)
	default:
		x.read[at/64] |= 1 << (at % 64)
	}
}

func (x *accesses) conflicts(y *accesses) bool {
	if x.anything || y.anything {
		return true
	}
	for i := range x.read {
		if x.written[i]&(y.read[i]|y.written[i])|x.read[i]&y.written[i] != 0 {
			return true
		}
	}
	return false
}

func newSearch(bound int) *search { return &search{bound: bound, keys: map[key]int{}} }

func (x *search) mayPreempt() bool { return x.spent < x.bound }

func (x *search) numberOf(k key) int {
	if k.of == "" {
		return 0
	}
	n, ok := x.keys[k]
	if !ok {
		n = len(x.keys) + 1
		x.keys[k] = n
	}
	return n
}

func (x *search) step(by, at int, wrote bool) {
	if b := x.stepping; b != nil && b.from == by {
		b.step.add(at, wrote)
	}
	for i := 0; i < len(x.waiting); i++ {
		if e := x.waiting[i]; e.of != by {
			e.add(at, wrote)
		} else {
			x.waiting = append(x.waiting[:i], x.waiting[i+1:]...)
			i--
		}
	}
}

func (x *search) choose(f fork) int {
	if x.at == len(x.taken) {
		x.taken = append(x.taken, &branch{fork: f, episodes: make([]*episode, len(f.to))})
	}
	b := x.taken[x.at]
	if len(b.to) != len(f.to) || b.preemption != f.preemption || b.from != f.from {
		panic(fmt.Sprintf("the same choices gave %d ways at choice %d, which had %d", len(f.to), x.at, len(b.to)))
	}
	b.to = f.to
	x.at++
	x.stepping = nil
	switch {
	case b.preemption && b.way == 0:
		x.stepping = b
	case b.from >= 0:
		if b.episodes[b.way] == nil {
			b.episodes[b.way] = &episode{of: b.from}
		}
		x.waiting = append(x.waiting, b.episodes[b.way])
	}
	if b.preemption && b.way > 0 {
		x.spent++
	}
	return b.way
}

// rewind goes back to the first fork.
func (x *search) rewind() { x.at, x.spent, x.stepping, x.waiting = 0, 0, nil, nil }

// again goes back to the last fork with a way to try, and reports false if there is none.
func (x *search) again() bool {
	x.rewind()
	for n := len(x.taken) - 1; n >= 0; n-- {
		b := x.taken[n]
		for b.way+1 < len(b.to) {
			if b.way++; !b.redundant() {
				x.taken = x.taken[:n+1]
				return true
			}
		}
		if n == 0 {
			break
		}
		if before := x.taken[n-1]; before.preemption && before.way == 0 && before.from == b.from {
			before.next = b
		}
	}
	return false
}

// redundant reports whether the current way has the same effect as one that was tried.
func (b *branch) redundant() bool {
	if b.next == nil {
		return false
	}
	for i, t := range b.next.to {
		if e := b.next.episodes[i]; t.number == b.to[b.way].number && e != nil && !e.conflicts(&b.step) {
			b.episodes[b.way] = e
			return true
		}
	}
	return false
}

// randomChooser is a chooser that follows a seed.
type randomChooser struct {
	*rand.Rand
	often float64 // the probability of a preemption
}

func newRandomChooser(seed uint64) *randomChooser {
	x := &randomChooser{Rand: rand.New(rand.NewPCG(seed, 7))}
	x.often = []float64{0.5, 0.2, 0.05, 0.02}[x.IntN(4)]
	return x
}

func (x *randomChooser) mayPreempt() bool { return x.Float64() < x.often }

func (x *randomChooser) choose(f fork) int {
	if f.preemption {
		return 1 + x.IntN(len(f.to)-1)
	}
	return x.IntN(len(f.to))
}

func (x *randomChooser) step(int, int, bool) {}
func (x *randomChooser) numberOf(key) int    { return 0 }
