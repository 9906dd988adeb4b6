package monitor

import (
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// source is common to the sockets of one service, or of one kind of dialled connections, on a scheduler.
type source struct {
	e       *readiness
	limiter *engine.Limiter
	local   bool // Unix sockets: after a short read there may be more
}

func (e *readiness) sourceOf(local bool, limiter *engine.Limiter) *source {
	src := source{e: e, limiter: limiter, local: local}
	if e.source == nil || *e.source != src {
		e.source = &src
	}
	return e.source
}

// adopt makes a socket of a connected non-blocking descriptor, which it owns from then on. The caller has acquired a
// place of the limiter, which the socket releases when its descriptor closes, after lingering. After an error the
// descriptor is closed and the place released.
func (src *source) adopt(fd int) (*socket, error) {
	k := &socket{source: src, fd: int32(fd), since: src.e.tick()}
	slot, err := src.e.register(fd, netpoll.In|netpoll.Out, k)
	if err != nil {
		_ = src.e.os.Close(fd) // the error that matters is the other one
		src.limiter.Release()
		return nil, err
	}
	k.slot = slot
	src.e.counts.Open++
	return k, nil
}

// socket is a Stream over a descriptor. At rest it takes 48 bytes; out has the state for a peer that does not read, and
// for closing.
//
//	open ──CloseWrite──▶ ending ─(queue empty: half-closed)─▶ ended
//	  │                                                         │
//	  └──Close──▶ lingering: flush ▶ half-close ▶ discard until EOF, or time is up ──▶ closed
type socket struct {
	source *source
	reader act.Waker
	out    *outbound // nil at rest
	fd     int32     // -1: closed
	slot   uint32
	ready  netpoll.Ready
	ahead  uint8 // the number of what was received ahead: see batch; 0: nothing
	state  socketState
	since  uint32 // the tick when bytes last went either way
}

type socketState uint16

const (
	dialing    socketState = 1 << iota // the connect is not decided yet
	ending                             // CloseWrite was called
	ended                              // the write side is closed
	finished                           // the peer's EOF was received
	lingering                          // Close was called
	discarding                         // in Engine.again
	full                               // SendFile found no room, and the event that reports some is still to come
	forEnd                             // reader waits for the end, and not for input; see AwaitEnd
	taken                              // the kernel has taken everything, at least once
	gathered                           // the batch has bytes to send
	bulk                               // counts in the highest bits: so many receives of few bytes until it receives ahead again
)

const bulky = 7 * bulk

// outbound is the part of a socket that is needed only while something is queued, or it is closed.
//
//	refs    r0          r1           what is sent in this order: two bytes of queue, r0, one, r1, three
//	queue      ──▶ 2 r0 1 r1 3
type outbound struct {
	k       *socket
	queue   []byte // copies of bytes that were taken and not sent: queue[sent:]
	sent    int
	refs    []ref // bytes that were taken without a copy
	shared  int   // bytes of refs
	behind  int   // bytes of queue after the last of refs
	writers engine.Writers
	err     error // why nothing more can be sent
	timer   act.Timer
	account budget.Account // of queue
	since   uint32         // the tick when the kernel last took some of the queue, or when it began
	lent    *output        // nil: only the scheduler's thread sends
}

// ref is bytes that are never changed, after so many bytes of the queue that follow the previous ref.
type ref struct {
	behind  int
	p       []byte
	message *budget.Message
}

const (
	fewest  = 512 // bytes are worth a ref; fewer are copied
	refSize = 48
)

var errWriteClosed = errors.New("monitor: the write side was closed") // wraps nothing: a bug of the caller

func (k *socket) Lend(most int) ([]byte, error) {
	if k.ahead != 0 {
		return k.source.e.batch.lend(k, most), nil
	}
	if err := k.receivable(); err != nil {
		return nil, err
	}
	e := k.source.e
	p := e.loans.Room(e.s)
	n, err := k.receive(p[:min(most, len(p))])
	if err != nil {
		return nil, err
	}
	return e.loans.Lend(n), nil
}

func (k *socket) Receive(p []byte) (int, error) {
	if k.ahead != 0 {
		return copy(p, k.source.e.batch.lend(k, len(p))), nil
	}
	if err := k.receivable(); err != nil {
		return 0, err
	}
	return k.receive(p)
}

// receivable avoids a system call that would only find nothing.
func (k *socket) receivable() error {
	switch {
	case k.fd < 0:
		return net.ErrClosed
	case k.ready&netpoll.In != 0:
		return nil
	case k.out != nil && k.out.err != nil:
		return k.out.err
	}
	return ErrWouldBlock
}

func (k *socket) receive(p []byte) (int, error) {
	e := k.source.e
	n, err := e.os.Receive(int(k.fd), p)
	if err != nil {
		return k.refused(p, err)
	}
	k.received(n, len(p))
	return n, nil
}

// received notes that n bytes were received, where there was room for so many.
func (k *socket) received(n, room int) {
	e := k.source.e
	k.since = e.tick()
	e.counts.Receives++
	e.counts.Received += uint64(n)
	switch {
	case n > few:
		k.state |= bulky
	case k.state&bulky != 0:
		k.state -= bulk
	}
	if n < room {
		k.shortRead()
	}
}

// refused interprets the error of a receive.
func (k *socket) refused(p []byte, err error) (int, error) {
	switch {
	case err == syscall.EAGAIN && k.ready&netpoll.Priority != 0: // a signal may have caused it, see netpoll
		k.ready &^= netpoll.Priority
		return k.receive(p)
	case err == syscall.EAGAIN:
		k.ready &^= netpoll.In
		return 0, ErrWouldBlock
	case err == io.EOF:
		k.state |= finished
		k.peerClosed() // perhaps no event has reported it yet
		return 0, k.eof()
	}
	k.fail(err) // kept, or a later call would report a normal end
	return 0, err
}

// eof returns what an EOF means. The kernel reports a reset once, and then a normal end: a send may have returned the
// error, or no call yet if the reset came after the peer's end.
func (k *socket) eof() error {
	if err := k.broken(); err != nil {
		return err
	}
	return io.EOF
}

// shortRead takes a short read to mean that everything was received, which saves a system call. This is not so on a
// Unix socket, where ancillary data splits reads; nor with Priority or Partial, because TCP stops at the mark of
// out-of-band data; nor after the peer has closed, when the EOF follows without an edge of its own.
func (k *socket) shortRead() {
	if !k.source.local && k.ready&(netpoll.Priority|netpoll.Partial|netpoll.PeerClosed|netpoll.Error) == 0 {
		k.ready &^= netpoll.In
	}
}

func (k *socket) Send(head, p []byte, high int) (int, error) { return k.send(head, p, high, false) }
func (k *socket) SendShared(head, p []byte, high int) (int, error) {
	return k.send(head, p, high, true)
}

func (k *socket) send(head, p []byte, high int, shared bool) (int, error) {
	k.settle()
	if len(head)+len(p) == 0 {
		return 0, k.resend()
	}
	if err := k.sendable(); err != nil {
		return 0, err
	}
	sent := 0
	e := k.source.e
	k.since = e.tick()
	if k.queued() == 0 {
		if e.batch.gather(k, head, p, high) {
			return len(p), nil
		}
		n, err := e.os.Send(int(k.fd), head, p)
		if err != nil && err != syscall.EAGAIN {
			k.fail(err)
			return 0, err
		}
		if k.sent(n, len(head)+len(p)); n == len(head)+len(p) {
			return len(p), nil
		}
		sent = max(0, n-len(head))
		head = head[min(n, len(head)):]
	}
	o := k.outbound()
	if k.queued() == 0 {
		o.since = e.tick()
	}
	o.enqueue(head)
	room := max(0, high-k.queued())
	more := p[sent:][:min(len(p)-sent, room)]
	if shared && len(more) >= fewest {
		o.refer(more, p)
	} else {
		o.enqueue(more)
	}
	return sent + len(more), nil
}

// sent notes that the kernel has taken n of so many bytes, and nothing was queued.
func (k *socket) sent(n, of int) {
	e := k.source.e
	e.counts.Sends++
	e.counts.Sent += uint64(n)
	if n == of {
		k.state |= taken
	} else {
		e.counts.Short++
	}
}

// resend is Send with nothing to send. A short send makes the kernel report room, as the previous one did, so trying
// loses no event.
func (k *socket) resend() error {
	if k.fd < 0 || k.state&lingering != 0 {
		return net.ErrClosed
	}
	if k.queued() > 0 {
		k.flush()
	}
	if k.out != nil {
		return k.out.err
	}
	return nil
}

func (k *socket) sendable() error {
	switch {
	case k.fd < 0:
		return net.ErrClosed
	case k.out != nil && k.out.err != nil:
		return k.out.err
	case k.state&(ending|ended) != 0:
		return errWriteClosed
	}
	return nil
}

func (k *socket) Queued() (int, error) {
	err := k.sendable()
	return k.queued(), err
}

func (k *socket) queued() int {
	if k.out == nil {
		return 0
	}
	return len(k.out.queue) - k.out.sent + k.out.shared
}

func (k *socket) AwaitInput(w act.Waker) {
	k.reader = w
	k.state &^= forEnd
	switch {
	case k.state&dialing != 0:
	case k.fd < 0, k.ready&netpoll.In != 0, k.ahead != 0, k.out != nil && k.out.err != nil: // Lend may do better
		w.Wake()
	}
}

func (k *socket) AwaitOutput(w act.Waker, low int) {
	if k.queued() <= low && k.state&full == 0 {
		w.Wake()
		return
	}
	k.source.e.counts.RoomWaits++
	k.outbound().writers.Await(w, low)
}

func (k *socket) Wake() {
	k.reader.Wake()
	if k.out != nil {
		k.out.writers.Wake(-1)
	}
}

// event handles what the OS reports.
func (k *socket) event(r netpoll.Ready) {
	if r&(netpoll.PeerClosed|netpoll.Error) != 0 {
		r |= netpoll.In // a receive returns the error
	}
	if r&netpoll.PeerClosed != 0 {
		k.peerClosed()
	}
	k.ready |= r
	if k.state&lingering != 0 {
		k.linger()
		return
	}
	if r&(netpoll.Out|netpoll.Error) != 0 {
		k.room()
	}
	if k.state&forEnd != 0 {
		if r&netpoll.Error != 0 {
			_ = k.broken() // which wakes
		}
		return
	}
	if r&netpoll.In != 0 || k.state&dialing != 0 {
		k.reader.Wake()
	}
}

// flush sends as much of the queue as the socket takes.
func (k *socket) flush() {
	o := k.out
	e := k.source.e
	for short := false; !short && k.queued() > 0; {
		head, p := o.front()
		n, err := e.os.Send(int(k.fd), head, p)
		e.giveBuffer(head)
		if err != nil && err != syscall.EAGAIN {
			k.fail(err)
			return
		}
		if n > 0 {
			k.since = e.tick()
			o.since = k.since
		}
		e.counts.Sends++
		e.counts.Sent += uint64(n)
		o.take(n)
		short = n < len(head)+len(p) // else no event would report room
	}
	if k.queued() == 0 {
		o.free()
		k.state |= taken
		k.flushed()
	}
	o.writers.Wake(k.queued())
	k.calm()
}

// flushed closes the write side if CloseWrite waited for the queue.
func (k *socket) flushed() {
	if k.state&(ending|ended) == ending {
		k.state |= ended
		if err := k.source.e.os.CloseWrite(int(k.fd)); err != nil {
			k.fail(err)
		}
	}
}

// fail notes that nothing more can be sent, and wakes the waiting tasks: their next call returns err.
func (k *socket) fail(err error) {
	o := k.outbound()
	o.err = err
	k.source.e.counts.Broken++
	k.state &^= full
	o.free()
	k.Wake()
}

func (k *socket) CloseWrite() error {
	k.settle()
	if err := k.sendable(); err != nil && err != errWriteClosed {
		return err
	}
	k.state |= ending
	if k.queued() == 0 {
		k.flushed()
	}
	if k.out != nil {
		return k.out.err
	}
	return nil
}

func (k *socket) LocalAddr() net.Addr { return k.addr(k.source.e.os.LocalAddr) }
func (k *socket) PeerAddr() net.Addr  { return k.addr(k.source.e.os.PeerAddr) }

func (k *socket) addr(ask func(fd int) net.Addr) net.Addr {
	if k.fd < 0 {
		return nil
	}
	return ask(int(k.fd))
}

// outbound returns the outbound part, and makes it if there is none.
func (k *socket) outbound() *outbound {
	if k.out == nil {
		k.out = k.source.e.takeOutbound()
		k.out.k = k
	}
	return k.out
}

// calm gives the outbound part back when nothing is in it.
func (k *socket) calm() {
	if o := k.out; o != nil && o.err == nil && o.lent == nil && k.queued() == 0 && k.state&lingering == 0 {
		k.out = nil
		k.source.e.giveOutbound(o)
	}
}

// enqueue appends a copy of p to the queue.
func (o *outbound) enqueue(p []byte) {
	if len(p) == 0 {
		return
	}
	if o.queue == nil {
		o.queue = o.k.source.e.takeBuffer()
	}
	if o.sent > 0 && len(o.queue)+len(p) > cap(o.queue) { // before growing, use the room in front
		o.queue, o.sent = o.queue[:copy(o.queue, o.queue[o.sent:])], 0
	}
	o.queue = append(o.queue, p...)
	o.behind += len(p)
	o.count()
}

// refer queues p, a part of message, which is never changed.
func (o *outbound) refer(p, message []byte) {
	o.refs = append(o.refs, ref{o.behind, p, o.k.source.e.budget.Refer(message)})
	o.behind, o.shared = 0, o.shared+len(p)
	o.count()
}

// count counts the memory of the queue without shared bytes.
func (o *outbound) count() {
	if o.account.Owner == nil {
		o.account.Owner = o
	}
	o.k.source.e.budget.Set(&o.account, cap(o.queue)+cap(o.refs)*refSize)
}

// front returns the first bytes to be sent, in two parts. Short ones are put together in head, a buffer.
func (o *outbound) front() (head, p []byte) {
	copies := o.queue[o.sent:]
	if len(o.refs) == 0 {
		return nil, copies
	}
	for i := range 2*len(o.refs) + 1 { // copies and refs in turn
		p = copies
		switch n := i / 2; {
		case n == len(o.refs):
		case i%2 == 0:
			p, copies = copies[:o.refs[n].behind], copies[o.refs[n].behind:]
		default:
			p = o.refs[n].p
		}
		if len(head)+len(p) > bufferSize {
			return head, p
		}
		if head == nil {
			head = o.k.source.e.takeBuffer()
		}
		head = append(head, p...)
	}
	return head, nil
}

// take removes the first n bytes, which were sent.
func (o *outbound) take(n int) {
	gone := 0
	for i := range o.refs {
		r := &o.refs[i]
		copies := min(n, r.behind)
		some := min(n-copies, len(r.p))
		n -= copies + some
		o.sent += copies
		r.behind -= copies
		r.p = r.p[some:]
		o.shared -= some
		if len(r.p) > 0 {
			break
		}
		o.k.source.e.budget.Forget(r.message)
		gone++
	}
	o.refs = slices.Delete(o.refs, 0, gone)
	o.sent += n
	o.behind -= n
}

// free gives the memory of the queue back.
func (o *outbound) free() {
	e := o.k.source.e
	for _, r := range o.refs {
		e.budget.Forget(r.message)
	}
	e.giveBuffer(o.queue)
	o.queue, o.refs, o.sent, o.shared, o.behind = nil, nil, 0, 0, 0
	e.budget.Set(&o.account, 0)
}

// Close closes the socket in stages: see linger.
func (k *socket) Close(within time.Duration) {
	if k.fd < 0 || k.state&lingering != 0 {
		return
	}
	k.dismiss()
	e, o := k.source.e, k.outbound()
	k.state |= lingering | ending
	e.counts.Lingers++
	e.counts.Lingering++
	e.s.Internals().KeepRunning(1)
	if k.linger(); k.fd >= 0 {
		now := e.s.Now()
		e.s.CallAt(&o.timer, now+min(within, math.MaxInt64-now), o)
	}
}

// dismiss wakes the waiting tasks for the last time: the task that closes the socket need not be the one that waits.
func (k *socket) dismiss() {
	k.settle()
	k.source.e.batch.drop(k)
	k.Wake()
	k.state &^= full
	k.reader = act.Waker{}
	if k.out != nil {
		k.out.account.Owner = k.out
		if k.out.lent != nil {
			k.out.lent.Return()
		}
	}
}

// Abort closes the socket at once.
func (k *socket) Abort() {
	if k.fd >= 0 {
		k.dismiss()
		k.source.e.counts.Aborts++
		k.release(k.source.e.os.Reset)
	}
}
