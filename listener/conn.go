package listener

import (
	"errors"
	"math"
	"net"
	"os"
	"time"
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/monitor"
)

// ErrTooLong is returned by Peek when more bytes would be unread than Limits.Read allows, by Push for a message that is
// longer than Limits.High, and by Length.Append. Line and Frame wrap it in a PeerError.
var ErrTooLong = errors.New("listener: more bytes at once than the limit allows")

// Conn is a connection that never blocks: bytes in order, both ways. Peek lends the bytes that have arrived, and
// Discard consumes them. Bytes given to Write are sent without further calls. Back-pressure is the default: not reading
// holds up the peer, and a peer that does not read holds up Write. After Close every call returns net.ErrClosed.
//
// A Conn belongs to a scheduler, and there to the service that accepted it, or to the task that dialled it. Any code on
// that scheduler may use it, even the turn of another task and a posted function: bytes written there are sent when
// that turn ends, or after the posted functions of the pass. Several writers use Push, which takes all of a message or
// nothing. Any number of tasks can wait for room: all are woken when there is some, in the order in which they began to
// wait. One task can wait for input: a later one takes the place of the earlier, which is no longer woken.
type Conn struct {
	stream   monitor.Stream // nil: closed
	settings *settings
	buffers  *buffers // nil at rest
}

// buffers is what a Conn needs in a turn in which it reads or writes, while it has unread bytes or deadlines, and after
// Abort, for the peer.
type buffers struct {
	// What every message needs, in one cache line.
	c      *Conn // nil: closed in this turn
	cache  *cache
	lent   []byte // unread, received in this turn: the stream's memory
	gather []byte // written in this turn and not sent yet; only its memory outlives the turn

	shared []byte // in place of gather: bytes that are never changed, written in this turn and not sent yet
	ending bool   // TurnEnd is going to be called
	inBand bool   // after Abort: see EndsInBand
	own    []byte // unread, kept over turns; never together with lent
	buffer []byte // where own lies
	deadlines
	account budget.Account
	held    int      // bytes, by Meters
	peer    net.Addr // after Abort
	loans   [][]byte // all that was lent in this turn; only with the race detector, see poison
}

// Scheduler returns the scheduler that the connection belongs to, even after Close. Any goroutine may call it, to post
// to that scheduler.
func (c *Conn) Scheduler() *act.Scheduler { return c.settings.cache.s }

// Peek returns all unread bytes, without consuming them. It receives only if fewer than n bytes are unread. The bytes
// are lent until the turn ends, even after Discard and Close, and must not be changed. Use [Conn.Discard] to consume
// them.
//
// With fewer than n bytes the error says why: an act.Blocked, io.EOF when the peer sends nothing more,
// os.ErrDeadlineExceeded, ErrTooLong when n is beyond Limits.Read, net.ErrClosed, or an error of the kernel. The unread
// bytes are returned with it. A large n costs no memory by itself: the buffer takes at most twice the unread bytes,
// plus 4 KiB.
func (c *Conn) Peek(n int) ([]byte, error) {
	if c.stream == nil {
		return nil, net.ErrClosed
	}
	if c.buffers != nil {
		c.activate() // what is lent must stay where it is until the turn ends
	}
	for {
		unread := c.unread()
		if len(unread) >= n {
			return unread, nil
		}
		if n > c.settings.limits.Read {
			return unread, ErrTooLong
		}
		if c.buffers != nil && c.buffers.passed(c.buffers.read) {
			return unread, os.ErrDeadlineExceeded
		}
		var err error
		if len(unread) > 0 {
			err = c.extend()
		} else if c.heldBack() {
			err = monitor.ErrWouldBlock
		} else if unread, err = c.stream.Lend(c.settings.limits.Read); err == nil {
			b := c.activate()
			b.lent = unread
			if race.Enabled {
				b.loans = append(b.loans, unread)
			}
		}
		switch err {
		case nil:
		case monitor.ErrWouldBlock:
			return c.unread(), (*blockedInput)(c)
		default:
			return c.unread(), err
		}
	}
}

func (c *Conn) unread() []byte {
	switch b := c.buffers; {
	case b == nil:
		return nil
	case len(b.lent) > 0:
		return b.lent
	default:
		return b.own[:len(b.own):len(b.own)] // without the spare capacity: an append makes a copy
	}
}

// extend receives once and appends to the unread bytes, which then lie in the connection's own buffer. That grows with
// the bytes that have arrived, since a peer may announce much and send little, and doubles.
func (c *Conn) extend() error {
	b := c.activate()
	b.keep(len(c.unread()) + 1)
	b.count()
	got, err := c.stream.Receive(b.own[len(b.own):min(cap(b.own), c.settings.limits.Read)])
	b.own = b.own[:len(b.own)+got]
	return err
}

