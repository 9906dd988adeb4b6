package coro

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// ErrStopped is returned by a call that waits, or would have to, once the coroutine's task has been dropped.
var ErrStopped = errors.New("coro: the coroutine is stopped")

// Co is the coroutine as its body sees it. Its methods are for the body only. Those that return an error
// may suspend the body; the error is ErrStopped, that of a scope (see Within, WithContext, UntilOrder), or what the
// method says.
type Co struct {
	program  *program
	task     *act.Task // nil before the first turn
	crew     *crew
	worker   *worker    // nil before the first turn and after the end
	child    act.Action // what Do does
	outcome  error      // of child, once it is over
	scope    *scope     // the innermost
	outer    *Co        // whose body was running when this was resumed
	conn     *Conn      // what Serve has given it
	dialled  []*listener.Conn
	sleep    *listener.Sleep
	ctx      context.Context // see Context
	cancel   context.CancelCauseFunc
	err      error
	panicked *act.Panic
	slack    uint8 // calls of a Conn that this turn may still make
	running  bool
	refused  uint8 // calls since it was stopped
	stopped  bool
	parted   bool // child belongs to an offloaded function
	unwound  bool
}

// callsATurn is how many calls of Conns are made before a body has to give up its turn, so that a peer that
// sends without end cannot keep the thread: each takes at most Limits.Read, so 1 MiB by default.
const callsATurn = 16

// Scheduler is where the coroutine lives, for good.
func (co *Co) Scheduler() *act.Scheduler { return co.task.Scheduler() }

// Task is the coroutine's task.
func (co *Co) Task() *act.Task { return co.task }

// Order is the latest order that made the terms stricter, nil if there is none.
func (co *Co) Order() shutdown.Order { return co.task.Order() }

// Context returns a context that ends, with ErrStopped as its cause, when the body ends or is stopped. It is
// for functions off the thread, which take one.
func (co *Co) Context() context.Context {
	if co.ctx == nil {
		co.ctx, co.cancel = context.WithCancelCause(context.Background())
	}
	return co.ctx
}

// Yield gives up the turn; the body goes on in the next round.
func (co *Co) Yield() error { return co.pause(act.Yield) }

// Sleep lets d pass. It is never early.
func (co *Co) Sleep(d time.Duration) error {
	if co.sleep == nil {
		co.sleep = new(listener.Sleep)
	}
	*co.sleep = listener.Sleep{For: d}
	return co.Do(co.sleep)
}

// Do does a to its end, and closes it if it is an io.Closer. The error is what a has failed with. If the
// coroutine is stopped meanwhile, or a scope ends, a is closed unfinished; but while a function runs that a
// has offloaded, a scope is not looked at. A panic of a fails the task, and the body is stopped.
//
// Most actions are for one Do: a listener.Receive that is done answers Done again, at once and with the old value.
func (co *Co) Do(a act.Action) error {
	if err := co.enter(); err != nil {
		co.close(a)
		return err
	}
	co.child = a
	defer co.leave(a)
	co.worker.yield(do)
	if co.stopped {
		return ErrStopped
	}
	return co.outcome
}

// do is what a body answers that has an action to be done: the turn goes on with that.
const do = act.Done

// attend calls the action that the body does, and tells whether the body is to go on. Scopes are looked at when the
// action has not ended, so that what comes in the same turn as the end of a scope is not lost; an offloaded function they
// have to wait for.
func (co *Co) attend() (d act.Directive, over bool) {
	co.outcome = nil
	switch d = co.child.Act(co.task); d {
	case act.Done:
		return d, true
	case act.Failed:
		co.outcome = co.task.Failure()
		return d, true
	case act.Async:
		return d, false
	}
	if co.scope != nil {
		co.outcome = co.scope.arm(co)
	}
	return d, co.outcome != nil
}

// leave closes what Do has done, or given up.
func (co *Co) leave(a act.Action) {
	co.child = nil
	if !co.parted {
		co.close(a)
	}
}

