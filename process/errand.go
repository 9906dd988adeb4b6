package process

import (
	"errors"
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/shutdown"
)

// Operation is something that was begun for a process: a timer, an action, a future that is awaited, an observation, or
// a link. It ends with the process.
type Operation interface {
	// Cancel ends the operation, and reports whether it was still under way: its message, if it has one, then never
	// comes. Any goroutine may call it, except for a timer: see Self.After.
	Cancel() bool
}

// job is an action that is done for a process: see Do.
type job struct {
	own    tie // the end of the process is that of the errand
	sys    *System
	action act.Action
	bell   act.AtomicWaker
	over   word
	report func(r *reactor, err error)
}

// ErrLost is what an action has come to that was dropped, or has panicked.
var ErrLost = errors.New("process: what was to be done was dropped, or has panicked")

// Do has a done as a task of the present scheduler, while p goes on and may move, and then sends p the message that as
// makes of its failure, or of nil: whatever an action can wait for, a process can. as is called on that scheduler, and
// only makes the message, which no bound refuses. The end of p ends the errand: a is closed.
func Do[M any](p *Self[M], a act.Action, as func(failure error) M) Operation {
	if a == nil {
		panic("process: no action to do")
	}
	x := &job{sys: p.sys, action: a, report: func(r *reactor, err error) { p.deliver(r, as(err)) }}
	x.own.of, x.own.ender = &p.core, x
	p.sys.pending.Add(1)
	x.own.add()
	p.on.s.Spawn(x)
	return x
}

// Await is Do for a future: as makes a message of its outcome.
func Await[M, T any](p *Self[M], f *future.Future[T], as func(T, error) M) Operation {
	return Do(p, f.Await(), func(failure error) M {
		v, err := f.Value()
		if errors.Is(err, future.ErrPending) {
			err = failure // it was dropped
		}
		return as(v, err)
	})
}

// Offload has f called off the thread, by the Group's Executor, and sends p what as makes of what it has returned. f
// must touch only what it has captured by value.
func Offload[M, T any](p *Self[M], f func() (T, error), as func(T, error) M) Operation {
	call := &act.Call[T]{F: f}
	return Do(p, call, func(err error) M { return as(call.Value, err) })
}

// Cancel implements Operation.
func (x *job) Cancel() bool {
	if !x.finish() {
		return false
	}
	x.own.remove()
	x.bell.Wake()
	x.sys.done()
	return true
}

func (x *job) ended(*reactor, Notice) { x.Cancel() }

func (x *job) finish() bool { return x.over.CompareAndSwap(0, 1) }

// Act is the action's turn.
func (x *job) Act(t *act.Task) act.Directive {
	x.bell.Set(t.Waker())
	if x.over.Load() != 0 {
		return act.Done
	}
	d := x.action.Act(t)
	switch d {
	case act.Done:
		x.conclude(places.Get(t.Scheduler()).reactor, nil)
	case act.Failed:
		x.conclude(places.Get(t.Scheduler()).reactor, t.Failure())
	default:
		return d
	}
	return act.Done
}

func (x *job) conclude(r *reactor, err error) {
	if x.finish() {
		defer x.sys.done()
		x.own.remove()
		x.report(r, err)
	}
}

// Stop passes the order on.
func (x *job) Stop(t *act.Task, o shutdown.Order) {
	if s, ok := x.action.(act.Stopper); ok {
		s.Stop(t, o)
	}
}

// Close closes the action, and tells the process if it has not been told.
func (x *job) Close() (err error) {
	defer x.conclude(nil, ErrLost) // also if the action panics here
	if c, ok := x.action.(io.Closer); ok {
		err = c.Close()
	}
	return err
}

func (x *job) String() string { return "process: " + act.Name(x.action) }
