package listener

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lane"
)

// Bridge is an action that calls F on another goroutine, with a blocking net.Conn that carries the bytes of Conn. It is
// for libraries that start goroutines, or that block on something other than the connection, such as net/rpc and
// golang.org/x/crypto/ssh (which e2e/libraries tests):
//
//	serve := func(c *listener.Conn) act.Action {
//		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
//			rpc.ServeConn(c)
//			return nil
//		}}
//	}
//
// F and the goroutines that it starts may call all methods of the net.Conn at the same time, including Close. Its
// deadlines are on the system clock; the deadlines of Conn are removed. It has a method CloseWrite. At most 48 KiB are
// on their way in each direction, in addition to the [Limits] of Conn. Write returns when the bytes are on their way,
// and waits while a peer does not read. A Write of 64 KiB or more copies nothing: it returns when Conn has taken all of
// it.
//
// The connection is closed after Close, and at the latest when F has returned: written bytes are still sent, while the
// peer takes them, for up to twice Limits.Linger. All calls then return net.ErrClosed, so other goroutines that use the
// net.Conn end as well. The Bridge is Done when F has returned and all is written. It fails with the error of F, unless
// that is io.EOF, or net.ErrClosed after Close or during shutdown. A panic in F fails the Bridge and aborts the
// connection. A panic in another goroutine ends the program, as usual.
//
// When shutdown begins, Read returns the bytes that are on their way and then net.ErrClosed. Write goes on, so F can finish
// its present work. If the task is dropped, the connection is aborted and all calls return net.ErrClosed. F does not keep
// Run from returning then.
//
// Each Bridge has a goroutine of its own for F, in addition to the Offloads of act.Config: the number of connections bounds
// them.
//
// A Bridge without F is for a goroutine that exists already, such as the one of a handler that takes over its connection:
// see [Bridge.NetConn].
type Bridge struct {
	Conn *Conn                // the connection, whose bytes F reads and writes
	F    func(net.Conn) error // called on a goroutine of its own, where it may block; nil if NetConn is called before the first turn

	call     act.Call[error]
	far      *blocking
	received bool // nothing more will be
	half     bool // CloseWrite was passed on
	closing  bool // Conn accepts the last bytes until a deadline
	broken   bool // Conn was aborted
	held     Meter
}

// Act starts F in its first turn, and carries bytes in each turn. It returns Done or Failed at the end: see [Bridge].
func (b *Bridge) Act(t *act.Task) act.Directive {
	d := b.carry(t)
	n := 0
	if !d.Finished() {
		n = b.far.in.Held() + b.far.out.Held()
	}
	b.held.Set(b.Conn, n)
	return d
}

func (b *Bridge) carry(t *act.Task) act.Directive {
	if b.far == nil {
		b.begin()
	}
	b.far.bell.Set(t.Waker()) // before reading what other goroutines have done
	returned := act.Done      // without F nothing returns
	if b.F != nil {
		switch returned = b.call.Act(t); returned {
		case act.Failed: // a panic
			b.fail(net.ErrClosed)
			return returned
		case act.Done:
			b.far.end(theTask)
		}
	}
	in := act.Wait
	if !b.far.isOver() {
		in = b.receive(t)
	} else if !b.closing {
		b.closing = true
		_ = b.Conn.SetWriteDeadline(t.Scheduler().Clock().Wall().Add(b.Conn.settings.limits.Linger))
	}
	out := b.send(t)
	switch {
	case out == act.Done && returned == act.Done && b.far.isOver():
		return b.result(t)
	case in == act.Yield || out == act.Yield:
		return act.Yield
	}
	return act.Wait
}

func (b *Bridge) begin() {
	if b.F == nil {
		panic("listener: Bridge without a function")
	}
	f, on := b.F, b.Conn.Scheduler().Internals().Reserve(1)
	far := b.reach(on)
	b.call.F, b.call.On = func() (error, error) { return f(far), nil }, on
}

// NetConn returns the net.Conn of a Bridge without F, for use on any goroutine. Call NetConn itself on the scheduler's
// thread, before the first turn of the Bridge. The rules for F and its net.Conn hold for these goroutines too, except
// that the Bridge is Done when one of them has called Close and all is written. The Bridge does not fail, not even when
// the connection breaks: the goroutines get the error from their calls. NetConn panics if F is set.
func (b *Bridge) NetConn() net.Conn {
	if b.F != nil {
		panic("listener: NetConn of a Bridge with a function")
	}
	return b.reach(b.Conn.Scheduler().Internals().Reserve(1))
}

// reach returns the far end, for functions of an executor.
func (b *Bridge) reach(on act.Executor) *blocking {
	if b.far == nil {
		_ = b.Conn.SetDeadline(time.Time{})
		far := &blocking{over: make(chan struct{}), local: b.Conn.LocalAddr(), peer: b.Conn.RemoteAddr()}
		far.in, far.out = lane.To(far.over, &far.bell), lane.From(far.over, &far.bell)
		far.in.Wait = lane.WaitOf(on)
		far.out.Wait = far.in.Wait
		b.far = far
	}
	return b.far
}

