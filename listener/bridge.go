package listener

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Bridge is a leaf that calls F on another goroutine, with a net.Conn that blocks and carries the bytes of Conn. It is for
// libraries that start goroutines or block by other means than the connection, such as net/rpc and golang.org/x/crypto/ssh
// (which e2e/libraries tests):
//
//	serve := func(c *listener.Conn) act.Action {
//		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
//			rpc.ServeConn(c)
//			return nil
//		}}
//	}
//
// F and the goroutines that it starts may call all methods of the net.Conn at the same time, Close included. Its deadlines
// are on the system's clock; those of Conn are removed. It has a method CloseWrite. At most 48 KiB are on their way in each direction,
// in addition to the [Limits] of Conn. Write returns when the bytes are on their way, and waits while a peer does not read.
//
// The connection is closed after Close, and at the latest when F has returned: what was written is still sent, while the
// peer takes it, for up to twice Limits.Linger. All calls then return net.ErrClosed, so other
// goroutines that use it end as well. The Bridge is Done when F has returned and all is written. It fails with the error
// of F, but not with io.EOF, and not with net.ErrClosed after Close or an order. A panic in F fails it and aborts the
// connection. What other goroutines panic with ends the process.
//
// After an order to end, Read returns net.ErrClosed when it has returned the bytes that are on their way. Write goes on, so
// F can finish what it has begun. If the task is dropped, the connection is aborted and all calls return net.ErrClosed.
// F does not keep Run from returning then.
//
// Each Bridge has a goroutine of its own for F, from [act.Scheduler.Reserve]: the number of connections bounds them.
type Bridge struct {
	Conn *Conn
	F    func(net.Conn) error

	call     act.Call[error]
	far      *blocking
	out      *chunk // written by F, and not yet by this
	received bool   // nothing more will be
	half     bool   // CloseWrite was passed on
	closing  bool   // Conn accepts the last bytes until a deadline
}

// Act calls F in its first turn, and carries bytes.
func (b *Bridge) Act(t *act.Task) act.Directive {
	if b.far == nil {
		b.begin(t)
	}
	b.far.bell.Set(t.Waker()) // before looking for what other goroutines have done
	returned := b.call.Act(t)
	switch returned {
	case act.Failed: // a panic
		b.fail(net.ErrClosed)
		return returned
	case act.Done:
		b.far.end(net.ErrClosed)
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
	case out == act.Done && returned == act.Done:
		return b.verdict(t)
	case in == act.Yield || out == act.Yield:
		return act.Yield
	}
	return act.Wait
}

func (b *Bridge) begin(t *act.Task) {
	if b.F == nil {
		panic("listener: Bridge without a function")
	}
	_ = b.Conn.SetDeadline(time.Time{})
	far := &blocking{over: make(chan struct{}), local: b.Conn.LocalAddr(), peer: b.Conn.RemoteAddr()}
	far.in.init()
	far.out.init()
	f := b.F
	b.far, b.call.F, b.call.On = far, func() (error, error) { return f(far), nil }, t.Scheduler().Reserve(1)
}

