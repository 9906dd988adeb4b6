package coro

import (
	"io"
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
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

// Serve makes the Handler of a service of one that is written in straight lines. When body returns the connection is
// closed in stages, after a panic or a drop it is aborted. io.EOF, as a Read at the end returns it, is no failure.
//
// On an order it goes on until body returns: see Co.UntilOrder. Run waits for the last bytes of a closed connection,
// and for its peer to close, up to Limits.Linger.
func Serve(body func(*Conn) error) func(*listener.Conn) act.Action {
	if body == nil {
		panic("coro: Serve without a body")
	}
	p := &program{of: body, body: func(co *Co) error {
		if err := body(co.conn); err != io.EOF {
			return err
		}
		return nil
	}}
	return func(under *listener.Conn) act.Action {
		x := &struct {
			Co
			Conn
		}{Co{program: p}, Conn{under: under}}
		x.Conn.co, x.Co.conn = &x.Co, &x.Conn
		return (*routine)(&x.Co)
	}
}

// Dial connects to address, "host:port" or "unix:" and a path. The connection is the body's to close; if that is stopped
// or panics before, it is aborted. (One that another task is to have is dialled by a listener.Connect.) Bound it with
// Within: the system may try for minutes. It fails with a *listener.ConnectError.
func Dial(co *Co, address string, l listener.Limits) (*Conn, error) {
	connect := listener.Connect{Address: address, Limits: l}
	if err := co.Do(&connect); err != nil {
		return nil, err
	}
	c := connect.Conn()
	co.dialled = append(co.dialled, c)
	return co.Conn(c), nil
}

// abortDialled is for a body that did not come to it: it may have been unwound in the middle of its cleaning up.
func (co *Co) abortDialled() {
	for _, c := range co.dialled {
		c.Abort()
	}
	co.dialled = nil
}
