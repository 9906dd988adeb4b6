package sim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// Completions is a set-up function for [World.Server]. It gives the scheduler a completion engine, which works like
// io_uring(7): there are no descriptors and no readiness, but operations are started and complete some time later. It
// must come before the set-up functions that listen or dial.
func Completions(s *act.Scheduler) error {
	engine.Set(s, &completer{r: runners.Get(s)})
	return nil
}

var runners = act.NewLocal(func(*act.Scheduler) *runner { panic("sim: Completions is for the schedulers of a World only") })

var _ engine.Engine = (*completer)(nil)

// completer is the completion engine of one scheduler, and its Idler.
type completer struct {
	r         *runner
	lingering []*stream
}

// Idle never waits: only the world lets time pass.
func (e *completer) Idle(atMost time.Duration) {
	if atMost != 0 {
		panic("sim: a scheduler wants to sleep, but only the world lets time pass")
	}
}

// Interrupt wakes the scheduler.
func (e *completer) Interrupt() { e.r.wake() }

// Drop aborts the lingering connections.
func (e *completer) Drop() {
	for len(e.lingering) > 0 {
		e.lingering[0].Abort()
	}
}

// later lets an operation complete after a while.
func (e *completer) later(complete func()) {
	w := e.r.w
	w.after(w.dice[network].duration(0, 50*time.Microsecond), complete)
}

// Listen implements engine.Engine. The options of TCP have no effect.
func (e *completer) Listen(o engine.ListenOptions) (engine.Acceptor, error) {
	l, err := e.listen(o)
	if err != nil {
		return nil, err
	}
	d := &acceptor{e: e, l: l, limiter: o.Limiter}
	l.acceptors = append(l.acceptors, d)
	return d, nil
}

func (e *completer) listen(o engine.ListenOptions) (*listening, error) {
	n := &e.r.w.net
	if unix, ok := o.Addr.(*net.UnixAddr); ok {
		if o.Sibling != nil {
			return o.Sibling.(*acceptor).l, nil
		}
		return n.listenUnix(unix.Name, o.Backlog)
	}
	at := o.Addr.(*net.TCPAddr).AddrPort()
	if !at.Addr().IsValid() {
		at = netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
	}
	return n.listenTCP(at, o.Sibling == nil, o.Backlog)
}

// acceptor is an engine.Acceptor. An accept starts when a connection waits and the limiter has room. It completes some
// time later, whether Accept was called or not.
type acceptor struct {
	e       *completer
	l       *listening
	limiter *engine.Limiter
	pending int // accepts that have started
	got     []accept
	waker   act.Waker
	full    bool // the limiter has no room for a waiting connection
	place   act.AtomicWaker
	stopped bool
	closed  bool
}

// accept is the result of an accept that has completed.
type accept struct {
	stream engine.Stream // nil: err
	err    error
}

// arrival lets one of the acceptors accept. If the limiter has no room, all of them wait for it.
func (l *listening) arrival() {
	first := l.n.w.dice[network].choice(len(l.acceptors))
	for i := range l.acceptors {
		d := l.acceptors[(first+i)%len(l.acceptors)]
		if d.begin(); l.pending >= len(l.queue) {
			return
		}
		d.wake()
	}
}

// begin starts an accept for each waiting connection, as far as the limiter has room.
func (d *acceptor) begin() {
	d.full = false
	for !d.stopped && d.l.pending < len(d.l.queue) {
		if d.full = !d.limiter.Acquire(); d.full {
			return
		}
		d.pending++
		d.l.pending++
		d.e.later(d.accepted)
	}
}

// accepted is called when an accept completes. If no connection waits any more, it has no result.
func (d *acceptor) accepted() {
	d.pending--
	d.l.pending--
	w, l := d.e.r.w, d.l
	var a accept
	switch {
	case d.closed || len(l.queue) == 0:
	case w.fault(noDescriptors, d.e.r.server.kernel):
		a.err = fmt.Errorf("%w: %w", engine.ErrShortage, syscall.ENFILE)
	case !l.queue[0].c.local && w.fault(abortedConn, l):
		end := l.queue.pop()
		end.c.disrupt()
		l.refuse(end)
		a.err = fmt.Errorf("%w: %w", engine.ErrConnAborted, syscall.ECONNABORTED)
	default:
		k := &stream{e: d.e, end: l.queue.pop(), limiter: d.limiter}
		k.end.holder = k
		a.stream = k
	}
	if a.stream == nil {
		d.limiter.Release()
	}
	if a.stream != nil || a.err != nil {
		d.got = append(d.got, a)
	}
	d.wake()
}

