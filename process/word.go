package process

import (
	"runtime"
	"sync/atomic"
)

// The state of processes, queues and the stack of the idle is in words of these types. The tests put a file of their own
// in the place of this one, in which each step of one thread is a choice of the tester, and what else comes from
// sync/atomic likewise: see interleave_test.go.
type (
	word    = atomic.Uint32
	counter = atomic.Int64
)

// spins is how often who meets a lock looks again before it lets others run: what is done under a lock here takes
// some nanoseconds, unless its thread has just been taken away, or lists all there are, as for an order.
const spins = 100

// patience is called between two looks at something that another thread is about to let go.
func patience(looks int) {
	if looks%spins == spins-1 {
		runtime.Gosched()
	}
}
