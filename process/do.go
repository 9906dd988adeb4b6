package process

import "github.com/daimon-go/daimon/act"

// Do runs a as a task of the present scheduler, and sends p a message when it has finished: so a process can wait for
// anything that an action can wait for, such as a future or, on another goroutine, an [act.Call]. Meanwhile p goes on,
// and may move. as makes the message; its failure is nil if a was Done. It is called on that scheduler, and must do
// nothing else. The failure is [act.ErrDropped] if a was dropped or has panicked. The bound of the mailbox does not
// apply. The end of p, or Cancel, closes a.
func Do[M any](p *Self[M], a act.Action, as func(failure error) M) Operation {
	if a == nil {
		panic("process: no action to do")
	}
	x := &job{Child: act.Child{Action: a}, sys: p.sys, report: func(r *runner, err error) { p.deliver(r, as(err)) }}
	x.by = observe(&p.core, x)
	p.sys.pending.Add(1)
	x.by.add()
	p.on.s.Spawn(x)
	return x
}

// job is the action of a Do.
type job struct {
	act.Child
	by     observation // the end of the process cancels it
	sys    *System
	waker  act.AtomicWaker
	over   word // 1: finished, or cancelled
	report func(r *runner, err error)
}

// Act forwards a turn, unless the job was cancelled.
func (x *job) Act(t *act.Task) act.Directive {
	x.waker.Set(t.Waker())
	if x.over.Load() != 0 {
		return act.Done
	}
	d := x.Child.Act(t)
	switch d {
	case act.Done:
		x.finish(runnerOf(t), nil)
	case act.Failed:
		x.finish(runnerOf(t), t.Err())
	default:
		return d
	}
	return act.Done
}

// finish reports the outcome, unless the job was cancelled.
func (x *job) finish(r *runner, err error) {
	if x.over.CompareAndSwap(0, 1) {
		defer x.sys.done()
		x.by.remove()
		x.report(r, err)
	}
}

// Cancel implements Operation.
func (x *job) Cancel() bool {
	if !x.over.CompareAndSwap(0, 1) {
		return false
	}
	x.by.remove()
	x.waker.Wake()
	x.sys.done()
	return true
}

func (x *job) ended(*runner, Notice) { x.Cancel() }

// Close closes the action, and reports that it was dropped.
func (x *job) Close() error {
	defer x.finish(nil, act.ErrDropped) // even if the action panics
	return x.Child.Close()
}

// Abandon is Close while a function of the action runs on another goroutine.
func (x *job) Abandon() act.Action {
	defer x.finish(nil, act.ErrDropped)
	return x.Child.Abandon()
}

func (x *job) String() string { return "process: " + x.Child.String() }
