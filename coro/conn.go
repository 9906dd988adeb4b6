package coro

import (
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/listener"
)

// Conn is a listener.Conn as a net.Conn whose calls seem to block: they suspend the body of its Co, and hold up
// nobody else. What is written in a turn goes out in one call when the turn ends, so a Write that has returned may
// not have been sent. After 16 calls a body gives up its turn, so that its peer cannot keep the thread.
//
// It suspends whichever coroutine calls it, and is for those of one task: of two that act.All does, one may read
// while the other writes. All its methods belong to the thread: another goroutine, such as the one that
// tls.Conn.HandshakeContext starts for a context that can be cancelled, must not even close it.
type Conn struct {
	under *listener.Conn
	co    *Co
}

var _ net.Conn = (*Conn)(nil)

// Conn makes a net.Conn for co of one that somebody has dialled or accepted. Who owned under still does.
func (co *Co) Conn(under *listener.Conn) *Conn { return &Conn{under, co} }

// Co is the coroutine that the Conn was made for.
func (c *Conn) Co() *Co { return c.co }

// Under is what the Conn lies on, for what a net.Conn cannot say: see Co.Unblock. What it lends is good until the next
// call that may suspend the body.
func (c *Conn) Under() *listener.Conn { return c.under }

// caller is the coroutine that makes the present call.
func (c *Conn) caller() *Co {
	if crew := c.co.crew; crew != nil && crew.current != nil && crew.current.task == c.co.task {
		return crew.current
	}
	panic("coro: a Conn was used by somebody who is no coroutine of its task")
}

// Read returns what has come, at most len(p), and waits if nothing has. The error is io.EOF when the peer sends no
// more, os.ErrDeadlineExceeded, net.ErrClosed, what the system reports, or one of Co.
func (c *Conn) Read(p []byte) (int, error) {
	co := c.caller()
	for {
		if err := co.call(); err != nil {
			return 0, err
		}
		n, err := c.under.Read(p)
		b, blocked := err.(listener.Blocked)
		if !blocked {
			return n, err
		}
		if err := co.wait(b); err != nil {
			return 0, err
		}
	}
}

// Write returns when all of p is on its way, and waits while more than Limits.High is queued. The error is one of
// the peer's or the system's, also a late one of an earlier Write, os.ErrDeadlineExceeded, net.ErrClosed, or one of
// Co.
func (c *Conn) Write(p []byte) (int, error) {
	written := 0
	co := c.caller()
	for {
		if err := co.call(); err != nil {
			return written, err
		}
		n, err := c.under.Write(p[written:])
		written += n
		b, blocked := err.(listener.Blocked)
		if !blocked {
			return written, err
		}
		if written == len(p) {
			return written, nil
		}
		if err := co.wait(b); err != nil {
			return written, err
		}
	}
}

// CloseWrite ends what this side writes: the peer reads io.EOF behind the last byte. Reading goes on.
func (c *Conn) CloseWrite() error { return c.under.CloseWrite() }

// Close gives the connection up and returns at once: what was written is still sent, see listener.Conn.Close. Whoever
// else of the task waits for it is told.
func (c *Conn) Close() error {
	if crew := c.co.crew; crew != nil && crew.current != nil {
		crew.current.task.Waker().Wake()
	}
	c.co.dialled = slices.DeleteFunc(c.co.dialled, func(d *listener.Conn) bool { return d == c.under })
	return c.under.Close()
}

// LocalAddr is the address of this end; nil after Close.
func (c *Conn) LocalAddr() net.Addr { return c.under.LocalAddr() }

// RemoteAddr is the address of the peer; nil after Close, and when the system no longer knows.
func (c *Conn) RemoteAddr() net.Addr { return c.under.RemoteAddr() }

// SetDeadline is SetReadDeadline and SetWriteDeadline in one.
func (c *Conn) SetDeadline(at time.Time) error { return c.under.SetDeadline(at) }

// SetReadDeadline has Read return os.ErrDeadlineExceeded from then on; the zero Time takes it away.
func (c *Conn) SetReadDeadline(at time.Time) error { return c.under.SetReadDeadline(at) }

// SetWriteDeadline has Write return os.ErrDeadlineExceeded from then on; the zero Time takes it away.
func (c *Conn) SetWriteDeadline(at time.Time) error { return c.under.SetWriteDeadline(at) }