// receive carries bytes to F. While the lane is full it does not receive, which holds up the peer.
func (b *Bridge) receive(t *act.Task) act.Directive {
	for range callsPerTurn {
		switch {
		case b.received:
			return act.Wait
		case t.Order() != nil:
			b.endInput(net.ErrClosed)
			return act.Wait
		case b.far.in.Full():
			return act.Wait // Read wakes the task
		}
		in, err := b.Conn.Peek(1)
		switch blocked, ok := err.(act.Blocked); {
		case ok:
			blocked.Arm(t)
			return act.Wait
		case err != nil:
			b.endInput(err)
			return act.Wait
		}
		b.Conn.Discard(b.far.in.Put(in))
	}
	return act.Yield
}

func (b *Bridge) endInput(err error) {
	b.received = true
	b.far.in.End(err)
}

// send carries bytes from F. It returns Done when the connection is closed.
func (b *Bridge) send(t *act.Task) act.Directive {
	for range callsPerTurn {
		if b.Conn.stream == nil {
			if !b.broken { // another task has closed it
				b.fail(net.ErrClosed)
			}
			return act.Done
		}
		over, half := b.far.isOver(), b.far.out.Finished() // before taking the last bytes
		switch p := b.far.out.Front(); {
		case p != nil:
			n, err := b.Conn.Write(p)
			if b.far.out.Discard(n); n == len(p) {
				continue
			}
			if blocked, ok := err.(act.Blocked); ok {
				blocked.Arm(t)
				return act.Wait
			}
			b.fail(err)
		case over:
			_ = b.Conn.Close()
		case half && !b.half:
			b.half = true
			if err := b.Conn.CloseWrite(); err != nil {
				b.fail(err)
			}
		default:
			return act.Wait
		}
	}
	return act.Yield
}

// fail ends the calls of F with err, which is that of the connection. Read returns what is on its way first, unless err is
// net.ErrClosed.
func (b *Bridge) fail(err error) {
	b.broken = true
	b.endInput(err)
	b.far.out.End(err)
	if err == net.ErrClosed {
		b.far.end(theTask)
	}
	b.Conn.Abort()
}

func (b *Bridge) result(t *act.Task) act.Directive {
	err := b.call.Value
	if err == nil || err == io.EOF || errors.Is(err, net.ErrClosed) && (b.far.closed() || t.Order() != nil) {
		return act.Done
	}
	return t.Fail(err)
}

// Close aborts the connection and ends the calls that F has made of it, unless F has returned. A scheduler calls it
// when the task ends. It returns nil.
func (b *Bridge) Close() error {
	if b.far != nil {
		b.fail(net.ErrClosed)
	}
	return b.call.Close()
}

// Describe implements [act.Describer]: the task waits for the connection, and for F, which reads, writes and returns
// when it likes.
func (b *Bridge) Describe(d *act.Description) {
	d.Of(b.Conn)
	switch {
	case b.far == nil:
	case b.F != nil:
		b.call.Describe(d)
	case !b.far.isOver():
		d.WaitsFor("the goroutines that use its net.Conn")
	}
}

// callsPerTurn is how many chunks a turn carries each way.
const callsPerTurn = 16

// blocking is the net.Conn of F.
type blocking struct {
	in, out     *lane.Lane
	bell        act.AtomicWaker
	over        chan struct{} // closed when no call can succeed
	by          atomic.Int32  // which side has closed it
	local, peer net.Addr
}

const (
	theTask   int32 = 1 + iota
	theCaller       // of Close
)

// end ends all calls. It reports whether this was the first call of end.
func (c *blocking) end(by int32) bool {
	first := c.by.CompareAndSwap(0, by)
	if first {
		close(c.over)
	}
	return first
}

// closed reports whether Close was called in time.
func (c *blocking) closed() bool { return c.by.Load() == theCaller }

func (c *blocking) isOver() bool { return lane.IsClosed(c.over) }

// Read reads at most len(p) bytes. After an error of the connection it first returns the bytes that are on their way.
func (c *blocking) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	return n, errorOf(err)
}

// Write puts p on its way.
func (c *blocking) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	return n, errorOf(err)
}

// errorOf turns an error of a lane into one of a net.Conn.
func errorOf(err error) error {
	if err == lane.ErrOver {
		return net.ErrClosed
	}
	return err
}

// CloseWrite closes this side after the calls of Write that are under way. Reading goes on.
func (c *blocking) CloseWrite() error { return errorOf(c.out.Finish()) }

// Close ends all calls. Written bytes are still sent.
func (c *blocking) Close() error {
	if !c.end(theCaller) {
		return net.ErrClosed
	}
	c.in.SetDeadline(time.Time{})
	c.out.SetDeadline(time.Time{})
	c.bell.Wake()
	return nil
}

func (c *blocking) LocalAddr() net.Addr  { return c.local }
func (c *blocking) RemoteAddr() net.Addr { return c.peer }

func (c *blocking) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

func (c *blocking) SetReadDeadline(at time.Time) error  { return c.set(c.in, at) }
func (c *blocking) SetWriteDeadline(at time.Time) error { return c.set(c.out, at) }

func (c *blocking) set(l *lane.Lane, at time.Time) error {
	if c.isOver() {
		return net.ErrClosed
	}
	l.SetDeadline(at)
	return nil
}