func (d *acceptor) wake() {
	d.waker.Wake()
	d.e.r.wake()
}

// Accept and the following methods implement engine.Acceptor.
func (d *acceptor) Accept() (engine.Stream, error) {
	switch {
	case d.over():
		return nil, net.ErrClosed
	case len(d.got) > 0:
		a := d.got[0]
		d.got = d.got[1:]
		return a.stream, a.err
	}
	d.begin()
	return nil, monitor.ErrWouldBlock
}

func (d *acceptor) Await(w act.Waker) {
	d.waker = w
	switch {
	case len(d.got) > 0 || d.over():
		w.Wake()
	case d.full:
		d.place.Set(w)
		d.limiter.Await(&d.place)
	}
}

// over reports whether no connection comes any more.
func (d *acceptor) over() bool { return d.closed || d.stopped && d.pending+len(d.got) == 0 }

// Stop starts an accept for each waiting connection. They complete later.
func (d *acceptor) Stop(bool) {
	d.begin()
	d.stopped = true
	d.wake()
}

func (d *acceptor) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	for _, a := range d.got {
		if a.stream != nil {
			a.stream.Abort()
		}
	}
	d.wake()
	l := d.l
	l.acceptors = slices.DeleteFunc(l.acceptors, func(o *acceptor) bool { return o == d })
	if len(l.acceptors) == 0 {
		l.close()
		return l.n.unlink(l.path)
	}
	l.arrival() // the others accept the rest
	return nil
}

func (d *acceptor) Describe(to *act.Description) {
	switch {
	case d.closed:
	case d.full:
		to.WaitsFor("a place for another connection, at the limit")
	case d.waker.Armed():
		to.WaitsFor("connections to " + d.Addr().String())
	}
}

func (d *acceptor) Addr() net.Addr { return d.l.address() }

// Descriptor says that there is none, so that nothing is given away.
func (d *acceptor) Descriptor() (int, error) { return -1, errors.ErrUnsupported }

// Crowded leaves it open whether a client waits.
func (d *acceptor) Crowded() bool { return false }

// Refusals counts nothing: an accept waits for a place.
func (d *acceptor) Refusals() (full, short uint64) { return 0, 0 }

// Dial implements engine.Engine. The options of TCP have no effect.
func (e *completer) Dial(addr net.Addr, _ engine.ConnOptions) (engine.PendingConn, error) {
	k := &stream{e: e, dialing: true}
	var err error
	if unix, ok := addr.(*net.UnixAddr); ok {
		k.end, err = e.r.w.net.dialUnix(unix.Name, k)
	} else {
		k.end, err = e.r.w.net.dialTCP(addr.(*net.TCPAddr).AddrPort(), k)
	}
	if err != nil {
		return nil, err
	}
	k.ready()
	return &dialled{k}, nil
}

// dialled is an engine.PendingConn.
type dialled struct{ k *stream }

func (p *dialled) Stream() (engine.Stream, error) {
	k := p.k
	switch {
	case k == nil:
		return nil, net.ErrClosed
	case k.dialing:
		return nil, monitor.ErrWouldBlock
	}
	p.k = nil
	if err := k.end.takeError(); err != nil {
		k.release(k.end.close)
		return nil, err
	}
	return k, nil
}

func (p *dialled) Await(w act.Waker) {
	if p.k == nil || !p.k.dialing {
		w.Wake()
		return
	}
	p.k.reader = w
}

func (p *dialled) Close() {
	if p.k != nil {
		p.k.Abort()
		p.k = nil
	}
}

// stream is an engine.Stream without readiness. At most one receive and one send are under way.
type stream struct {
	e       *completer
	end     *end
	limiter *engine.Limiter
	dialing bool

	in      []byte // received and not lent
	inErr   error  // after it
	reading bool   // a receive is under way
	reader  act.Waker
	forEnd  bool   // reader waits for the end, and not for input
	half    bool   // the peer is known to have closed its side
	queue   []byte // to be sent
	account budget.Account
	taken   bool // all that was queued, at least once
	outErr  error
	writing bool // a send is under way
	writers engine.Writers
	ending  bool // CloseWrite was called
	closing bool // Close was called
	closed  bool
}

func (k *stream) String() string { return "stream of " + k.e.r.String() }
func (k *stream) number() uint64 { return k.e.r.number() }

