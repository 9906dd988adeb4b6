package listener

import (
	"io"

	"github.com/daimon-go/daimon/act"
)

// Next turns the error of a call into a Directive: nil is Yield, an [act.Blocked] is armed and is Wait, io.EOF is Done, and
// anything else fails the task.
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

// Next is the function [Next] for a task that goes on by reading c: instead of Yield, after which it would find nothing
// to read, it returns Wait at once. That halves the number of turns in a protocol of requests and responses.
func (c *Conn) Next(t *act.Task, err error) act.Directive {
	if err != nil || c.stream == nil || c.Buffered() > 0 || c.buffers != nil && c.buffers.passed(c.buffers.read) {
		return Next(t, err)
	}
	c.stream.AwaitInput(t.Waker()) // which wakes if there is input
	return act.Wait
}
