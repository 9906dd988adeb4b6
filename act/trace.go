package act

import (
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Trace is a set of functions that are called when things happen on a scheduler, on its thread, as
// net/http/httptrace does it. Any of them may be nil. They must not spawn, wake or block. A scheduler
// without a Trace pays a branch. Between Spawned and Ended a task is ready after Spawned, after Woken and
// after a TurnEnd with Yield, and has its turns in that order.
type Trace struct {
	Spawned     func(t *Task)                   // a task or demon was taken into care
	TurnStart   func(t *Task)                   // a turn begins
	TurnEnd     func(t *Task, d Directive)      // a turn has ended, before its verdict is followed
	Woken       func(t *Task)                   // a task that waits, or comes back from an Offload, becomes ready
	Told        func(t *Task, o shutdown.Order) // an order is about to be told
	Ended       func(t *Task, err error)        // a task leaves: done, failed, or dropped with ErrDropped
	Pass        func(s *Scheduler)              // a pass begins
	Idle        func(s *Scheduler, atMost time.Duration)
	Ordered     func(s *Scheduler, o shutdown.Order) // Shutdown is called; on the goroutine that does
	RemoteEvent func(s *Scheduler)                   // somebody leaves something for s to take in: a post, an order, a remote wake-up; on his goroutine
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
