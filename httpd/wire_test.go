package httpd_test

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// wire is a connection whose client is the test: a monitor.Stream that is fed in pieces and records what happens. It
// lends one piece at a time, and overwrites it when the turn is over.
type wire struct {
	s     *act.Scheduler
	in    []string // the pieces that are on their way
	end   error    // what comes after them: io.EOF or a reset; nil: nothing yet
	room  int      // for how much the client has room
	out   []byte   // what it was sent
	queue []byte   // what waits for room
	half  bool     // nothing more is sent
	state state
	left  int // unread bytes when it was given up
	// linger is how long the client has to close its side as well.
	linger time.Duration

	reader, writer act.Waker
	low            int
	loans          [][]byte
	lent           uint64 // the turn of the loans
}

// state is what became of a wire.
type state string

const (
	open    state = "open"
	closed  state = "closed" // in stages
	aborted state = "aborted"
)

// plenty is room for all that a server says.
const plenty = 1 << 30

func (w *wire) Lend(most int) ([]byte, error) {
	w.spoil()
	switch {
	case w.state != open:
		return nil, net.ErrClosed
	case len(w.in) > 0:
	case w.end != nil:
		return nil, w.end
	default:
		return nil, monitor.ErrWouldBlock
	}
	n := min(most, len(w.in[0]))
	p := []byte(w.in[0][:n])
	if w.in[0] = w.in[0][n:]; w.in[0] == "" {
		w.in = w.in[1:]
	}
	w.loans, w.lent = append(w.loans, p), w.s.Internals().TurnCount()
	return p, nil
}

func (w *wire) Receive(p []byte) (int, error) {
	in, err := w.Lend(len(p))
	return copy(p, in), err
}

// spoil overwrites what was lent in an earlier turn.
func (w *wire) spoil() {
	if len(w.loans) == 0 || w.lent == w.s.Internals().TurnCount() {
		return
	}
	for _, p := range w.loans {
		for i := range p {
			p[i] = '#'
		}
	}
	w.loans = w.loans[:0]
}

func (w *wire) Send(head, p []byte, high int) (int, error) {
	if _, err := w.Queued(); err != nil {
		return 0, err
	}
	w.drain()
	sent := 0
	if len(w.queue) == 0 {
		n := min(w.room, len(head)+len(p))
		w.room -= n
		sent = max(0, n-len(head))
		w.out = append(append(w.out, head[:n-sent]...), p[:sent]...)
		head = head[n-sent:]
	}
	w.queue = append(w.queue, head...)
	more := p[sent : sent+min(len(p)-sent, max(0, high-len(w.queue)))]
	w.queue = append(w.queue, more...)
	return sent + len(more), nil
}

var errWriteClosed = errors.New("the write side was closed")

func (w *wire) Queued() (int, error) {
	switch {
	case w.state != open:
		return 0, net.ErrClosed
	case w.end != nil && w.end != io.EOF:
		return 0, w.end
	case w.half:
		return len(w.queue), errWriteClosed
	}
	return len(w.queue), nil
}

func (w *wire) AwaitInput(x act.Waker) {
	if w.reader = x; len(w.in) > 0 || w.end != nil || w.state != open {
		x.Wake()
	}
}

func (w *wire) AwaitOutput(x act.Waker, low int) {
	if w.writer, w.low = x, low; len(w.queue) <= low || w.end != nil && w.end != io.EOF || w.state != open {
		x.Wake()
	}
}

// AwaitEnd makes a wire a monitor.CloseNotifier.
func (w *wire) AwaitEnd(x act.Waker) (half bool, err error) {
	if w.reader = x; w.end == nil || w.end == io.EOF {
		return w.end == io.EOF, nil
	}
	return false, w.end
}

func (w *wire) Wake() {
	w.reader.Wake()
	w.writer.Wake()
}

func (w *wire) CloseWrite() error {
	w.half = true
	return nil
}

func (w *wire) Close(linger time.Duration) {
	w.linger = linger
	w.leave(closed)
}

func (w *wire) Abort() { w.leave(aborted) }

