package act

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Waker makes a waiting task ready. It is valid for one turn: taken in turn k, it works until turn k+1 begins. If it is
// used while turn k still runs, and that turn ends with Wait, the task is ready again at once. If it is used after turn
// k+1 has begun, it does nothing. So an action that waits for data or a time-out gives out two Wakers and need not take
// back the other.
//
// Something that wakes more than once, such as a connection, keeps its own state and the latest Waker, which the action
// replaces before every Wait. A turn may come without a cause, so an action checks again what it waits for.
//
// If a task returns Wait in a turn in which it took no Waker and armed no [Timer], only a shutdown wakes it. This is
// logged once as a warning, unless its action is a [Stopper] or called [Task.Order] in that turn: to park a task until
// shutdown on purpose, call Task.Order.
//
// The zero Waker does nothing. A Waker is for the scheduler's own thread; see [Waker.Remote] and [AtomicWaker].
type Waker struct {
	t    *Task
	turn uint64
}

// Waker returns the Waker of this turn: give it to whatever is to wake the task, and return Wait. Call it in t's turn only.
func (t *Task) Waker() Waker {
	t.s.touch()
	t.flags |= attended
	return Waker{t, t.turn}
}

// Wake makes the task ready, if this is still the turn in which w was taken or the wait after it; otherwise it does
// nothing. It is for the scheduler's thread: see [Waker.Remote].
func (w Waker) Wake() {
	if w.t == nil {
		return
	}
	w.t.s.touch()
	if w.t.turn == w.turn {
		w.t.wake()
	}
}

// Stale reports whether Wake does nothing, now and later, so that a list of Wakers may forget w. The zero Waker is
// stale.
func (w Waker) Stale() bool { return w.t == nil || w.t.turn != w.turn }

// Armed reports whether Wake would make the task ready: the task has waited since the turn in which w was taken. A
// [Describer] uses it to find out which of its Wakers the task waits for.
func (w Waker) Armed() bool { return w.t != nil && w.t.turn == w.turn && w.t.state == waiting }

// Remote returns a function that does what Wake does, from any goroutine. It never blocks and is never refused, and
// after the scheduler's Close it does nothing. The request is passed to the task's own thread, which decides whether it
// still has an effect. However often it is made in one turn of the task, it is passed once. Remote itself must be
// called on the scheduler's thread. See also [AtomicWaker].
func (w Waker) Remote() func() {
	r := w.remote()
	return func() { r.wake(w.turn) }
}

// remote returns what carries requests to the task, nil for the zero Waker.
func (w Waker) remote() *remote {
	if w.t == nil {
		return nil
	}
	w.t.s.touch()
	return &w.t.more().remote
}

// remote carries requests from other goroutines to a task. It stays with its Task for good: a stale request finds a
// higher turn there.
type remote struct {
	node inbox.Node[remoteEvent]
	task *Task
	want atomic.Uint64 // the latest turn asked for, shifted left by one; the lowest bit: node is queued
}

// wake requests that the task be woken if turn is its latest. Any goroutine; r may be nil.
func (r *remote) wake(turn uint64) {
	if r != nil && r.request(turn) {
		r.task.s.deliver(&r.node)
	}
}

// request records that turn is to be woken, and reports whether node must be queued for it. It need not if that turn or a
// later one was requested before.
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

func (r *remote) handle(*Scheduler) {
	turn := r.want.And(^uint64(1)) >> 1
	if r.task.turn == turn {
		r.task.wake()
	}
}

// AtomicWaker keeps the latest Waker of a task for other goroutines that wake it more than once, such as the senders of
// a mailbox. Before every Wait, the task sets it and then checks once more for what it waits for; the other goroutines
// provide that and then call Wake. So no wake-up is lost. The zero AtomicWaker wakes nothing.
type AtomicWaker struct {
	version atomic.Uint32 // odd while it is being set
	r       atomic.Pointer[remote]
	turn    atomic.Uint64
}

// Set keeps w in place of the previous Waker. It is called on one scheduler's thread at a time.
func (a *AtomicWaker) Set(w Waker) {
	r := w.remote()
	a.version.Add(1)
	a.r.Store(r)
	a.turn.Store(w.turn)
	a.version.Add(1)
}

// Wake wakes the task whose Waker was set last, as the function of [Waker.Remote] does. Any goroutine; it never blocks. During a
// Set it may do nothing: the task checks once more afterwards.
func (a *AtomicWaker) Wake() {
	before := a.version.Load()
	r, turn := a.r.Load(), a.turn.Load()
	if before&1 == 0 && a.version.Load() == before {
		r.wake(turn)
	}
}

// Blocked is the error of a call that would have to wait: for input, or for room in a queue. Arm wakes t when the call
// may succeed. Call it in a turn of t, return Wait, and repeat the call in the next turn. Find it with errors.As;
// listener.Conn.Next does all of this for a connection.
//
// A task that waits for several things at once arms each of them: the first one wakes it.
type Blocked interface {
	error
	// Arm arranges for t to be woken, once, when the call may succeed. Call it in t's turn, and return Wait.
	Arm(t *Task)
}
