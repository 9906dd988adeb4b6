package service

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// New returns a service whose tasks come from next, such as a queue, and not from a socket. The demon calls next once a
// turn, on the scheduler's thread; next must not block. An action that next returns is spawned, whatever the Directive,
// so the last action can come with Done. next returns Yield when there may be more at once, Wait when something will
// wake the demon, and Done when there is no more. Failed ends the demon with t.Err(). New panics if next is nil.
//
// When shutdown begins, it spawns no more tasks and ends. Install it in a set-up function:
//
//	s.Install(service.New(func(t *act.Task) (act.Action, act.Directive) { … }))
func New(next func(t *act.Task) (act.Action, act.Directive)) act.Demon {
	if next == nil {
		panic("service: New without a source")
	}
	return &source{next: next}
}

type source struct {
	next    func(t *act.Task) (act.Action, act.Directive)
	ordered bool
}

func (v *source) Act(t *act.Task) act.Directive {
	if v.ordered {
		return act.Done
	}
	a, d := v.next(t)
	if a != nil {
		t.Scheduler().Spawn(a)
	}
	return d
}

func (v *source) Stop(*act.Task, shutdown.Order) { v.ordered = true }
