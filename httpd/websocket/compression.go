package websocket

import (
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

const errPacked frame.Error = "malformed compressed data"

// most is how many bytes may come for a message.
func (c *Conn) most(packed bool) int64 {
	if packed {
		return deflate.Packed(c.options.maxMessage())
	}
	return c.options.maxMessage()
}

// inflate returns the message that has come compressed, in memory of this turn.
func (c *Conn) inflate(packed []byte) ([]byte, error) {
	a := arenas.Get(c.conn.Scheduler())
	to := a.room()
	p, err := c.codec.Inflate(to, packed, c.options.maxMessage())
	switch {
	case err == deflate.ErrSize:
		return nil, c.fail(frame.TooLarge, errTooLarge)
	case err != nil:
		return nil, c.fail(frame.NotUTF8, errPacked)
	case !c.isText(p, true):
		return nil, c.fail(frame.NotUTF8, frame.ErrText)
	}
	if len(p) <= cap(to) {
		a.take(len(p)) // it is there
	}
	return p, nil
}

// isText reports whether the next piece of the message is UTF-8, if that has to be.
func (c *Conn) isText(piece []byte, last bool) bool {
	return c.kind != Text || c.text.Write(piece) && (!last || c.text.Over())
}

// compresses reports whether a message is compressed when it is sent, if that makes it smaller.
func (c *Conn) compresses(p []byte) bool { return c.codec != nil && len(p) >= c.options.Compress }
