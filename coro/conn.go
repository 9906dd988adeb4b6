package coro

import (
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Conn is a net.Conn on a [listener.Conn]. Its calls seem to block: they suspend the coroutine that calls them, and no
// other task. Bytes that are written in a turn are sent together when the turn ends, so they may not have been sent
// when Write returns. After 16 calls in a turn the coroutine is suspended until the next turn, so that a peer cannot
// keep the thread. [Serve] and [Dial] make Conns.
//
// All coroutines of one task may use a Conn: of two coroutines in an act.All, one may read while the other writes. No
// method may be called on another goroutine, not even Close: methods that read, write, close or set a deadline panic
// there, which ends the program if the goroutine is a library's. The package documentation lists libraries that keep
// this rule. Use a [listener.Bridge] for the others.
type Conn struct {
	under *listener.Conn
	co    *Co
}

var _ net.Conn = (*Conn)(nil)

// Conn returns a net.Conn over under for the coroutines of co's task. The owner of under still has to close it.
func (co *Co) Conn(under *listener.Conn) *Conn { return &Conn{under, co} }

// Co returns the coroutine that the Conn was made for: the one that [Serve] runs, or the receiver of [Co.Conn].
func (c *Conn) Co() *Co { return c.co }

// Under returns the [listener.Conn] below c, for calls that a net.Conn does not have; pass their errors to
// [Co.Unblock]. Bytes that it lends are valid until the next call that may suspend the body.
func (c *Conn) Under() *listener.Conn { return c.under }

// caller returns the coroutine that is running.
func (c *Conn) caller() *Co { return c.co.Caller() }

// Read reads at most len(p) bytes and waits if there are none. The error is io.EOF when the peer has closed its side,
// os.ErrDeadlineExceeded, net.ErrClosed, an error of the kernel, or an error that stops the body from waiting (see
// [Co]).
func (c *Conn) Read(p []byte) (int, error) {
	co := c.caller()
	for {
		if err := co.call(); err != nil {
			return 0, err
		}
		n, err := c.under.Read(p)
		b, blocked := err.(act.Blocked)
		if !blocked {
			return n, err
		}
		if err := co.wait(b); err != nil {
			return 0, err
		}
	}
}

// Write queues all of p, and waits while more than Limits.High bytes are queued. The error is one of the kernel,
// possibly caused by an earlier Write, os.ErrDeadlineExceeded, net.ErrClosed, or an error that stops the body from
// waiting (see [Co]).
func (c *Conn) Write(p []byte) (int, error) {
	written := 0
	co := c.caller()
	for {
		if err := co.call(); err != nil {
			return written, err
		}
		n, err := c.under.Write(p[written:])
		written += n
		b, blocked := err.(act.Blocked)
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

// CloseWrite closes the sending side: the peer reads io.EOF after the last byte. Reading goes on. It does not wait. The error
// is net.ErrClosed after Close, or one of the kernel.
func (c *Conn) CloseWrite() error {
	c.caller()
	return c.under.CloseWrite()
}

// Close closes the connection and returns at once. Written bytes are still sent: see [listener.Conn.Close]. Other
// coroutines of the task that wait for the connection are woken and get net.ErrClosed.
func (c *Conn) Close() error {
	c.caller().task.Waker().Wake()
	c.co.dialled = slices.DeleteFunc(c.co.dialled, func(d *listener.Conn) bool { return d == c.under })
	return c.under.Close()
}

// LocalAddr returns the address of this end of the connection, or nil after Close.
func (c *Conn) LocalAddr() net.Addr { return c.under.LocalAddr() }

// RemoteAddr returns the address of the peer, or nil after Close and when the kernel no longer knows it.
func (c *Conn) RemoteAddr() net.Addr { return c.under.RemoteAddr() }

// SetDeadline sets the read and the write deadline: see [Conn.SetReadDeadline] and [Conn.SetWriteDeadline].
func (c *Conn) SetDeadline(at time.Time) error {
	c.caller()
	return c.under.SetDeadline(at)
}

// SetReadDeadline makes Read return os.ErrDeadlineExceeded from the given time on. The zero Time means no deadline.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.caller()
	return c.under.SetReadDeadline(at)
}

// SetWriteDeadline makes Write return os.ErrDeadlineExceeded from the given time on. The zero Time means no deadline.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.caller()
	return c.under.SetWriteDeadline(at)
}
