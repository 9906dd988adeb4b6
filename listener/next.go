package listener

import (
	"io"

	"github.com/daimon-go/daimon/act"
)

// Next turns the error of a call into an [act.Directive], for "return listener.Next(t, err)": nil is Yield, an
// [act.Blocked] is armed and is Wait, io.EOF is Done, and any other error fails the task. It is called in a turn of t.
func Next(t *act.Task, err error) act.Directive {
	switch b := err.(type) {
	case nil:
		return act.Yield
	case *blockedInput: // by far the most frequent, and cheaper to check than an interface
		b.Arm(t)
		return act.Wait
	case act.Blocked:
		b.Arm(t)
		return act.Wait
	}
	if err == io.EOF {
		return act.Done
	}
	return t.Fail(err)
}

// Next is the function [Next] for a task that goes on by reading c. With a nil error and nothing unread it waits for
// input at once, where [Next] would yield first. That halves the number of turns in a request-response protocol.
func (c *Conn) Next(t *act.Task, err error) act.Directive {
	if err != nil || c.stream == nil || c.Buffered() > 0 || c.buffers != nil && c.buffers.passed(c.buffers.read) {
		return Next(t, err)
	}
	c.stream.AwaitInput(t.Waker()) // which wakes if there is input
	return act.Wait
}
