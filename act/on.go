package act

import (
	"fmt"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/panics"
)

// On returns an action that runs a as a task of s, a scheduler of any Group, and waits for its end. It is Done when a
// is. It fails with the error of a, with a [*Panic] if a panicked, with [ErrDropped] if a shutdown dropped the task,
// and with [ErrClosed] if s is closed. The fields of a can be read afterwards.
//
// The call brings its own place in the inbox of s, so it is never refused for lack of room. If the action is closed
// before its end, as by [First], a is not begun; if it has begun, it goes on, so its results must not be touched.
// During shutdown the action goes on waiting: s shuts down by itself, and a may still end within the bounds.
func On(s *Scheduler, a Action) Action {
	mustExist("act.On", a)
	o := &on{to: s, a: a}
	o.node.Of = o
	return o
}

// on is a call of another scheduler: the leaf of the caller, and what both sides share.
type on struct {
	to     *Scheduler
	a      Action
	node   inbox.Node[remoteEvent]
	caller AtomicWaker
	err    error // set before ended

	sent, ended, closed atomic.Bool
}

func (o *on) Act(t *Task) Directive {
	o.caller.Set(t.Waker())
	if !o.sent.Swap(true) && !o.to.deliver(&o.node) {
		o.end(ErrClosed)
	}
	switch {
	case !o.ended.Load():
		return Wait
	case o.err != nil:
		return t.Fail(o.err)
	}
	return Done
}

func (o *on) Close() error {
	o.closed.Store(true)
	return nil
}

// The action belongs to the other scheduler, so only its type is read.
func (o *on) Describe(d *Description) {
	if o.sent.Load() && !o.ended.Load() {
		d.WaitsFor(fmt.Sprintf("scheduler %d: a task of %T", o.to.index, o.a))
	}
}

func (o *on) String() string { return fmt.Sprintf("call of scheduler %d", o.to.index) }

// handle takes the call in, on the other thread.
func (o *on) handle(s *Scheduler) {
	if s.closed {
		o.end(ErrClosed)
		return
	}
	s.Spawn(&called{Child: Child{Action: o.a}, by: o})
}

// end wakes the caller. Only the first call counts.
func (o *on) end(err error) {
	if !o.ended.Load() {
		o.err = err
		o.ended.Store(true)
		o.caller.Wake()
	}
}

// called is the task of the call, on the other scheduler.
type called struct {
	Child
	by    *on
	begun bool
}

func (c *called) Act(t *Task) (d Directive) {
	if !c.begun && c.by.closed.Load() {
		return Done
	}
	c.begun = true
	defer func() {
		if v := recover(); v != nil {
			c.by.end(panics.Recovered(v))
			d = Done
		}
	}()
	switch d := c.Child.Act(t); d {
	case Done:
		c.by.end(nil)
	case Failed:
		c.by.end(t.Err())
	default:
		return d
	}
	return Done
}

func (c *called) Abandon() Action {
	c.by.end(ErrDropped)
	return c.Child.Abandon()
}

func (c *called) Close() error {
	c.by.end(ErrDropped)
	return c.Child.Close()
}
