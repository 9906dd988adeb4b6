package coro

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// ErrStopped is returned by calls that wait, or would wait, after the coroutine's task has been dropped. The body
// should return.
var ErrStopped = errors.New("coro: the coroutine is stopped")

// Co is a coroutine, as its body sees it: the body waits with its methods, such as Sleep, Do and Yield. They are for
// that body alone, on its goroutine; called elsewhere, a method that waits panics. Only Caller may be called by the
// other coroutines of the task.
//
// Every method that returns an error may suspend the body. An error means that the body should stop waiting: it is
// [ErrStopped], the error of a scope that has ended (see [Co.Within], [Co.WithContext] and [Co.UntilOrder]), or one
// that the method documents.
type Co struct {
	body     *body
	task     *act.Task // nil before the first turn
	pool     *pool
	worker   *worker          // nil before the first turn and after the end
	child    act.Action       // the action of Do
	outcome  error            // of child, when it has ended; without a child the act.Blocked that the body waits for
	scope    *scope           // the innermost
	outer    *Co              // its body was running when this was resumed
	conn     *Conn            // given by Serve
	dialled  []*listener.Conn // connections that the body has to close
	sleep    *listener.Sleep
	ctx      context.Context // see Context
	cancel   context.CancelCauseFunc
	err      error
	panicked *act.Panic
	calls    uint8 // how many calls of a Conn this turn may still make
	running  bool
	refused  uint8 // calls since the coroutine was stopped
	stopped  bool
	waited   bool  // in an UntilOrder
	orders   uint8 // shutdown requests that it was told of
	detached bool  // child belongs to an offloaded function
	unwound  bool  // by Goexit
}

// callsPerTurn is how many calls of Conns a body may make before it has to end its turn, so that a peer that sends
// endlessly cannot keep the thread. Each call takes at most Limits.Read bytes: together 1 MiB by default.
const callsPerTurn = 16

// Scheduler returns the scheduler that the coroutine runs on, which never changes.
func (co *Co) Scheduler() *act.Scheduler { return co.task.Scheduler() }

// Task returns the task of the coroutine, for calls of package act that need one, such as [act.Task.Own].
func (co *Co) Task() *act.Task { return co.task }

// Caller returns the running coroutine of co's task: co, or another one, for example of an act.All. A type that all
// coroutines of a task may use, such as [Conn], waits with the methods of the Caller. It panics in another task and on
// another goroutine.
func (co *Co) Caller() *Co {
	if p := co.pool; p != nil && p.current != nil && p.current.task == co.task {
		return p.current
	}
	panic("coro: a Conn was used outside of the coroutines of its task")
}

// Order returns the latest shutdown request that made the policy stricter, nil if there is none: see [act.Task.Order].
func (co *Co) Order() shutdown.Order { return co.task.Order() }

// Context returns a context that ends when the body ends or is stopped, with ErrStopped as its cause. Pass it to
// functions on other goroutines (see [Offload]). It does not end with a scope.
func (co *Co) Context() context.Context {
	if co.ctx == nil {
		co.ctx, co.cancel = context.WithCancelCause(context.Background())
	}
	return co.ctx
}

// Yield ends the turn, so that other tasks have theirs. The body goes on in its next turn, without waiting for
// anything.
func (co *Co) Yield() error {
	if err := co.enter(); err != nil {
		return err
	}
	return co.suspend(act.Yield)
}

// Sleep waits for at least d, on the scheduler's clock. It returns early, with an error, when the body should stop: see [Co].
func (co *Co) Sleep(d time.Duration) error {
	if err := co.enter(); err != nil { // before the armed timer of a Sleep under way would be overwritten
		return err
	}
	if co.sleep == nil {
		co.sleep = new(listener.Sleep)
	}
	*co.sleep = listener.Sleep{For: d}
	return co.Do(co.sleep)
}

