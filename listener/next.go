package listener

import (
	"io"

	"github.com/daimon-go/daimon/act"
)

// Blocked is the error of a call that would have to wait. Arm has t woken when the call may do better.
type Blocked interface {
	error
	Arm(t *act.Task)
}

// Next makes a Directive of the outcome of a call: nil is Yield, a Blocked is armed and is Wait, io.EOF
// is Done, and anything else fails the task.
func Next(t *act.Task, err error) act.Directive {
	if err == nil {
		return act.Yield
	}
	if b, ok := err.(Blocked); ok {
		b.Arm(t)
		return act.Wait
	}
	if err == io.EOF {
		return act.Done
	}
	return t.Fail(err)
}
