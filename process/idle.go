package process

import (
	"slices"

	"github.com/daimon-go/daimon/act"
)

// idleStack holds the runners that have no process to run; their schedulers may be busy with tasks. A thread that has made
// a process ready for another runner wakes the one whose scheduler sleeps and which became idle last, since its caches are
// the warmest.
//
// A runner is on the stack from its check of all queues, which were empty, until something wakes it. It checks once
// more when it is on the stack: it finds processes that were queued before it could be seen here, and processes that
// are queued later wake it.
type idleStack struct {
	word    word // the length, shifted left by one, and locked
	stack   []*runner
	changes uint64 // pushes, pops and removals
}

func (x *idleStack) unlock() { x.word.Store(uint32(len(x.stack)) << 1) }

// any reports whether there is a runner, or was a moment ago.
func (x *idleStack) any() bool { return x.word.Load() > 1 }

// snapshot is the state of the stack. Two are equal only if nothing was pushed or taken between them.
type snapshot struct {
	idle    int
	changes uint64
}

func (x *idleStack) snapshot() snapshot {
	lock(&x.word)
	defer x.unlock()
	return snapshot{len(x.stack), x.changes}
}

func (x *idleStack) push(r *runner) (now snapshot) {
	lock(&x.word)
	defer x.unlock()
	x.stack = append(x.stack, r)
	r.idle.Store(1)
	x.changes++
	return snapshot{len(x.stack), x.changes}
}

// rests reports whether no turn on s delays processes that come from elsewhere. Interleavings replace it.
var rests = func(s *act.Scheduler) bool { return s.Internals().Rests() }

// pop takes off a runner, which the caller then wakes: the one pushed last of the runners whose schedulers rest, or
// else of all. It returns nil if there is none.
func (x *idleStack) pop() *runner {
	if !x.any() {
		return nil
	}
	lock(&x.word)
	defer x.unlock()
	for i, r := range slices.Backward(x.stack) {
		if rests(r.s) {
			return x.takeOff(i)
		}
	}
	if len(x.stack) == 0 {
		return nil
	}
	return x.takeOff(len(x.stack) - 1)
}

// wakeOne wakes a runner, if there is one.
func (x *idleStack) wakeOne() {
	if r := x.pop(); r != nil {
		r.wake()
	}
}

// remove takes r off, if it is there.
func (x *idleStack) remove(r *runner) {
	if r.idle.Load() == 0 {
		return
	}
	lock(&x.word)
	defer x.unlock()
	for i, other := range x.stack {
		if other == r {
			x.takeOff(i)
			return
		}
	}
}

func (x *idleStack) takeOff(i int) *runner {
	r := x.stack[i]
	x.stack = append(x.stack[:i], x.stack[i+1:]...)
	r.idle.Store(0)
	x.changes++
	return r
}
