package act

import (
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Trace is a set of functions that are called when something happens on a scheduler, as in net/http/httptrace. They are
// called on the scheduler's thread, and must not spawn, wake or block. Any of them may be nil. A scheduler without a
// Trace pays one branch for each. [MultiTrace] makes one Trace of several.
//
// Between Spawned and Ended a task becomes ready at Spawned, at Woken, and at a TurnEnd with Yield. Ready tasks have
// their turns in that order.
type Trace struct {
	Spawned   func(t *Task)                   // a task or demon has been spawned, installed or attached
	TurnStart func(t *Task)                   // a turn of t begins
	TurnEnd   func(t *Task, d Directive)      // a turn has ended with d, which the scheduler has not followed yet
	Woken     func(t *Task)                   // a task that waited, or whose offloaded function has returned, becomes ready
	Told      func(t *Task, o shutdown.Order) // a task is about to be told of a shutdown request; see Stopper
	Ended     func(t *Task, err error)        // a task has ended; err is nil after Done, ErrDropped if it was dropped, otherwise its failure
	Pass      func(s *Scheduler)              // a pass begins: the scheduler polls for events, fires timers and gives demons their turns

	// Idle is called before each poll of the kernel. The thread may sleep for atMost: 0 polls without
	// sleeping, less than 0 sets no limit.
	Idle func(s *Scheduler, atMost time.Duration)
}

func (tr *Trace) woken(t *Task) {
	if tr != nil && tr.Woken != nil {
		tr.Woken(t)
	}
}

func (tr *Trace) ended(t *Task, err error) {
	if tr != nil && tr.Ended != nil {
		tr.Ended(t, err)
	}
}

// MultiTrace returns a Trace that calls the functions of all traces, in order. Nil traces are left out; if all are nil,
// MultiTrace returns nil. A function that only one trace has is called directly.
func MultiTrace(traces ...*Trace) *Trace {
	var all *Trace
	for _, tr := range traces {
		switch {
		case tr == nil:
		case all == nil:
			all = tr
		default:
			all = &Trace{
				Spawned:   both1(all.Spawned, tr.Spawned),
				TurnStart: both1(all.TurnStart, tr.TurnStart),
				TurnEnd:   both2(all.TurnEnd, tr.TurnEnd),
				Woken:     both1(all.Woken, tr.Woken),
				Told:      both2(all.Told, tr.Told),
				Ended:     both2(all.Ended, tr.Ended),
				Pass:      both1(all.Pass, tr.Pass),
				Idle:      both2(all.Idle, tr.Idle),
			}
		}
	}
	return all
}

func both1[A any](f, g func(A)) func(A) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A) { f(a); g(a) }
}

func both2[A, B any](f, g func(A, B)) func(A, B) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B) { f(a, b); g(a, b) }
}
