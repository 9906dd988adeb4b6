package coro

import (
	"io"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// WriteTo copies all bytes that the peer sends to w, until io.EOF, and returns how many; io.Copy uses it. Between two
// Conns of one task the bytes are not copied to a buffer. While WriteTo waits it holds no buffer.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	co := c.caller()
	if to, ok := w.(*Conn); ok {
		to.caller()
		p := &transfer{from: c.under, to: to.under}
		err := co.Do(p)
		return p.total, err
	}
	return c.copy(co, w)
}

// transfer writes to one connection what another receives. As an action it needs neither the body nor its stack while
// it waits.
type transfer struct {
	from, to *listener.Conn
	total    int64
}

func (p *transfer) Act(t *act.Task) act.Directive {
	in, err := p.from.Peek(1)
	if len(in) > 0 {
		var n int
		n, err = p.to.Write(in)
		p.from.Discard(n)
		p.total += int64(n)
	}
	return p.from.Next(t, err) // more would be lent from fresh memory, and hold up others
}

func (p *transfer) Describe(d *act.Description) {
	d.Of(p.from)
	d.Of(p.to)
}

// copy takes a buffer for each write, since the next bytes may take long to arrive.
func (c *Conn) copy(co *Co, w io.Writer) (total int64, err error) {
	for {
		if err := co.call(); err != nil {
			return total, err
		}
		in, err := c.under.Peek(1)
		switch b, blocked := err.(act.Blocked); {
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

var buffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// pass writes unread bytes to w, as many as a buffer holds.
func (c *Conn) pass(w io.Writer, in []byte) (int64, error) {
	buffer := buffers.Get().(*[16 << 10]byte)
	defer buffers.Put(buffer)
	n := copy(buffer[:], in)
	c.under.Discard(n)
	written, err := w.Write(buffer[:n])
	if err == nil && written < n {
		err = io.ErrShortWrite
	}
	return int64(written), err
}