// Buffered returns the number of bytes that were received and are unread. It does not receive more.
func (c *Conn) Buffered() int { return len(c.unread()) }

// Discard consumes the first n unread bytes, as after a Peek. It panics if there are fewer. After Close it does nothing.
func (c *Conn) Discard(n int) {
	if n == 0 || c.stream == nil {
		return
	}
	if n < 0 || n > len(c.unread()) {
		panic("listener: Discard of more than is unread")
	}
	if b := c.activate(); len(b.lent) > 0 {
		b.lent = b.lent[n:]
	} else {
		b.own = b.own[n:]
	}
}

// Read is Peek, copy and Discard in one, for callers with memory of their own. Unlike an io.Reader it returns an
// act.Blocked error instead of waiting. If nothing is unread and p has 4 KiB or more, it receives straight into p. Its
// errors are as for [Conn.Peek].
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) >= gathered && c.stream != nil && c.Buffered() == 0 { // there is nothing to copy
		if b := c.buffers; b != nil && b.passed(b.read) {
			return 0, os.ErrDeadlineExceeded
		}
		if c.heldBack() {
			return 0, (*blockedInput)(c)
		}
		n, err := c.stream.Receive(p)
		if err == monitor.ErrWouldBlock {
			err = (*blockedInput)(c)
		}
		return n, err
	}
	in, err := c.Peek(min(1, len(p)))
	n := copy(p, in)
	c.Discard(n)
	return n, err
}

// Write takes p, or as much of it as the water marks allow, and returns how much. It does not keep p. Small writes are
// gathered and sent with one call when the turn ends; beyond 4 KiB they are sent at once. Bytes that the socket refuses
// are queued, at most about Limits.High, and sent later without a turn of the task.
//
// If Write takes less than all of p, the error is an act.Blocked, woken when at most Limits.Low bytes are queued;
// os.ErrDeadlineExceeded; net.ErrClosed; or an error of the kernel, possibly from an earlier Write. After a kernel
// error nothing more can be written. With an empty p the error reports whether anything would be taken. Write is for the
// scheduler's thread.
func (c *Conn) Write(p []byte) (int, error) {
	if c.stream == nil {
		return 0, net.ErrClosed
	}
	if b := c.buffers; b != nil && b.gathers(len(p)) {
		b.gather = append(b.gather, p...)
		return len(p), nil
	}
	return c.write(p, false)
}

// gathers reports whether n more bytes are gathered, as the bytes before them in this turn: there was room.
func (b *buffers) gathers(n int) bool {
	return len(b.gather) > 0 && len(b.gather)+n <= gathered && b.write == 0
}

func (c *Conn) write(p []byte, shared bool) (int, error) {
	queued, err := c.stream.Queued()
	if err != nil {
		return 0, err
	}
	b, high := c.activate(), c.settings.limits.High
	switch {
	case b.passed(b.write):
		return 0, os.ErrDeadlineExceeded
	case queued >= high:
		return 0, (*blockedOutput)(c)
	}
	n, err := b.put(p, high, shared)
	if err == nil && n < len(p) {
		err = (*blockedOutput)(c)
	}
	return n, err
}

// put takes as much of p as there is room for below high.
func (b *buffers) put(p []byte, high int, shared bool) (int, error) {
	queued := 0
	if shared = shared && len(p) > 0; shared {
		queued, _ = b.c.stream.Queued() // an error is that of sending
	}
	switch {
	case shared && b.written() == 0 && len(p) <= gathered:
		b.shared = p
		return len(p), nil
	case queued > 0: // to gather would spare no call
		if err := b.c.send(); err != nil {
			return 0, err
		}
	default:
		fits := b.written()+len(p) <= gathered
		if b.gather == nil && (fits || len(b.shared) > 0) {
			b.gather = b.cache.takeBuffer()
		}
		b.gather, b.shared = append(b.gather, b.shared...), nil // a copy of the shared bytes, since more follow
		if fits {
			b.gather = append(b.gather, p...)
			return len(p), nil
		}
	}
	n, err := b.give(p, high, shared)
	b.gather = b.gather[:0]
	return n, err
}

// give gives the gathered bytes to the stream, and as much of p as there is room for below high.
func (b *buffers) give(p []byte, high int, shared bool) (int, error) {
	if shared {
		if s, ok := As[monitor.SharedSender](b.c); ok {
			return s.SendShared(b.gather, p, high)
		}
	}
	return b.c.stream.Send(b.gather, p, high)
}

// written returns how many bytes were written in this turn and not sent yet.
func (b *buffers) written() int { return len(b.gather) + len(b.shared) }

// send sends them.
func (b *buffers) send() error {
	_, err := b.give(b.shared, math.MaxInt, len(b.shared) > 0)
	b.gather, b.shared = b.gather[:0], nil
	return err
}