// ready is called by the network.
func (k *stream) ready() {
	switch {
	case !k.dialing:
		k.proceed()
	case k.end != nil && k.end.settled(): // without an end the network has not returned it yet
		k.e.later(k.dialled)
	}
}

// dialled is called when a dial completes.
func (k *stream) dialled() {
	if k.dialing {
		k.dialing = false
		k.reader.Wake()
		k.e.r.wake()
	}
}

// proceed lets operations complete that can do something now.
func (k *stream) proceed() {
	if k.closed {
		return
	}
	levels := k.end.levels() // a change is notified
	if k.reading && k.end.readable() {
		k.e.later(k.received)
	}
	if k.writing && levels&(netpoll.Out|netpoll.Error) != 0 {
		k.e.later(k.sent)
	}
	if k.forEnd && (k.end.ended != k.half || k.end.err != 0) {
		k.e.later(k.polled)
	}
}

// polled is called when a poll for the end completes.
func (k *stream) polled() {
	if k.closed || k.closing || k.end.ended == k.half && k.end.err == 0 {
		return
	}
	if k.half = k.end.ended; k.end.err != 0 {
		k.fail(k.end.takeError())
	}
	k.Wake()
	k.e.r.wake()
}

// most bounds the bytes of one operation.
const most = 8 << 10

// received is called when a receive completes, unless there was nothing to receive.
func (k *stream) received() {
	if k.closed || !k.reading {
		return
	}
	p := make([]byte, 1+k.e.r.w.dice[network].below(most)) // not reused: some of it may be lent
	n, err := k.end.receive(p)
	if err == syscall.EAGAIN {
		return // it goes on
	}
	k.reading = false
	if err == nil {
		k.in = p[:n]
	} else {
		k.inErr = err
	}
	if k.closing {
		k.in = nil
		k.goOn()
		return
	}
	if k.half = k.half || err == io.EOF; !k.forEnd || err != nil {
		k.reader.Wake()
		k.e.r.wake()
	}
}

// sent is called when a send completes, unless there was no room.
func (k *stream) sent() {
	if k.closed || !k.writing {
		return
	}
	n, err := k.end.send(nil, k.queue)
	if err == syscall.EAGAIN {
		return
	}
	k.writing = false
	if k.queue = slices.Delete(k.queue, 0, n); len(k.queue) == 0 {
		k.queue, k.taken = nil, true
	}
	k.count()
	if err != nil {
		k.fail(err)
		k.reader.Wake()
	}
	k.push()
	k.writers.Wake(len(k.queue))
	if k.closing {
		k.goOn()
	}
	k.e.r.wake()
}

// fail notes that nothing can be sent any more.
func (k *stream) fail(err error) {
	k.outErr, k.queue = err, nil
	k.count()
}

// count counts the memory of what is queued.
func (k *stream) count() {
	if k.account.Owner == nil {
		k.account.Owner = k
	}
	budget.Of(k.e.r.s).Set(&k.account, cap(k.queue))
}

// HeldFor implements budget.Holder.
func (k *stream) HeldFor(o budget.Owner) (bytes int) {
	k.account.Owner = o
	return k.account.Bytes()
}

// Taken implements budget.Holder.
func (k *stream) Taken() bool { return k.taken }

// Held, Flush and Peer make k the owner of its queue when it has no other. For how long nothing has moved is not known.
func (k *stream) Held() (bytes int, still time.Duration) { return k.account.Bytes(), 0 }
func (k *stream) Flush() error                           { return nil }
func (k *stream) Peer() string                           { return fmt.Sprint(k.PeerAddr()) }

// push starts to send what is queued, or closes the write side when everything is sent.
func (k *stream) push() {
	switch {
	case len(k.queue) > 0 && !k.writing:
		k.writing = true
		k.proceed()
	case len(k.queue) == 0 && k.ending && k.outErr == nil:
		_ = k.end.closeWrite() // an error means that the peer has closed
	}
}

func (k *stream) Lend(most int) ([]byte, error) {
	switch {
	case k.closed || k.closing:
		return nil, net.ErrClosed
	case len(k.in) > 0:
		n := min(most, len(k.in))
		p := k.in[:n:n]
		k.in = k.in[n:]
		return p, nil
	case k.outErr != nil:
		return nil, k.outErr
	case k.inErr != nil:
		return nil, k.inErr
	}
	k.pull()
	return nil, monitor.ErrWouldBlock
}

func (k *stream) Receive(p []byte) (int, error) {
	lent, err := k.Lend(len(p))
	return copy(p, lent), err
}

