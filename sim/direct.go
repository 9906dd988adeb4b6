package sim

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Direct is a service whose connections are Streams in completion style: there is no descriptor and no
// readiness, but an operation is handed to the world and completes some time later, as with io_uring(7). It shows
// a handler, and all of package listener, an engine of another kind. Its fields are three of service.TCP's.
type Direct struct {
	Address string // with a number
	Handler func(*listener.Conn) act.Action
	Limits  listener.Limits
}

// Setup listens. It is a set-up function for World.Server.
func (d *Direct) Setup(s *act.Scheduler) error {
	e := completions.Get(s)
	at, err := netip.ParseAddrPort(d.Address)
	if err != nil {
		return err
	}
	l, err := e.r.w.net.listenTCP(at, netpoll.ListenOptions{First: s.Index() == 0})
	if err != nil {
		return err
	}
	maker := listener.NewMaker(s, d.Limits)
	l.direct = func() {
		for l.queue.len() > 0 {
			s.Spawn(&served{conn: maker.Conn(e.adopt(l.queue.pop())), handler: d.Handler})
		}
	}
	s.Install(&door{l: l})
	return nil
}

// door is the demon of a Direct on one scheduler.
type door struct {
	l    *listening
	told bool
}

func (d *door) Act(t *act.Task) act.Directive {
	if d.told {
		return act.Done
	}
	t.Waker() // an order is what it waits for
	return act.Wait
}

func (d *door) Stop(*act.Task, shutdown.Order) { d.told = true }
func (d *door) Close() error                   { d.l.close(); return nil }

// served is the task of one connection; service has its like.
type served struct {
	conn    *listener.Conn
	handler func(*listener.Conn) act.Action
	action  act.Action
	over    bool
}

func (x *served) Act(t *act.Task) act.Directive {
	if x.action == nil {
		x.action = x.handler(x.conn)
	}
	d := x.action.Act(t)
	if !d.Finished() {
		return d
	}
	x.over = true
	_ = x.conn.Close() // an error says that the peer has gone
	return act.Done
}

func (x *served) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := x.action.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

func (x *served) Close() error {
	if !x.over {
		x.conn.Abort()
	}
	if c, ok := x.action.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (x *served) String() string { return act.Name(x.action) }

// completer is the engine of one scheduler: who is closed and not gone.
type completer struct {
	r         *runner
	lingering []*stream
}

var completions = act.NewLocal(func(*act.Scheduler) *completer { panic("sim: Direct is for a scheduler of a World") })

// Drop aborts what lingers.
func (e *completer) Drop() {
	for len(e.lingering) > 0 {
		e.lingering[0].Abort()
	}
}

// stream is a monitor.Stream without readiness. At most one receive and one send are under way.
type stream struct {
	e   *completer
	end *end

	in      []byte // received and not lent
	inErr   error  // behind it
	reading bool   // a receive is under way
	reader  act.Waker
	queue   []byte // taken and not sent
	outErr  error
	writing bool // a send is under way
	low     int
	writer  act.Waker
	ending  bool // CloseWrite was called
	closing bool // Close was called
	closed  bool
}

func (e *completer) adopt(end *end) *stream {
	k := &stream{e: e, end: end}
	end.holder = k
	return k
}

func (k *stream) String() string { return "stream of " + k.e.r.String() }
func (k *stream) number() uint64 { return k.e.r.number() }

// ready is told by the network.
func (k *stream) ready() { k.proceed() }

// proceed has operations that may now do something complete, a little later.
func (k *stream) proceed() {
	if k.closed {
		return
	}
	w := k.e.r.w
	levels := k.end.levels() // who asks is told of a change
	if k.reading && k.end.readable() {
		w.after(w.dice[network].duration(0, 50*time.Microsecond), (*receiving)(k))
	}
	if k.writing && levels&netpoll.Out != 0 {
		w.after(w.dice[network].duration(0, 50*time.Microsecond), (*sending)(k))
	}
}

type (
	receiving stream
	sending   stream
)

// most is what one operation moves.
const most = 8 << 10

func (o *receiving) fire() {
	k := (*stream)(o)
	if k.closed || !k.reading {
		return
	}
	p := make([]byte, 1+k.e.r.w.dice[network].below(most)) // its own: what is lent of it stays
	n, err := k.end.receive(p)
	if n == 0 && err != nil && !isFinal(err) {
		return // as it was
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
	k.reader.Wake()
	k.e.r.wake()
}

func (o *sending) fire() {
	k := (*stream)(o)
	if k.closed || !k.writing {
		return
	}
	n, err := k.end.send(nil, k.queue)
	if err != nil && !isFinal(err) {
		return
	}
	k.writing = false
	k.queue = slices.Delete(k.queue, 0, n)
	if err != nil {
		k.outErr, k.queue = err, nil
		k.reader.Wake()
		k.writer.Wake()
	}
	k.push()
	if len(k.queue) <= k.low {
		k.writer.Wake()
	}
	if k.closing {
		k.goOn()
	}
	k.e.r.wake()
}

func isFinal(err error) bool { return err != syscall.EAGAIN }

// push begins to send what is queued, or ends the write side behind the last of it.
func (k *stream) push() {
	switch {
	case len(k.queue) > 0 && !k.writing:
		k.writing = true
		k.proceed()
	case len(k.queue) == 0 && k.ending && k.outErr == nil:
		_ = k.end.closeWrite() // an error says that the peer has gone
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

// pull begins to receive.
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
	if _, err := k.Queued(); len(head)+len(p) == 0 && err == errWriteClosed {
		return 0, nil // what is queued is always under way
	}
	if err := k.sendable(); err != nil {
		return 0, err
	}
	k.queue = append(k.queue, head...)
	n := min(len(p), max(0, high-len(k.queue)))
	k.queue = append(k.queue, p[:n]...)
	k.push()
	return n, nil
}

func (k *stream) Queued() (int, error) { return len(k.queue), k.sendable() }

func (k *stream) AwaitInput(w act.Waker) {
	k.reader = w
	if k.closed || k.closing || len(k.in) > 0 || k.inErr != nil || k.outErr != nil {
		w.Wake()
		return
	}
	k.pull()
}

func (k *stream) AwaitOutput(w act.Waker, low int) {
	k.writer, k.low = w, low
	if len(k.queue) <= low {
		w.Wake()
	}
}

func (k *stream) Wake() {
	k.reader.Wake()
	k.writer.Wake()
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
	k.reader, k.writer = act.Waker{}, act.Waker{}
	if !k.ending {
		k.ending = true
		k.push()
	}
	k.closing, k.in = true, nil
	k.e.lingering = append(k.e.lingering, k)
	k.e.r.s.Hold(1)
	k.e.r.w.after(linger, (*limit)(k))
	k.goOn()
}

// limit ends a linger.
type limit stream

func (p *limit) fire() {
	k := (*stream)(p)
	switch {
	case k.closed:
	case len(k.queue) > 0:
		k.Abort()
	default:
		k.release(k.end.close)
	}
}

// goOn takes a stream that is being closed further.
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
	k.closed = true
	how()
	if k.closing {
		k.e.lingering = slices.DeleteFunc(k.e.lingering, func(o *stream) bool { return o == k })
		k.e.r.s.Hold(-1)
		k.e.r.wake()
	}
}

func (k *stream) LocalAddr() net.Addr { return k.end.localAddr() }
func (k *stream) PeerAddr() net.Addr  { return k.end.peerAddr() }