// Do runs the action a to its end, closes it if it is an io.Closer, and returns the error that it failed with, nil if
// it was Done. If the coroutine is stopped or a scope (see [Co.Within]) ends first, a is closed unfinished. A scope
// does not end while a function runs that a has offloaded. A panic of a fails the task and stops the body. Do panics if
// a is nil.
//
// Most actions can be run once: a listener.Receive that is Done returns Done again at once, with the old value.
func (co *Co) Do(a act.Action) error {
	if a == nil {
		panic("coro: Do of a nil action")
	}
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

// do is what a body yields to make the turn go on with co.child.
const do = act.Done

// runChild gives a turn to the action of Do and reports whether the body is to go on. Scopes are checked after the
// action's turn, so that a result that comes in the same turn as the end of a scope is not lost. An offloaded function
// cannot be cut short by a scope.
func (co *Co) runChild() (d act.Directive, over bool) {
	co.outcome = nil
	switch d = co.child.Act(co.task); d {
	case act.Done:
		return d, true
	case act.Failed:
		co.outcome = co.task.Scheduler().Internals().Failure()
		return d, true
	case act.Async:
		return d, false
	}
	if co.scope != nil {
		co.outcome = co.scope.arm(co)
	}
	return d, co.outcome != nil
}

// leave ends Do.
func (co *Co) leave(a act.Action) {
	co.child = nil
	if !co.detached {
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

// WaitUntil waits until ready returns true. ready is called at once and in each turn of the task. Before it returns
// false, it must make sure that the task is woken when the condition may have changed: by handing out t.Waker(), which
// is valid for that turn, by arming a timer of t, or by arming an [act.Blocked].
func (co *Co) WaitUntil(ready func(t *act.Task) bool) error {
	if ready == nil {
		panic("coro: WaitUntil of a nil function")
	}
	return co.Do(condition(ready))
}

type condition func(*act.Task) bool

func (ready condition) Act(t *act.Task) act.Directive {
	if ready(t) {
		return act.Done
	}
	return act.Wait
}

// Unblock handles the errors of calls that may return an [act.Blocked], such as the methods of [Conn.Under] and of a
// listener.Mailbox. If all errs are Blocked, it waits until one of the calls may succeed, and returns nil: repeat the
// calls then. If one is nil, it returns nil, and counts as one of the 16 calls of Conns that a turn may make. Otherwise
// it returns the first error that is not a Blocked, at once.
//
//	for {
//		n, err := c.Under().SendFile(f, at, left)
//		at, left = at+n, left-n
//		if err = co.Unblock(err); err != nil || left == 0 {
//			return err
//		}
//	}
func (co *Co) Unblock(errs ...error) error {
	if len(errs) == 0 || slices.Contains(errs, nil) {
		return co.call()
	}
	for _, err := range errs {
		if _, ok := err.(act.Blocked); !ok {
			return err
		}
	}
	if err := co.enter(); err != nil {
		return err
	}
	for _, err := range errs {
		err.(act.Blocked).Arm(co.task)
	}
	return co.armed(errs[0])
}

func (co *Co) wait(b act.Blocked) error {
	b.Arm(co.task)
	return co.armed(b)
}

// armed suspends the body until b wakes the task, and keeps b for Describe.
func (co *Co) armed(b error) error {
	co.outcome = b
	err := co.suspend(act.Wait)
	co.outcome = nil
	return err
}

// Offload calls f, which may block, on another goroutine, and waits for its result. The Group's [act.Executor] calls
// it. A panic in f becomes an error, a [*act.Panic]. If the wait ends first, f goes on and its result is lost; so f
// must touch only what it captured by value. To stop f when the body ends, give it the context that co.Context returned
// before.
func Offload[T any](co *Co, f func() (T, error)) (T, error) {
	if f == nil {
		panic("coro: Offload of a nil function")
	}
	call := act.Call[T]{F: f}
	err := co.Do(&call)
	return call.Value, err
}

// Value waits until the future f is resolved, and returns its value or error. If the body should stop before (see [Co]), it
// returns why.
func Value[T any](co *Co, f *future.Future[T]) (T, error) {
	if err := co.Do(f.Await()); err != nil && !f.Resolved() {
		return *new(T), err
	}
	return f.Value()
}

// enter begins a call that may suspend the body. In a scope that has ended it fails, after ending the turn: a body
// that ignores errors must not keep the thread.
func (co *Co) enter() error {
	if co.pool == nil || co.pool.current != co {
		panic("coro: a Co was used outside of its own body")
	}
	if co.stopped {
		return co.refuse()
	}
	if co.scope == nil {
		return nil
	}
	err := co.scope.ended(co)
	if err != nil {
		co.worker.yield(act.Yield)
		if co.stopped {
			return ErrStopped
		}
	}
	return err
}

// suspend ends the turn with d and returns in the next turn. After an error the caller must not try again. Scopes are
// checked before and not afterwards, so that a result that comes in the same turn as the end of a scope is not lost.
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

// refuse handles calls after the coroutine was stopped: the first gets ErrStopped, the second unwinds the body.
func (co *Co) refuse() error {
	if co.refused++; co.refused < 2 {
		return ErrStopped
	}
	co.refused, co.unwound = 2, true
	runtime.Goexit()
	return nil
}

// call counts a call of a Conn. When the turn has made callsPerTurn of them, the body is suspended until the next.
func (co *Co) call() error {
	if err := co.enter(); err != nil {
		return err
	}
	if co.calls == 0 {
		if err := co.suspend(act.Yield); err != nil {
			return err
		}
	}
	co.calls--
	return nil
}