// WriteString is [Conn.Write] for a string. It does not copy it.
func (c *Conn) WriteString(p string) (int, error) {
	return c.Write(unsafe.Slice(unsafe.StringData(p), len(p))) // Write does not change or keep it
}

// Queued returns how many written bytes wait in the connection because the kernel has not taken them. After Close it is 0.
func (c *Conn) Queued() int {
	if c.stream == nil {
		return 0
	}
	n, _ := c.stream.Queued()
	if c.buffers != nil {
		n += c.buffers.written()
	}
	return n
}

// Room returns how many bytes Write is certain to take now, in one call or in several of this turn: as many as can be
// queued up to Limits.High, or at least gathered. With 0, Write of nothing says why: an act.Blocked or another error. nil
// means that bytes gathered in this turn fill the room until the turn ends. It costs no system call.
func (c *Conn) Room() int {
	if c.stream == nil {
		return 0
	}
	queued, err := c.stream.Queued()
	high := c.settings.limits.High
	if err != nil || queued >= high {
		return 0
	}
	b := c.buffers
	if b == nil {
		return max(gathered, high-queued)
	}
	if b.passed(b.write) {
		return 0
	}
	return max(gathered, high-queued) - b.written()
}

// Sent first sends the gathered bytes. It returns nil when all written data has been handed to the kernel, which does
// not mean that the peer has it. Otherwise the error is an act.Blocked, woken when nothing is queued;
// os.ErrDeadlineExceeded, by the deadline of Write; net.ErrClosed; or an error of the kernel, possibly from an earlier
// Write. A task that waits for nil before Close can take as long as it likes; Close alone gives up after Limits.Linger.
// Sent works after CloseWrite too.
func (c *Conn) Sent() error {
	if err := c.send(); err != nil {
		return err
	}
	queued, err := c.stream.Queued()
	if queued == 0 && err == nil {
		_, _ = c.stream.Send(nil, nil, 0) // what waits for a batch of sends
		queued, err = c.stream.Queued()
	}
	switch {
	case queued == 0 && err == nil:
		return nil
	case queued == 0: // a late error, or CloseWrite was called before: CloseWrite tells them apart
		return c.stream.CloseWrite()
	case c.buffers != nil && c.buffers.passed(c.buffers.write):
		return os.ErrDeadlineExceeded
	}
	return (*blockedEmptying)(c)
}

// Flush sends the bytes gathered in this turn without waiting for its end, and tries once more to send queued bytes. It
// never blocks: bytes that the socket refuses are queued. Its errors are as for [Conn.Write], except act.Blocked.
//
// Queued bytes are sent without Flush too, but only when the kernel reports room. Linux does so when a third of the
// send buffer is free, which may be 4 MB. To measure how fast a peer reads, call Flush now and then before Queued. With
// nothing gathered and nothing queued it costs no system call.
func (c *Conn) Flush() error {
	if c.stream == nil {
		return net.ErrClosed
	}
	before, _ := c.stream.Queued() // an error is the next call's
	if err := c.send(); err != nil {
		return err
	}
	if now, _ := c.stream.Queued(); before == 0 && now > 0 {
		return nil // it was tried just now
	}
	_, err := c.stream.Send(nil, nil, 0) // what is queued, or waits for a batch of sends
	return err
}

// send sends the bytes gathered in this turn.
func (c *Conn) send() error {
	if c.stream == nil {
		return net.ErrClosed
	}
	b := c.buffers
	if b == nil || b.written() == 0 {
		return nil
	}
	err := b.send()
	b.cache.giveBuffer(b.gather) // for the next connection of this turn
	b.gather = nil
	return err
}

// CloseWrite closes the sending side: the peer reads io.EOF after the last byte. Reading goes on. Its errors are as for
// [Conn.Write], except act.Blocked.
func (c *Conn) CloseWrite() error {
	if c.stream == nil {
		return net.ErrClosed
	}
	if err := c.send(); err != nil {
		return err
	}
	return c.stream.CloseWrite()
}

// Close closes the connection and returns at once. Written bytes are still sent, and the peer has up to Limits.Linger
// to take them and to close its side, without a turn of the task; meanwhile [act.Scheduler.Run] does not return. A
// second Close does nothing; every other call then returns net.ErrClosed. Close is for the scheduler's thread.
func (c *Conn) Close() error { return c.close(c.settings.limits.Linger) }

func (c *Conn) close(linger time.Duration) error {
	if c.stream == nil {
		return nil
	}
	err := c.send()
	stream := c.leave()
	if err != nil {
		stream.Abort()
		return err
	}
	stream.Close(linger)
	return nil
}

// Abort closes the connection and discards bytes that were not sent. The peer sees a reset. RemoteAddr still returns
// its address, for a log. Abort is for the scheduler's thread; another goroutine posts a function: see [Conn.Scheduler].
func (c *Conn) Abort() {
	if c.stream != nil {
		known := &buffers{peer: c.RemoteAddr(), inBand: c.Internals().EndsInBand()}
		stream := c.leave()
		c.buffers = known
		stream.Abort()
	}
}

