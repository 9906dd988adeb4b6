package process

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// ErrCanceled is the outcome of a question whose asker has stopped waiting.
var ErrCanceled = errors.New("process: the question was cancelled")

// Reply is the right to answer a question, once. It is part of the message in which the question is asked, and goes
// wherever that goes. The zero Reply is of nobody.
type Reply[A any] struct{ q *question[A] }

// Send answers, and reports whether somebody still waited for that. from is whose turn it is, as for Ref.Send.
func (r Reply[A]) Send(from Sender, answer A) bool {
	return r.q != nil && r.q.answer(from, answer, nil)
}

// Fail answers with an error, which must not be nil.
func (r Reply[A]) Fail(from Sender, err error) bool {
	if err == nil {
		panic("process: Fail without an error")
	}
	return r.q != nil && r.q.answer(from, *new(A), err)
}

// Open tells whether somebody waits for the answer.
func (r Reply[A]) Open() bool { return r.q != nil && r.q.state.Load() == asked }

const (
	asked = iota
	claimed
	answered
)

// question is what an asker waits for. It ends with an answer, with the end of the one who was asked, or when the
// asker does not wait any more, whatever comes first.
type question[A any] struct {
	state  word
	value  A
	err    error
	watch  *watch
	own    tie              // of a process that asks
	notify func(r *reactor) // the asker
}

// ended is for the end of the process that asks.
func (q *question[A]) ended(*reactor, Notice) { q.giveUp(ErrCanceled) }

func (q *question[A]) answer(from Sender, value A, err error) bool {
	if !q.resolve(value, err) {
		return false
	}
	q.watch.Cancel()
	q.notify(reactorOf(from))
	return true
}

// resolve gives q its outcome, if it has none.
func (q *question[A]) resolve(value A, err error) bool {
	if !q.state.CompareAndSwap(asked, claimed) {
		return false
	}
	q.value, q.err = value, err
	q.state.Store(answered)
	q.own.remove()
	return true
}

// attend has q end with the process that is asked.
func (q *question[A]) attend(to *core, r *reactor) {
	q.watch = newWatch(to, nil, r, func(r *reactor, _ Notice) {
		if q.resolve(*new(A), ErrDead) {
			q.notify(r)
		}
	})
}

// giveUp ends q on the asker's side.
func (q *question[A]) giveUp(why error) bool {
	if !q.resolve(*new(A), why) {
		return false
	}
	q.watch.Cancel()
	return true
}

// Ask is a leaf that asks a process, and has the answer in Value when it is Done. It is Failed with what Reply.Fail was
// given, with ErrDead, with ErrFull if the mailbox has no room and does not make senders wait, or with
// os.ErrDeadlineExceeded; a late answer finds the Reply closed then. While it waits for room Message is called for each
// attempt. On an order it goes on waiting.
//
// It is used by pointer, once, and kept from turn to turn by whose child it is:
//
//	type visit struct{ get *process.Ask[request, int] }
//
//	func (v *visit) Act(t *act.Task) act.Directive {
//		if v.get == nil {
//			v.get = &process.Ask[request, int]{To: counter, Within: time.Second, Message: newRequest}
//		}
//		if d := v.get.Act(t); d != act.Done {
//			return d
//		}
//		use(v.get.Value)
//		return act.Done
//	}
//
// Who ends before it is Done closes it, so that the Reply is closed as well.
type Ask[M, A any] struct {
	To      Ref[M]
	Message func(Reply[A]) M
	Within  time.Duration // 0: without a deadline; less: it has passed, and nobody is asked
	Value   A

	q     *question[A]
	timer act.Timer
	due   time.Duration
	bell  act.AtomicWaker
	sent  bool
}

// Act asks, or looks whether there is an answer.
func (x *Ask[M, A]) Act(t *act.Task) act.Directive {
	if x.q == nil {
		x.begin(t)
	}
	x.bell.Set(t.Waker())
	if x.q.state.Load() != answered && x.Within != 0 && t.Scheduler().Now() >= x.due {
		x.q.giveUp(os.ErrDeadlineExceeded)
	}
	if !x.sent && x.q.state.Load() == asked {
		err := dropped(x.To.send(t, x.Message(Reply[A]{x.q}), nil), ErrFull)
		if b, ok := err.(Blocked); ok {
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

func (x *Ask[M, A]) begin(t *act.Task) {
	x.q = &question[A]{notify: func(*reactor) { x.bell.Wake() }}
	x.q.attend(x.To.process(), nil)
	switch {
	case x.Within > 0:
		t.WakeAfter(&x.timer, x.Within)
		x.due = x.timer.When()
	case x.Within < 0:
		x.due = t.Scheduler().Now()
	}
}

// Close gives the question up.
func (x *Ask[M, A]) Close() error {
	if x.q != nil {
		x.q.giveUp(ErrCanceled)
	}
	x.timer.Stop()
	return nil
}

// Call asks a process, and waits for the answer until ctx has ended. It is for goroutines that may wait: not for the
// thread of a scheduler.
func Call[M, A any](ctx context.Context, to Ref[M], message func(Reply[A]) M) (A, error) {
	c := make(chan struct{})
	q := &question[A]{notify: func(*reactor) { close(c) }}
	q.attend(to.process(), nil)
	err := dropped(to.insist(ctx, message(Reply[A]{q})), ErrFull)
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

// Request has p ask another process, and sends p the message that as makes of the outcome: an answer, or the errors of
// Ask. p goes on meanwhile, and receives that message when it is its turn, behind those that have come before. as only
// makes the message, on any thread, and no bound refuses that. within is the deadline, as in Ask. If the mailbox is full,
// and was made with Block, p waits for room as a sender does, but no longer than for the outcome; a question that is given
// up stays there until it is received.
func Request[M, Q, A any](p *Self[M], to Ref[Q], message func(Reply[A]) Q, within time.Duration, as func(A, error) M) {
	q := &question[A]{}
	q.own.of, q.own.ender = &p.core, q
	q.own.add()
	var due *timer
	by := &loan{to: &p.core}
	tell := func(r *reactor) {
		p.sys.reactors[0].guard(&p.core, func() { p.deliver(r, as(q.value, q.err)) })
	}
	if within < 0 {
		q.resolve(*new(A), os.ErrDeadlineExceeded)
		tell(p.on)
		return
	}
	q.notify = func(r *reactor) {
		if due != nil {
			due.stop(r)
		}
		tell(r)
		by.forgive(r)
	}
	if within > 0 {
		due = &timer{}
		due.set(&p.core, within, func(r *reactor) {
			if q.giveUp(os.ErrDeadlineExceeded) {
				tell(r)
				by.forgive(r)
			}
		})
	}
	q.attend(to.process(), p.on)
	if err := dropped(to.send(p, message(Reply[A]{q}), by), ErrFull); err != nil && q.giveUp(err) {
		q.notify(p.on)
	}
}
