package process

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
)

// errGivenUp is the outcome of a question whose asker has stopped waiting. No caller sees it.
var errGivenUp = errors.New("process: the question was cancelled")

// Reply is the right to answer a question once. It is part of the message that asks, and may be passed on with it: see
// [Reply.Forward]. The zero Reply has no effect. Any goroutine may call its methods.
type Reply[A any] struct{ q *question[A] }

// Send answers the question, and reports whether the asker still waited for the answer. Any goroutine may call it.
func (r Reply[A]) Send(answer A) bool { return r.q != nil && r.q.answer(answer, nil) }

// Fail answers with an error, which becomes the error of the Ask, and reports whether the asker still waited. It panics if
// err is nil. Any goroutine may call it.
func (r Reply[A]) Fail(err error) bool {
	if err == nil {
		panic("process: Fail without an error")
	}
	return r.q != nil && r.q.answer(*new(A), err)
}

// Forward makes the question depend on another process: the asker gets ErrDead when that process ends, and no longer
// when the process that was asked ends. With nil, for an answer from a task or a goroutine, the question depends on no
// process. Call Forward before you pass the Reply on. It reports whether the asker still waits for the answer.
func (r Reply[A]) Forward(to AnyRef) bool {
	if r.q == nil {
		return false
	}
	r.q.stopWatching()
	if to != nil {
		r.q.watchAsked(to)
	}
	if r.Open() {
		return true
	}
	r.q.stopWatching() // it was given up meanwhile
	return false
}

// Open reports whether the asker still waits for the answer: it is false after an answer, a deadline, or the Close of
// an Ask.
func (r Reply[A]) Open() bool { return r.q != nil && r.q.state.Load() == asked }

const (
	asked = iota
	claimed
	answered
)

// question gets one outcome: an answer, the end of the process that was asked, or that the asker gives up, whatever
// comes first.
type question[A any] struct {
	state  word
	value  A
	err    error
	watch  atomic.Pointer[watch] // of the process that is asked, or to which the question was forwarded
	notify func()                // tells the asker
}

func (q *question[A]) answer(value A, err error) bool {
	if !q.resolve(value, err) {
		return false
	}
	q.stopWatching()
	q.notify()
	return true
}

// resolve gives q its outcome, if it has none.
func (q *question[A]) resolve(value A, err error) bool {
	if !q.state.CompareAndSwap(asked, claimed) {
		return false
	}
	q.value, q.err = value, err
	q.state.Store(answered)
	return true
}

// watchAsked makes ErrDead the outcome when the process that is asked ends.
func (q *question[A]) watchAsked(to AnyRef) {
	x := &watch{each: true, notify: func(*runner, Notice) {
		if q.resolve(*new(A), ErrDead) {
			q.notify()
		}
	}}
	q.watch.Store(x.begin(to, nil, nil))
}

// stopWatching is called when q has an outcome, or is forwarded.
func (q *question[A]) stopWatching() {
	if x := q.watch.Load(); x != nil {
		x.Cancel()
	}
}

// giveUp gives q an outcome on the asker's side.
func (q *question[A]) giveUp(why error) bool {
	if !q.resolve(*new(A), why) {
		return false
	}
	q.stopWatching()
	return true
}

// Ask is an action by which a task asks a process. When it is Done, Value is the answer. It fails with the error of
// Reply.Fail; with ErrDead; with ErrFull if the mailbox is full and rejects messages; or with os.ErrDeadlineExceeded,
// after which an answer finds the Reply closed. It goes on waiting during a shutdown.
//
// An Ask is used once, by pointer, and its parent keeps it from turn to turn, as the Example does.
// A parent that ends before the Ask is Done calls its Close, which closes the Reply.
type Ask[M, A any] struct {
	To Ref[M] // the process to ask
	// Message returns the message to send, with the Reply in it. It is called in a turn of the task, again for each
	// attempt while the mailbox is full.
	Message func(Reply[A]) M
	Within  time.Duration // how long to wait for the answer; 0 means no deadline, less than 0 one that has passed: nothing is asked
	Value   A             // the answer: valid when the Ask is Done

	q     *question[A]
	timer act.Timer
	due   time.Duration
	waker act.AtomicWaker
	sent  bool
}

// Act sends the question, and returns Wait until there is an answer. Then it returns Done or Failed. One task calls it.
func (x *Ask[M, A]) Act(t *act.Task) act.Directive {
	if x.q == nil {
		x.begin(t)
	}
	x.waker.Set(t.Waker())
	if x.q.state.Load() != answered && x.Within != 0 && t.Scheduler().Now() >= x.due {
		x.q.giveUp(os.ErrDeadlineExceeded)
	}
	if !x.sent && x.q.state.Load() == asked {
		err := x.To.Send(t, x.Message(Reply[A]{x.q}))
		if b, ok := err.(act.Blocked); ok {
			b.Arm(t)
			return act.Wait
		}
		if x.sent = true; err != nil {
			x.q.giveUp(err)
		}
	}
	if x.q.state.Load() != answered {
		return act.Wait
	}
	x.timer.Stop()
	if x.q.err != nil {
		return t.Fail(x.q.err)
	}
	x.Value = x.q.value
	return act.Done
}

// Describe implements [act.Describer]: it names the answer, or the room in a mailbox, that the task waits for.
func (x *Ask[M, A]) Describe(d *act.Description) {
	switch {
	case x.q == nil || x.q.state.Load() != asked:
	case x.sent:
		d.WaitsFor("an answer of " + x.To.String())
	default:
		d.WaitsFor("room in the mailbox of " + x.To.String())
	}
}

func (x *Ask[M, A]) begin(t *act.Task) {
	x.q = &question[A]{notify: x.waker.Wake}
	x.q.watchAsked(x.To)
	switch {
	case x.Within > 0:
		t.WakeAfter(&x.timer, x.Within)
		x.due = x.timer.When()
	case x.Within < 0:
		x.due = t.Scheduler().Now()
	}
}

// Close gives the question up, and closes its Reply. It is for the task that asks; after Done it has no effect.
func (x *Ask[M, A]) Close() error {
	if x.q != nil {
		x.q.giveUp(errGivenUp)
	}
	x.timer.Stop()
	return nil
}

// Call asks a process and blocks until there is an answer, or ctx ends. Its errors are the errors of [Ask], and
// ctx.Err(). It is for goroutines that may block, never for the thread of a scheduler.
func Call[M, A any](ctx context.Context, to Ref[M], message func(Reply[A]) M) (A, error) {
	c := make(chan struct{})
	q := &question[A]{notify: func() { close(c) }}
	q.watchAsked(to)
	err := to.Deliver(ctx, message(Reply[A]{q}))
	if err == nil {
		select {
		case <-c:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil && q.giveUp(err) {
		return q.value, err
	}
	<-c
	return q.value, q.err
}
