package act

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Waker is the right to make a task ready that waits. It is good for one turn: taken in turn k it
// works until turn k+1 begins. Fired while turn k still runs it leaves a permit, so that the Wait
// about to be answered returns at once; fired later than that it does nothing. So an action that
// waits for "data or a time-out" hands out two and need not take back the other.
//
// Whoever wakes more than once (a connection, a mailbox) keeps its own state and a place for the
// latest Waker, which the action overwrites before every Wait. Turns without a cause happen: an
// action looks again at what it waits for.
//
// The zero Waker does nothing. A Waker is for the scheduler's own thread; see Remote.
type Waker struct {
	t    *Task
	turn uint64
}

// Waker returns this turn's Waker.
func (t *Task) Waker() Waker {
	t.s.touch()
	t.flags |= attended
	return Waker{t, t.turn}
}

// Wake makes the task ready, if this is still the turn in which w was taken or the wait after it.
func (w Waker) Wake() {
	if w.t == nil {
		return
	}
	w.t.s.touch()
	if w.t.turn == w.turn {
		w.t.wake()
	}
}

// Remote returns the same right for other goroutines. It may be made on the scheduler's thread only.
func (w Waker) Remote() Remote {
	if w.t == nil {
		return Remote{}
	}
	w.t.s.touch()
	return Remote{&w.t.more().remote, w.turn}
}

// Remote is a Waker for any goroutine. The request travels to the task's own thread and is judged
// there. However often it is made in one turn of the task, it travels once. The zero Remote does
// nothing.
type Remote struct {
	r    *remote
	turn uint64
}

// Wake makes the task ready as Waker.Wake does. It never blocks and is never refused; after the
// scheduler's Close it does nothing.
func (r Remote) Wake() {
	if r.r != nil && r.r.request(r.turn) {
		r.r.task.s.deliver(&r.r.node)
	}
}

// remote carries requests from other goroutines to a task. It stays with its Task for good: a stale
// Remote finds a higher turn there, never somebody else's memory.
type remote struct {
	node inbox.Node[recipient]
	task *Task
	want atomic.Uint64 // the latest turn asked for, shifted left by one; the lowest bit: node is queued
}

// request notes that turn is to be woken and reports whether node must be queued for it. A turn that
// was asked for before, or that a later one has overtaken, needs nothing more.
func (r *remote) request(turn uint64) bool {
	for {
		old := r.want.Load()
		if old>>1 >= turn {
			return false
		}
		if r.want.CompareAndSwap(old, turn<<1|1) {
			return old&1 == 0
		}
	}
}

func (r *remote) receive(*Scheduler) {
	turn := r.want.And(^uint64(1)) >> 1
	if r.task.turn == turn {
		r.task.wake()
	}
}

// Bell is where somebody who wakes a task from other goroutines, more than once, keeps its latest Waker:
// a mailbox, say. The task sets it before every Wait and then looks once more whether there is something
// to wait for; the others make that something true and then ring. The zero Bell wakes nobody.
type Bell struct {
	version atomic.Uint32 // odd while it is being set
	r       atomic.Pointer[remote]
	turn    atomic.Uint64
}

// Set keeps w instead of what was there. One scheduler's thread at a time.
func (b *Bell) Set(w Waker) {
	r := w.Remote()
	b.version.Add(1)
	b.r.Store(r.r)
	b.turn.Store(r.turn)
	b.version.Add(1)
}

// Ring wakes the task whose Waker was set last. Any goroutine; it never blocks. A Ring that meets a Set
// may leave it: whoever sets looks once more afterwards.
func (b *Bell) Ring() {
	before := b.version.Load()
	r := Remote{b.r.Load(), b.turn.Load()}
	if before&1 == 0 && b.version.Load() == before {
		r.Wake()
	}
}
