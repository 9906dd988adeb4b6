package listener

import (
	"github.com/daimon-go/daimon/act"
)

// Receive is a leaf that waits for one value of a mailbox, which is in Value when it is Done; a task that takes many
// calls Mailbox.Take. With a mailbox that is closed and empty it fails with [ErrMailboxClosed]. On an order it
// goes on waiting.
type Receive[T any] struct {
	From  *Mailbox[T]
	Value T

	err   error
	ended bool
}

// Describe says what a waiting task waits for.
func (r *Receive[T]) Describe(d *act.Description) {
	if !r.ended {
		r.From.Describe(d)
	}
}

// Act takes the value.
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
