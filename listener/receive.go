package listener

import (
	"github.com/daimon-go/daimon/act"
)

// Receive is an action that waits for one value of a [Mailbox], which is in Value when it is Done. A task that takes
// many values calls [Mailbox.Take]. Receive fails with [ErrMailboxClosed] when the Mailbox is closed and empty. During
// shutdown it goes on waiting.
type Receive[T any] struct {
	From  *Mailbox[T] // the Mailbox to take the value from
	Value T           // the value that was taken: valid when Receive is Done

	err   error
	ended bool
}

// Describe implements [act.Describer]: it names the Mailbox that the task waits for.
func (r *Receive[T]) Describe(d *act.Description) {
	if !r.ended {
		r.From.Describe(d)
	}
}

// Act takes the value and returns Done. It returns Wait while there is none, and Failed once the Mailbox is closed and empty.
func (r *Receive[T]) Act(t *act.Task) act.Directive {
	if !r.ended {
		v, err := r.From.Take()
		if b, ok := err.(act.Blocked); ok {
			b.Arm(t)
			return act.Wait
		}
		r.Value, r.err, r.ended = v, err, true
	}
	if r.err != nil {
		return t.Fail(r.err)
	}
	return act.Done
}