// pull starts a receive.
func (k *stream) pull() {
	if !k.reading {
		k.reading = true
		k.proceed()
	}
}

var errWriteClosed = errors.New("sim: the write side was closed")

func (k *stream) sendable() error {
	switch {
	case k.closed || k.closing:
		return net.ErrClosed
	case k.outErr != nil:
		return k.outErr
	case k.ending:
		return errWriteClosed
	}
	return nil
}

func (k *stream) Send(head, p []byte, high int) (int, error) {
	if err := k.sendable(); err != nil {
		if len(head)+len(p) == 0 && err == errWriteClosed {
			err = nil // the queue is always being sent
		}
		return 0, err
	}
	k.queue = append(k.queue, head...)
	n := min(len(p), max(0, high-len(k.queue)))
	k.queue = append(k.queue, p[:n]...)
	k.count()
	k.push()
	return n, nil
}

func (k *stream) Queued() (int, error) { return len(k.queue), k.sendable() }

func (k *stream) AwaitInput(w act.Waker) {
	k.reader, k.forEnd = w, false
	if k.closed || k.closing || len(k.in) > 0 || k.inErr != nil || k.outErr != nil {
		w.Wake()
		return
	}
	k.pull()
}

// AwaitEnd implements monitor.CloseNotifier.
func (k *stream) AwaitEnd(w act.Waker) (half bool, err error) {
	switch {
	case k.closed || k.closing:
		return k.half, net.ErrClosed
	case k.outErr != nil:
		return k.half, k.outErr
	case k.inErr != nil && k.inErr != io.EOF:
		return k.half, k.inErr
	}
	k.reader, k.forEnd = w, true
	k.proceed()
	return k.half, nil
}

func (k *stream) AwaitOutput(w act.Waker, low int) {
	if len(k.queue) <= low {
		w.Wake()
		return
	}
	k.writers.Await(w, low)
}

func (k *stream) Wake() {
	k.reader.Wake()
	k.writers.Wake(-1)
}

func (k *stream) CloseWrite() error {
	if err := k.sendable(); err != nil && err != errWriteClosed {
		return err
	}
	if !k.ending {
		k.ending = true
		k.push()
	}
	return nil
}

func (k *stream) Close(linger time.Duration) {
	if k.closed || k.closing {
		return
	}
	k.Wake()
	k.reader, k.account.Owner = act.Waker{}, k
	_ = k.CloseWrite()
	k.closing, k.in = true, nil
	k.e.lingering = append(k.e.lingering, k)
	k.e.r.s.Internals().KeepRunning(1)
	k.e.r.w.after(linger, k.lingered)
	k.goOn()
}

// lingered is called at the end of a linger.
func (k *stream) lingered() {
	switch {
	case k.closed:
	case len(k.queue) > 0:
		k.Abort()
	default:
		k.release(k.end.close)
	}
}

// goOn continues a Close: it discards input, and ends when the peer has closed.
func (k *stream) goOn() {
	switch {
	case k.outErr != nil, k.inErr != nil && (k.inErr != io.EOF || len(k.queue) == 0):
		k.release(k.end.close)
	case k.inErr == nil:
		k.pull()
	}
}

func (k *stream) Abort() {
	if !k.closed {
		k.Wake()
		k.release(k.end.reset)
	}
}

func (k *stream) release(how func()) {
	k.closed, k.queue = true, nil
	k.count()
	how()
	k.limiter.Release()
	if k.closing {
		k.e.lingering = slices.DeleteFunc(k.e.lingering, func(o *stream) bool { return o == k })
		k.e.r.s.Internals().KeepRunning(-1)
		k.e.r.wake()
	}
}

func (k *stream) LocalAddr() net.Addr { return k.end.localAddr() }
func (k *stream) PeerAddr() net.Addr  { return k.end.peerAddr() }

// Describe speaks of all tasks that wait for k.
func (k *stream) Describe(d *act.Description) {
	said := d.Internals()
	said.Peer.Name = k.PeerAddr().String()
	switch {
	case k.closed || !k.reader.Armed():
	case k.dialing:
		d.WaitsFor("the answer to a connect")
	case k.forEnd:
		said.Waits.AddPeer(facts.EndOf, said.Peer)
	default:
		said.Waits.AddPeer("input from ", said.Peer)
	}
	if k.writers.Waiting() {
		said.Waits.AddRoom(len(k.queue), said.Peer)
	}
}