// receive carries bytes to F. While there is no room on the way it does not receive, which holds up the peer.
func (b *Bridge) receive(t *act.Task) act.Directive {
	for range callsPerTurn {
		switch {
		case b.received:
			return act.Wait
		case t.Order() != nil:
			b.endInput(net.ErrClosed)
			return act.Wait
		case b.far.in.n.Load() == onTheWay:
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
		x := newChunk(in)
		b.Conn.Discard(x.to)
		b.far.in.n.Add(1)
		b.far.in.chunks <- x // there is room
	}
	return act.Yield
}

func (b *Bridge) endInput(err error) {
	if !b.received {
		b.received, b.far.readErr = true, err
		close(b.far.in.chunks)
	}
}

// send carries bytes from F. It returns Done when the connection is closed.
func (b *Bridge) send(t *act.Task) act.Directive {
	for range callsPerTurn {
		if b.Conn.stream == nil {
			b.fail(net.ErrClosed)
			return act.Done
		}
		over, half := b.far.isOver(), b.far.half.Load() // before looking for the last bytes
		if b.out == nil && b.far.out.n.Load() > 0 {
			b.out = <-b.far.out.chunks
			b.far.out.n.Add(-1)
		}
		switch {
		case b.out != nil:
			n, err := b.Conn.Write(b.out.rest())
			if b.out.from += n; len(b.out.rest()) == 0 {
				b.out.free()
				b.out = nil
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

// fail ends the calls of F with err, which is that of the connection.
func (b *Bridge) fail(err error) {
	b.endInput(err)
	b.far.end(err)
	b.Conn.Abort()
}

func (b *Bridge) verdict(t *act.Task) act.Directive {
	err := b.call.Value
	if err == nil || err == io.EOF || errors.Is(err, net.ErrClosed) && (b.far.closed.Load() || t.Order() != nil) {
		return act.Done
	}
	return t.Fail(err)
}

// Close ends the calls of F and aborts the connection, unless F has returned.
func (b *Bridge) Close() error {
	if b.far != nil {
		b.fail(net.ErrClosed)
	}
	return b.call.Close()
}

// callsPerTurn is how many chunks a turn carries each way.
const callsPerTurn = 16

// onTheWay is how many chunks a lane holds. One more is in the hands of Read or of the Bridge.
const onTheWay = 2

// chunk is a part of the bytes on their way. At rest there are none.
type chunk struct {
	bytes    [16 << 10]byte
	from, to int
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// newChunk takes as much of p as there is room for.
func newChunk(p []byte) *chunk {
	x := chunks.Get().(*chunk)
	x.from, x.to = 0, copy(x.bytes[:], p)
	return x
}

func (x *chunk) rest() []byte { return x.bytes[x.from:x.to] }
func (x *chunk) free()        { chunks.Put(x) }

// lane is one direction.
type lane struct {
	chunks chan *chunk
	n      atomic.Int32 // chunks that are in it; the scheduler's thread looks here, and does not wait for the channel

	calls sync.Mutex // one call of Read or Write at a time

	mu       sync.Mutex
	deadline time.Time // zero: none
	timer    *time.Timer
	bell     chan struct{} // a deadline has passed
}

func (l *lane) init() {
	l.chunks = make(chan *chunk, onTheWay)
	l.bell = make(chan struct{}, 1)
}

func (l *lane) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

func (l *lane) setDeadline(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.deadline, l.timer = time.Time{}, nil
	if !at.IsZero() {
		left := time.Until(at)
		l.deadline = time.Now().Add(left) // on the monotonic clock, as the timer
		l.timer = time.AfterFunc(left, l.ring)
	}
}

func (l *lane) passed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.deadline.IsZero() && !time.Now().Before(l.deadline)
}

// blocking is the net.Conn of F.
type blocking struct {
	in, out     lane
	current     *chunk // what Read takes from
	bell        act.AtomicWaker
	half        atomic.Bool // CloseWrite was called
	closed      atomic.Bool // Close was called
	local, peer net.Addr

	readErr error // why in is closed
	once    sync.Once
	over    chan struct{} // closed when no call can succeed
	err     error         // why
}

// end ends all calls. The first error counts.
func (c *blocking) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.over)
		c.in.setDeadline(time.Time{})
		c.out.setDeadline(time.Time{})
	})
}

func (c *blocking) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// Read reads at most len(p) bytes. After an error of the connection it first returns what is on its way.
func (c *blocking) Read(p []byte) (int, error) {
	l := &c.in
	l.calls.Lock()
	defer l.calls.Unlock()
	for {
		switch {
		case c.isOver() && c.err == net.ErrClosed:
			return 0, net.ErrClosed
		case l.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case c.current != nil:
			return c.take(p), nil
		}
		over := c.over
		if c.isOver() { // the connection has failed: chunks is closed, behind what is on its way
			over = nil
		}
		select {
		case x, ok := <-l.chunks:
			if !ok {
				return 0, c.readErr
			}
			c.current = x
			if l.n.Add(-1) == onTheWay-1 {
				c.bell.Wake()
			}
		case <-l.bell:
		case <-over:
		}
	}
}

func (c *blocking) take(p []byte) int {
	n := copy(p, c.current.rest())
	if c.current.from += n; len(c.current.rest()) == 0 {
		c.current.free()
		c.current = nil
	}
	return n
}

// Write puts p on its way.
func (c *blocking) Write(p []byte) (written int, err error) {
	l := &c.out
	l.calls.Lock()
	defer l.calls.Unlock()
	for {
		switch {
		case c.isOver():
			return written, c.err
		case c.half.Load():
			return written, net.ErrClosed
		case l.passed():
			return written, os.ErrDeadlineExceeded
		case written == len(p):
			return written, nil
		}
		x := newChunk(p[written:])
		n := x.to
		select {
		case l.chunks <- x:
			l.n.Add(1)
			c.bell.Wake()
			written += n
		case <-l.bell:
			x.free()
		case <-c.over:
			x.free()
		}
	}
}

// CloseWrite closes this side after the calls of Write that are under way. Reading goes on.
func (c *blocking) CloseWrite() error {
	c.out.calls.Lock()
	defer c.out.calls.Unlock()
	if c.isOver() {
		return c.err
	}
	c.half.Store(true)
	c.bell.Wake()
	return nil
}

// Close ends all calls. What was written is still sent.
func (c *blocking) Close() error {
	if c.isOver() {
		return net.ErrClosed
	}
	c.closed.Store(true)
	c.end(net.ErrClosed)
	c.bell.Wake()
	return nil
}

func (c *blocking) LocalAddr() net.Addr  { return c.local }
func (c *blocking) RemoteAddr() net.Addr { return c.peer }

func (c *blocking) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

func (c *blocking) SetReadDeadline(at time.Time) error  { return c.set(&c.in, at) }
func (c *blocking) SetWriteDeadline(at time.Time) error { return c.set(&c.out, at) }

func (c *blocking) set(l *lane, at time.Time) error {
	if c.isOver() {
		return net.ErrClosed
	}
	l.setDeadline(at)
	return nil
}
