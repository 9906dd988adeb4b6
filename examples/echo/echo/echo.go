// Package echo is a server that sends all bytes back.
package echo

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Echo is the action of one connection. Write takes as many bytes as there is room for and the rest stays unread, so a
// client that stops reading is no longer read from. When the client has sent its last byte, all of it is still sent
// back. After a shutdown request it goes on until the client has closed.
func Echo(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			return c.Next(t, err) // would block: wait; EOF: done
		}
		n, err := c.Write(in)
		c.Discard(n)
		return c.Next(t, err)
	})
}