func (co *Co) close(a act.Action) {
	if c, ok := a.(io.Closer); ok {
		if err := c.Close(); err != nil {
			co.task.Scheduler().Logger().Warn("closing failed", zap.Error(err))
		}
	}
}

// Await waits for anything that has a waker. ready is called now and in each turn until it returns true: it
// looks at what is waited for, and leaves w, which is good for that turn, with whoever makes it true.
func (co *Co) Await(ready func(w act.Waker) bool) error { return co.Do(condition(ready)) }

type condition func(act.Waker) bool

func (ready condition) Act(t *act.Task) act.Directive {
	if ready(t.Waker()) {
		return act.Done
	}
	return act.Wait
}

// Unblock is for calls that return a listener.Blocked: it waits until the call may do better and returns nil.
// With a nil err it is one of the calls of a Conn, of which a turn has so many; any other it returns at once.
//
//	for {
//		n, err := c.Under().SendFile(f, at, left)
//		at, left = at+n, left-n
//		if err = co.Unblock(err); err != nil || left == 0 {
//			return err
//		}
//	}
func (co *Co) Unblock(err error) error {
	if err == nil {
		return co.call()
	}
	b, ok := err.(listener.Blocked)
	if !ok {
		return err
	}
	if err := co.enter(); err != nil {
		return err
	}
	return co.wait(b)
}

func (co *Co) wait(b listener.Blocked) error {
	b.Arm(co.task)
	return co.suspend(act.Wait)
}

// Offload has f called by the Group's Executor, where it may block, and waits for it. A panic or Goexit in f
// is an error. If the wait ends first, f goes on and its result is lost, so f must touch only what it has
// captured by value. co.Context, taken before, tells it of the end of the body, but not of a scope's.
func Offload[T any](co *Co, f func() (T, error)) (T, error) {
	call := act.Call[T]{F: f}
	err := co.Do(&call)
	return call.Value, err
}

// Value waits for f and returns its outcome.
func Value[T any](co *Co, f *future.Future[T]) (T, error) {
	if err := co.Do(f.Await()); err != nil && !f.Resolved() {
		return *new(T), err
	}
	return f.Value()
}

// pause gives up the turn with d.
func (co *Co) pause(d act.Directive) error {
	if err := co.enter(); err != nil {
		return err
	}
	return co.suspend(d)
}

// enter begins a call that may suspend the body. Within a scope that has ended it is refused, but not without
// giving up the turn: a body that does not look at errors must not keep the thread.
func (co *Co) enter() error {
	if co.crew == nil || co.crew.current != co {
		panic("coro: a Co was used outside of its body: each coroutine has its own")
	}
	if co.stopped {
		return co.refuse()
	}
	if co.scope == nil {
		return nil
	}
	err := co.scope.over(co)
	if err != nil {
		co.worker.yield(act.Yield)
		if co.stopped {
			return ErrStopped
		}
	}
	return err
}

// suspend answers d, and returns in the next turn. The error says that there is no use in trying again. Scopes are
// looked at before and not afterwards: what has come in the same turn as the end of a scope is not lost.
func (co *Co) suspend(d act.Directive) error {
	if co.scope != nil {
		if err := co.scope.arm(co); err != nil {
			return err
		}
	}
	co.worker.yield(d)
	if co.stopped {
		return ErrStopped
	}
	return nil
}

// refuse is for calls after the coroutine was stopped: at the second the body is unwound.
func (co *Co) refuse() error {
	if co.refused++; co.refused < 2 {
		return ErrStopped
	}
	co.refused, co.unwound = 2, true
	runtime.Goexit()
	return nil
}

// call is for each call of a Conn: for one too many in a turn the body has to wait for the next.
func (co *Co) call() error {
	if err := co.enter(); err != nil {
		return err
	}
	if co.slack == 0 {
		if err := co.suspend(act.Yield); err != nil {
			return err
		}
	}
	co.slack--
	return nil
}
