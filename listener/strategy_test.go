package listener_test

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// echo sends back what it receives, and ends as its peer does.
func echo(c *listener.Conn) act.Func {
	return func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			d := listener.Next(t, err)
			if d.Finished() {
				_ = c.Close()
				return act.Done
			}
			return d
		}
		n, err := c.Write(in)
		c.Discard(n)
		return listener.Next(t, err)
	}
}