func (w *wire) leave(how state) {
	if w.state != open {
		return
	}
	w.state = how
	for _, piece := range w.in {
		w.left += len(piece)
	}
	w.Wake()
}

func (w *wire) LocalAddr() net.Addr { return nil }
func (w *wire) PeerAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711} }

// feed has pieces come, in one go.
func (w *wire) feed(pieces ...string) {
	for _, p := range pieces {
		if p != "" {
			w.in = append(w.in, p)
		}
	}
	w.reader.Wake()
}

// finish has the client send nothing more, or break the connection.
func (w *wire) finish(err error) {
	w.end = err
	w.Wake()
}

// take has the client take so much more.
func (w *wire) take(n int) {
	w.room += n
	if w.drain(); len(w.queue) <= w.low {
		w.writer.Wake()
	}
}

// drain sends what waits for room, as far as there is.
func (w *wire) drain() {
	n := min(w.room, len(w.queue))
	w.out, w.queue, w.room = append(w.out, w.queue[:n]...), w.queue[n:], w.room-n
}

// fileWire is a wire that the bytes of a file need not be read for.
type fileWire struct{ *wire }

func plainStream(w *wire) monitor.Stream { return w }
func fileStream(w *wire) monitor.Stream  { return fileWire{w} }

func (w fileWire) SendFile(f *os.File, offset int64, n int) (int, error) {
	if _, err := w.Queued(); err != nil {
		return 0, err
	}
	if len(w.queue) > 0 || w.room == 0 {
		return 0, monitor.ErrWouldBlock
	}
	p := make([]byte, min(n, w.room))
	k, err := f.ReadAt(p, offset)
	if k == 0 && err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	}
	w.out, w.room = append(w.out, p[:k]...), w.room-k
	return k, nil
}

// AwaitOutput waits for room even if nothing is queued.
func (w fileWire) AwaitOutput(x act.Waker, low int) {
	if w.room > 0 || w.end != nil || w.state != open {
		w.wire.AwaitOutput(x, low)
		return
	}
	w.writer, w.low = x, low
}

// lendWire is a wire whose sending side can be lent. That is its own Output.
type lendWire struct {
	fileWire
	loans int
	sent  uint64
	short bool // the latest call found no more room
	holds bool // what there is no room for is taken, and sent by the next call
	held  []byte
}

func lendStream(w *wire) monitor.Stream { return &lendWire{fileWire: fileWire{w}} }

func (w *lendWire) LendOutput() monitor.Output {
	w.loans++
	return lentWire{w}
}

type lentWire struct{ w *lendWire }

func (o lentWire) Send(head, p []byte) (int, error) {
	if _, err := o.w.Queued(); err != nil {
		return 0, err
	}
	all := append(head[:len(head):len(head)], p...)
	if o.w.holds {
		o.w.held = append(o.w.held, all...)
		n, err := o.moved(min(o.w.room, len(o.w.held)), o.w.held[:min(o.w.room, len(o.w.held))], o.w.room >= len(o.w.held))
		o.w.held = o.w.held[n:]
		return len(all), err
	}
	n := min(o.w.room, len(all))
	return o.moved(n, all[:n], n == len(all))
}

func (o lentWire) SendFile(f *os.File, offset int64, n int) (int, error) {
	p := make([]byte, min(n, o.w.room))
	k, err := f.ReadAt(p, offset)
	if len(p) > 0 && k == 0 {
		return 0, err
	}
	return o.moved(k, p[:k], k > 0)
}

func (o lentWire) moved(n int, p []byte, all bool) (int, error) {
	o.w.out, o.w.room, o.w.sent, o.w.short = append(o.w.out, p...), o.w.room-n, o.w.sent+uint64(n), !all
	if !all {
		return n, monitor.ErrWouldBlock
	}
	return n, nil
}

func (o lentWire) Sent() uint64      { return o.w.sent }
func (o lentWire) Full() bool        { return o.w.short && o.w.room == 0 }
func (o lentWire) Await(x act.Waker) { o.w.AwaitOutput(x, 0) }
func (o lentWire) Return()           { o.w.loans-- }
