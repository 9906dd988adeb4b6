package netpoll

import (
	"math"
	"sync/atomic"
)

// gate counts the calls that are inside Interrupt. Without it a late Interrupt could write into a descriptor that
// was closed, and whose number the system has since given to a connection. A lock would do
// too, but would park the thread of a scheduler that interrupts another.
//
// Invariant: n >= 0 is open with n inside; n < 0 is closed with n - closed inside. No call enters a
// closed gate, so "closed with none inside" is reached once, by the call that then closes the descriptors.
type gate struct{ n atomic.Int64 }

const closed = math.MinInt64

// enter reports whether the caller is inside and has to leave.
func (g *gate) enter() bool {
	for {
		n := g.n.Load()
		if n < 0 {
			return false
		}
		if g.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave reports whether the caller was the last to leave a closed gate.
func (g *gate) leave() bool { return g.n.Add(-1) == closed }

// close reports whether it was the first to close, and whether no call was inside then.
func (g *gate) close() (first, last bool) {
	for {
		n := g.n.Load()
		if n < 0 {
			return false, false
		}
		if g.n.CompareAndSwap(n, n+closed) {
			return true, n == 0
		}
	}
}

func (g *gate) shut() bool { return g.n.Load() < 0 }
