package act

import (
	"io"

	"github.com/daimon-go/daimon/shutdown"
)

// Child is an action that forwards to another one: its turns, shutdown requests, end, name and description. Embed it to
// put something before or around an action: override a method, and call the embedded one from there.
//
//	type counted struct {
//		act.Child
//		turns int
//	}
//
//	func (c *counted) Act(t *act.Task) act.Directive {
//		c.turns++
//		return c.Child.Act(t)
//	}
//
// The zero Child has no action yet. Assign a new Child to go on with another action. An action that has its first turn
// after shutdown has begun is told of it before that turn. A Child must not be copied once it has had a turn.
//
// A type that has something to close itself overrides Close and Abandon, of which one is called: Abandon if the task is dropped
// while a function of Task.Offload runs, else Close (see [Abandoner]).
type Child struct {
	Action Action // the action to forward to; nil means none yet

	err    *error // why it failed
	status childStatus
}

// childStatus is childTold for most of a Child's life, so that a turn costs one comparison.
type childStatus uint8

const (
	childTold   childStatus = 1 << iota // the action was told of all shutdown requests, or there were none before its first turn
	childDone                           // it has returned Done
	childFailed                         // it has returned Failed
	childGone                           // closed, or left to an offloaded function
)

// Act forwards a turn. Without an action it returns Done. After the action has finished, Act returns the same Directive
// again without calling it. An action that was closed before it had finished fails with [ErrDropped]. After Failed,
// [Task.Err] is not nil, even if the action gave no error.
func (c *Child) Act(t *Task) Directive {
	if c.Action == nil {
		return Done
	}
	if c.status != childTold {
		switch {
		case c.status&childDone != 0:
			return Done
		case c.status&childFailed != 0:
			return t.Fail(*c.err)
		case c.status&childGone != 0:
			return t.Fail(ErrDropped)
		}
		if o := t.order(); o != nil {
			c.Stop(t, o)
		}
		c.status = childTold
	}
	d := c.Action.Act(t)
	switch d {
	case Done:
		c.status |= childDone
	case Failed:
		c.fail(t.s.failure())
		return t.Fail(*c.err)
	}
	return d
}

// child returns the Action. A type that embeds Child has the method too.
func (c *Child) child() Action { return c.Action }

func (c *Child) fail(err error) { c.status, c.err = c.status|childFailed, &err }

// Stop forwards a shutdown request to the action if it is a [Stopper] and has not finished. A parent calls it in its Stop.
func (c *Child) Stop(t *Task, o shutdown.Order) {
	if c.Action != nil && c.status&^childTold == 0 {
		c.status = childTold
		stopAction(t, o, c.Action)
	}
}

// Abandon returns the part of the action that belongs to the function that it has offloaded: all of it, unless it is an
// [Abandoner]. A later Close does nothing.
func (c *Child) Abandon() Action {
	if c.status&childGone != 0 {
		return nil
	}
	c.status |= childGone
	return abandon(c.Action)
}

// Close closes the action if it is an io.Closer, and returns its error. Further calls do nothing and return nil.
func (c *Child) Close() error {
	if c.status&childGone != 0 {
		return nil
	}
	c.status |= childGone
	if cl, ok := c.Action.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}

// Describe forwards to the action if it is a [Describer]. A type that overrides Describe calls this method first and
// then adds its own.
func (c *Child) Describe(d *Description) {
	if x, ok := c.Action.(Describer); ok {
		x.Describe(d)
	}
}

// String returns the [Name] of the action, even after the action has ended.
func (c *Child) String() string { return Name(c.Action) }

func stopAction(t *Task, o shutdown.Order, a Action) {
	if st, ok := a.(Stopper); ok {
		st.Stop(t, o)
	}
}