// leave separates the connection from its stream. Lent bytes stay valid until the turn ends: buffers that have lent
// something are recycled only then.
func (c *Conn) leave() monitor.Stream {
	stream := c.stream
	c.stream = nil
	if b := c.buffers; b != nil {
		c.buffers = nil
		b.timer.Stop()
		if b.held = 0; b.account.Bytes() > 0 {
			b.cache.budget.Set(&b.account, 0)
		}
		b.c = nil
		if !b.ending {
			b.recycle()
		}
	}
	return stream
}

// Describe implements [act.Describer]: it adds what tasks wait for at this connection, such as "input from
// 127.0.0.1:49152". Your own Describe method passes the connection to [act.Description.Of].
func (c *Conn) Describe(d *act.Description) {
	if c.stream != nil && c.settings.cache.budget.Paused() && c.holdsNothing() {
		d.WaitsFor("memory for what comes: the budget of its scheduler is reached")
	}
	if stream, ok := As[act.Describer](c); ok {
		stream.Describe(d)
	}
}

// LocalAddr returns the address of this end, nil after Close or Abort.
func (c *Conn) LocalAddr() net.Addr {
	if c.stream == nil {
		return nil
	}
	return c.stream.LocalAddr()
}

// RemoteAddr returns the address of the peer, even after Abort. It returns nil after Close, and when the kernel no
// longer knows the address.
func (c *Conn) RemoteAddr() net.Addr {
	if c.stream == nil {
		if c.buffers != nil {
			return c.buffers.peer
		}
		return nil
	}
	return c.stream.PeerAddr()
}

// activate gives the connection its buffers, and registers them for the end of the turn.
func (c *Conn) activate() *buffers {
	if b := c.buffers; b != nil && b.ending {
		return b
	}
	return c.begin()
}

func (c *Conn) begin() *buffers {
	b := c.buffers
	if b == nil {
		b = c.settings.cache.takeBuffers(c)
		c.buffers = b
	}
	b.ending = true
	b.cache.s.Internals().AtTurnEnd(b)
	return b
}

// TurnEnd sends the gathered bytes, keeps the unread ones, and gives the rest back.
func (b *buffers) TurnEnd() {
	b.ending = false
	c := b.c
	if c == nil { // closed meanwhile
		b.recycle()
		return
	}
	if b.written() > 0 {
		_ = b.send() // an error is kept for the next call, and wakes the tasks that are armed
	}
	if b.buffer != nil || len(b.lent) > 0 {
		b.settle()
		b.count()
	}
	if queued, _ := c.stream.Queued(); queued > 0 {
		c.claim()
	}
	b.lent = nil
	b.poison()
	if b.own == nil && b.read|b.write == 0 && b.held == 0 {
		c.buffers = nil
		b.recycle()
		return
	}
	b.cache.giveBuffer(b.gather)
	b.gather = nil
}

// keep moves the unread bytes into the connection's own buffer, with room for n in all, of which at most one is not there
// yet. An outgrown buffer is left to the collector: it may still be lent in this turn.
func (b *buffers) keep(n int) {
	unread := b.own
	if len(b.lent) > 0 {
		unread = b.lent
	} else if cap(b.own) >= n {
		return
	}
	if race.Enabled {
		b.loans = append(b.loans, b.own)
	}
	if size := max(n, len(unread)); size <= gathered {
		b.buffer = b.cache.takeBuffer()
	} else {
		b.buffer = make([]byte, 0, max(len(unread), min(2*len(unread), b.c.settings.limits.Read)))
	}
	b.own, b.lent = append(b.buffer, unread...), nil
}

// settle keeps only the unread bytes, in a buffer of the connection's own with room after them. It runs at the end of a
// turn, when nothing of the buffer is lent, and moves no more bytes than were taken since the last time.
func (b *buffers) settle() {
	switch {
	case len(b.own) == 0:
		b.cache.giveBuffer(b.buffer)
		b.own, b.buffer = nil, nil
	case cap(b.buffer)-cap(b.own) >= len(b.own):
		b.own = append(b.buffer[:0], b.own...)
	}
	if len(b.lent) > 0 {
		b.keep(0)
	}
}

// recycle gives b back, with everything in it.
func (b *buffers) recycle() {
	b.poison()
	b.cache.giveBuffer(b.buffer)
	b.cache.giveBuffers(b)
}

// poison overwrites, with the race detector, the bytes lent in this turn, so that tests notice a loan that is kept
// longer.
func (b *buffers) poison() {
	if race.Enabled {
		for _, loan := range b.loans {
			race.Spoil(loan)
		}
		b.loans = b.loans[:0]
	}
}
