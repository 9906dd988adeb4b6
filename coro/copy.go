package coro

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// WriteTo writes to w what comes, until the peer sends no more: io.Copy does so. Between two connections of one
// scheduler nothing is copied on the way, and while it waits no buffer is held.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	co := c.caller()
	if to, ok := w.(*Conn); ok {
		to.caller()
		return c.pour(co, to.under)
	}
	return c.copy(co, w)
}

// pour lends to what c has received, turn by turn.
func (c *Conn) pour(co *Co, to *listener.Conn) (int64, error) {
	p := &pouring{from: c.under, to: to}
	err := co.Do(p)
	return p.total, err
}

// pouring is an action, and so needs neither the body nor its stack while it waits.
type pouring struct {
	from, to *listener.Conn
	total    int64
}

func (p *pouring) Act(t *act.Task) act.Directive {
	for range callsATurn {
		in, err := p.from.Peek(1)
		if len(in) > 0 {
			var n int
			n, err = p.to.Write(in)
			p.from.Discard(n)
			p.total += int64(n)
		}
		if err != nil {
			return listener.Next(t, err)
		}
	}
	return act.Yield
}

// copy has a buffer only while there is something in it, since w may suspend the body for long.
func (c *Conn) copy(co *Co, w io.Writer) (total int64, err error) {
	for {
		if err := co.call(); err != nil {
			return total, err
		}
		in, err := c.under.Peek(1)
		switch b, blocked := err.(listener.Blocked); {
		case blocked:
			err = co.wait(b)
		case err == io.EOF:
			return total, nil
		case err == nil:
			var n int64
			n, err = c.pass(w, in)
			total += n
		}
		if err != nil {
			return total, err
		}
	}
}

// pass writes to w what is unread, as much as a buffer holds.
func (c *Conn) pass(w io.Writer, in []byte) (int64, error) {
	crew := c.co.crew
	buffer := crew.takeBuffer()
	defer crew.giveBuffer(buffer)
	n := copy(buffer, in)
	c.under.Discard(n)
	written, err := w.Write(buffer[:n])
	if err == nil && written < n {
		err = io.ErrShortWrite
	}
	return int64(written), err
}

const (
	bufferSize = 16 << 10
	spare      = 16 // buffers that a scheduler keeps
)

// takeBuffer is for a body in the middle of a copy: there are as many as those.
func (c *crew) takeBuffer() []byte {
	n := len(c.buffers)
	if n == 0 {
		return make([]byte, bufferSize)
	}
	b := c.buffers[n-1]
	c.buffers = c.buffers[:n-1]
	return b
}

func (c *crew) giveBuffer(b []byte) {
	if len(c.buffers) < spare {
		c.buffers = append(c.buffers, b)
	}
}
