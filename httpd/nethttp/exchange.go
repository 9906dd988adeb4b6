package nethttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/lane"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// exchange is the action of a request that a handler answers on a goroutine, and what the two share.
type exchange struct {
	req     http.Request // the first, for handlers that call runtime.SetFinalizer
	ctx     values
	adapter *Adapter
	cancel  context.CancelFunc
	on      *executor     // that calls the handler
	over    chan struct{} // closed when calls of the handler that wait must not wait any more

	// The task's.
	w      *httpd.Response
	r      *httpd.Request
	intake intake
	toCome int64 // of the body's length; if that is not known, less than 0
	answer answer
	held   listener.Meter

	// Of both.
	bell    act.AtomicWaker
	in      *lane.Lane // of the body, nil: there is none
	out     atomic.Pointer[lane.Lane]
	head    atomic.Pointer[head] // before what is in out
	ask     atomic.Pointer[ask]
	timed   struct{ read, write atomic.Bool } // deadlines of the handler take the place of the server's time-outs
	slow    atomic.Bool                       // the client has not taken the answer in time
	late    atomic.Bool                       // a deadline for reads has ended one: the connection has to be closed
	state   atomic.Int32
	trailer http.Header // of the request, before the end of in

	// The goroutine's, and the task's when the handler has returned.
	writer   writer
	pieces   int           // of the answer that were handed on
	sender   *httpd.Sender // sends the others; nil: the task does
	borrowed bool          // sender was asked for
	last     *head         // what no lane has carried
	failure  *act.Panic
}

// intake is how much of the client's input the task has taken.
type intake uint8

const (
	untouched intake = iota // the body stays unread, since the handler has not read
	receiving
	received // nothing more of the body will be
	gone     // likewise, and the client has closed its side
)

// answer is how far the task is with the answer.
type answer uint8

const (
	headless answer = iota
	applied         // the head was given to w
	breaking        // likewise, and the connection is aborted in the next turn
	switched        // the connection was hijacked
)

// The states of a handler.
const (
	running   int32 = iota
	returned        // the handler has
	abandoned       // the task has ended before
	strayed         // and the handler has returned since
)

const (
	// piecesPerTurn bounds how many pieces of an answer are sent in a turn.
	piecesPerTurn = 16
	// From which piece, or from which size on a goroutine sends by itself. To begin with that costs a turn of the task.
	alonePieces = 2
	aloneSize   = 16 << 10
	// mostNamed bounds how much of a path is in a name.
	mostNamed = 200
)

// ask is a request of the goroutine to the task, which it waits for.
type ask struct {
	do     func(*ask) reply // on the task: again, as long as the error is a Blocked
	answer chan<- reply     // has room
}

// reply is what came of it.
type reply struct {
	conn   net.Conn
	sender *httpd.Sender
	err    error
}

// newExchange has the handler called. It fails if the target of the request is none of a URL.
func newExchange(a *Adapter, w *httpd.Response, r *httpd.Request) (*exchange, error) {
	on := executors.Get(r.Scheduler())
	x := &exchange{adapter: a, w: w, r: r, on: on, over: make(chan struct{})}
	req := &x.req
	var err error
	if x.cancel, err = a.request(req, r, &x.ctx); err != nil {
		return nil, err
	}
	x.writer = writerFor(r, req, x)
	if req.ContentLength != 0 {
		x.in = lane.To(x.over, &x.bell)
		x.in.Demand, x.in.Wait = true, on.wait
		// 100 (Continue) is sent when the handler reads. A handler that hijacks before it reads gets the chunks as they are.
		if x.toCome = req.ContentLength; x.toCome > 0 && r.Header("Expect") == nil {
			x.intake = receiving
		}
		req.Body = &body{x: x}
		x.receive(nil)
	} else {
		x.intake = received
	}
	on.begun++
	on.running.Add(1)
	on.Execute(x.serve)
	return x, nil
}

// serve calls the handler.
func (x *exchange) serve() {
	defer func() {
		x.cancel()
		x.adapter.running.Add(-1) // before the client can know of it
		x.on.running.Add(-1)
		if x.state.CompareAndSwap(running, returned) {
			x.end()
		} else if x.state.Store(strayed); x.failure != nil && x.failure.Value != http.ErrAbortHandler {
			x.writer.log.Error("nethttp: a handler panicked whose connection was hijacked or lost", zap.Error(x.failure),
				zap.ByteString("stack", x.failure.Stack))
		}
		x.bell.Wake()
	}()
	x.failure = goexit
	defer func() {
		if v := recover(); v != nil {
			x.failure = panics.Recovered(v)
		}
	}()
	defer removeFiles(&x.req)
	x.adapter.handler().ServeHTTP(&x.writer, &x.req)
	var late error
	if out := x.out.Load(); out != nil {
		_, late = out.Write(nil) // a deadline has passed
	}
	x.last = x.writer.finish(late)
	x.failure = nil
}

// end ends all calls that wait. Timers of deadlines would keep the request until they fire.
func (x *exchange) end() {
	close(x.over)
	for _, l := range x.lanes() {
		if l != nil {
			l.StopTimer()
		}
	}
}

// goexit is the failure of a handler that has called runtime.Goexit.
var goexit = &act.Panic{Value: errors.New("runtime.Goexit")}

// Act carries bytes both ways.
func (x *exchange) Act(t *act.Task) act.Directive {
	d := x.carry(t)
	n := 0
	for _, l := range x.lanes() {
		if l != nil && !d.Finished() {
			n += l.Held()
		}
	}
	x.held.Set(x.r.Conn(), n)
	return d
}

// lanes returns the lanes of both directions; nil: there is none.
func (x *exchange) lanes() [2]*lane.Lane { return [2]*lane.Lane{x.in, x.out.Load()} }

func (x *exchange) carry(t *act.Task) act.Directive {
	x.bell.Set(t.Waker()) // before checking what the handler has done
	over, broken := x.state.Load() == returned, error(nil)
	x.time(over)
	if over {
		broken = x.broken()
	} else {
		x.receive(t)
	}
	for range piecesPerTurn {
		err, more := x.send(over && x.failure == nil)
		switch {
		case broken != nil && err != nil && !isBlocked(err):
			return t.Fail(broken)
		case err != nil:
			return listener.Next(t, err)
		case more:
			continue
		case broken != nil && x.answer == applied: // what there is of the answer goes out before the end
			_ = x.w.Flush() // the next turn aborts the connection anyway
			x.answer = breaking
			return act.Yield
		case broken != nil:
			return t.Fail(broken)
		case over || x.answer == switched:
			return act.Done
		}
		if x.intake == received && x.r.Ended(t) {
			x.intake = gone
			x.cancel()
		}
		return act.Wait
	}
	return act.Yield
}

// time has the deadlines of a handler take the place of the server's time-outs, until it has returned.
func (x *exchange) time(over bool) {
	if x.timed.read.Load() {
		x.r.Body.SetTimeout(-1)
	}
	switch {
	case !x.timed.write.Load():
	case over:
		x.w.SetTimeout(0)
	default:
		x.w.SetTimeout(-1)
	}
}

// broken returns why the client of a handler that has returned sees its connection aborted, or nil.
func (x *exchange) broken() error {
	switch {
	case x.failure == nil && !x.writer.cut():
		return nil
	case x.failure == nil || x.failure.Value == http.ErrAbortHandler:
		return httpd.ErrAbort
	}
	return fmt.Errorf("%w: %w", httpd.ErrAbort, x.failure)
}

// receive puts the body on its way, when the handler reads, as far as there is room. It has t woken for more if the
// handler waits: a client is not too slow while nobody waits for it.
func (x *exchange) receive(t *act.Task) {
	for x.intake < received && !x.in.Full() {
		wanted := x.in.Wanted()
		switch {
		case wanted:
			x.intake = receiving
		case x.intake == untouched:
			return
		}
		err := x.receivePiece()
		blocked, waits := err.(act.Blocked)
		switch {
		case waits:
			if wanted && t != nil {
				blocked.Arm(t)
			}
			return
		case err != nil:
			x.trailer = headerOf(x.r.Body.Trailers())
			x.intake = received
			x.in.End(err)
			return
		}
	}
}

// receivePiece receives some of the body. If much is to come, or comes in chunks, that is as much as a lane has memory for. Over
// HTTP/2 it has been received.
func (x *exchange) receivePiece() (err error) {
	n := 0
	if (x.toCome >= lane.Long || x.toCome < 0) && x.req.ProtoMajor == 1 {
		n, err = x.in.Fill(x.receiveInto)
	} else if p, failure := x.r.Body.Peek(); failure != nil {
		err = failure
	} else {
		n = x.in.Put(p)
		x.r.Body.Discard(n)
	}
	x.toCome -= int64(n)
	return err
}

// receiveInto fills p as far as it can. For the last bytes of p a connection would receive more than they are.
func (x *exchange) receiveInto(p []byte) (n int, err error) {
	for len(p)-n >= 4<<10 && err == nil {
		var k int
		k, err = x.r.Body.Read(p[n:])
		n += k
	}
	if n > 0 {
		err = nil // it comes again
	}
	return n, err
}

// send sends one piece of the answer, and reports whether there may be more. An error says why it cannot be sent.
func (x *exchange) send(over bool) (err error, more bool) {
	asked := x.ask.Load() // before checking what was written before it
	var p []byte
	out := x.out.Load()
	if out != nil {
		p = out.Front()
	}
	if h := x.head.Load(); h != nil && x.answer == headless { // it is there before the first piece
		x.answer = applied
		h.apply(x.w)
		if err := x.w.Flush(); err != nil && !isBlocked(err) {
			return err, false
		}
	}
	if p != nil {
		n, err := x.w.Write(p)
		out.Discard(n)
		return err, true
	}
	if asked != nil {
		return x.comply(asked)
	}
	if over {
		return x.finish(), false
	}
	return nil, false
}

// comply does what the goroutine has asked for.
func (x *exchange) comply(a *ask) (err error, more bool) {
	r := a.do(a)
	if isBlocked(r.err) {
		return r.err, false // it is done when there is room
	}
	x.ask.CompareAndSwap(a, nil) // the goroutine may have given it up, and asked for something else
	if x.answer == switched {
		return nil, false
	}
	a.answer <- r
	return nil, true
}

// switchTo gives the connection to the goroutine, which is told by the action that follows.
func (x *exchange) switchTo(a *ask) reply {
	if x.answer == applied {
		if err := x.w.Flush(); err != nil {
			return reply{err: err}
		}
	}
	err := x.w.Hijack(func(c *listener.Conn) act.Action {
		b := &listener.Bridge{Conn: c}
		a.answer <- reply{conn: b.NetConn()}
		return b
	})
	if err == nil {
		x.answer = switched
	}
	return reply{err: err}
}

// finish sends the rest when the handler has returned.
func (x *exchange) finish() error {
	if x.answer == breaking {
		return nil
	}
	h := x.last
	if x.last = nil; h != nil {
		x.answer = applied
		h.close = h.close || x.late.Load() || x.adapter.closes()
	}
	return x.writer.conclude(x.w, h)
}

// When the handler has returned, only the connection is waited for.
func (x *exchange) Describe(d *act.Description) {
	if x.state.Load() == running {
		d.WaitsFor("its http.Handler, on a goroutine")
	}
}

// Close leaves a handler that has not returned to its goroutine. Unless the handler has hijacked the connection, its context
// ends, and a task takes the place of the exchange, so that Run goes on waiting for the handler. When a shutdown drops
// everything there is no such task: it would begin after the next turn.
func (x *exchange) Close() error {
	if x.r.Scheduler().Internals().Here() {
		x.held.Set(x.r.Conn(), 0)
	}
	if !x.state.CompareAndSwap(running, abandoned) {
		return nil
	}
	if x.r.Scheduler().Internals().Here() {
		_, err := x.w.Write(nil)
		x.slow.Store(err == httpd.ErrSlow)
	}
	x.end()
	if out := x.out.Load(); out != nil {
		out.End(net.ErrClosed) // what it has lent must not wait for the turn that has ended by a panic
	}
	if x.answer == switched {
		return nil
	}
	x.cancel()
	if s := x.r.Scheduler(); s.Internals().Here() {
		path := x.r.Path()
		name := fmt.Sprintf("nethttp: %s %s, given up", x.r.Method(), syntax.Escape(path[:min(len(path), mostNamed)]))
		s.Internals().AtTurnEnd(&stray{s: s, state: &x.state, bell: &x.bell, name: name})
	}
	return nil
}

// stray is the task of a handler whose request was given up, because the client has gone or was too slow.
type stray struct {
	s     *act.Scheduler
	state *atomic.Int32
	bell  *act.AtomicWaker
	name  string
}

// TurnEnd begins the task.
func (y *stray) TurnEnd() { y.s.Spawn(y) }

// Act waits until the handler has returned.
func (y *stray) Act(t *act.Task) act.Directive {
	if y.bell.Set(t.Waker()); y.state.Load() == strayed {
		return act.Done
	}
	return act.Wait
}

func (y *stray) Describe(d *act.Description) {
	d.Name = "nethttp: a request, given up"
	d.WaitsFor("its handler to return")
}

func (y *stray) String() string { return y.name }

func isBlocked(err error) bool {
	_, is := err.(act.Blocked)
	return is
}

// What follows is the outlet of the writer, on the goroutine.

func (x *exchange) keeps() bool { return false }

func (x *exchange) start(h *head) {
	h.close = h.close || x.late.Load() || x.adapter.closes()
	x.head.Store(h)
	x.bell.Wake()
}

// write hands on a piece, and waits until there is room for the next. The goroutine sends large pieces by itself, and pieces of
// an answer that is sent bit by bit.
func (x *exchange) write(p []byte) (int, error) {
	if len(p) > 0 {
		if x.pieces++; x.pieces > alonePieces || len(p) >= aloneSize {
			x.borrow()
		}
	}
	if x.sender == nil {
		n, err := x.lane().Write(p)
		return n, x.errorOf(err)
	}
	n, err := x.alone(func(n int64) (int64, error) {
		k, err := x.sender.Write(p[n:])
		return int64(k), err
	})
	return int(n), err
}

// alone has the goroutine send until all is sent. Between two calls of send it waits for room, until the deadline.
func (x *exchange) alone(send func(from int64) (int64, error)) (sent int64, err error) {
	for {
		if _, err := x.lane().Write(nil); err != nil {
			return sent, x.errorOf(err)
		}
		n, err := send(sent)
		if sent += n; err != monitor.ErrWouldBlock {
			return sent, err
		}
		if err := x.request(func(*ask) reply { return reply{err: x.sender.Ready()} }, x.lane().Alarm()).err; err != nil {
			return sent, err
		}
	}
}

// borrow has the goroutine send by itself, if it may.
func (x *exchange) borrow() {
	if x.borrowed {
		return
	}
	x.borrowed = true
	x.sender = x.request(func(*ask) reply {
		s, err := x.w.Lend()
		return reply{sender: s, err: err} // another error than a Blocked is the next call's
	}, x.lane().Alarm()).sender
}

// sendFile sends a part of a file. The error is errors.ErrUnsupported if it has to be read and written.
func (x *exchange) sendFile(f *os.File, offset, n int64) (sent int64, err error) {
	if x.borrow(); x.sender == nil {
		return 0, errors.ErrUnsupported
	}
	return x.alone(func(from int64) (int64, error) { return x.sender.SendFile(f, offset+from, n-from) })
}

// errorOf returns what an error of a lane is for a handler: after ErrOver the request was given up.
func (x *exchange) errorOf(err error) error {
	switch {
	case err != lane.ErrOver:
		return err
	case x.slow.Load():
		return httpd.ErrSlow
	}
	return net.ErrClosed
}

func (x *exchange) lane() *lane.Lane {
	l := x.out.Load()
	if l == nil {
		l = lane.From(x.over, &x.bell)
		l.Wait, l.AtEnd = x.on.wait, x.on.atEnd
		if !x.out.CompareAndSwap(nil, l) {
			l = x.out.Load()
		}
	}
	return l
}

func (x *exchange) inform(h *head) error {
	return x.request(func(*ask) reply { return reply{err: h.inform(x.w)} }, nil).err
}

func (x *exchange) hijack() (conn net.Conn, unread []byte, err error) {
	if x.req.ProtoMajor == 2 { // other requests have the connection, too
		return nil, nil, http.ErrNotSupported
	}
	if x.in != nil {
		rest := x.request(func(*ask) reply {
			x.intake = received
			x.in.End(http.ErrHijacked) // the rest stays unread
			return reply{}
		}, nil)
		if rest.err != nil {
			return nil, nil, rest.err
		}
		x.in.SetDeadline(time.Time{})
		unread, _ = io.ReadAll(x.in) // the error is that of its end
	}
	a := x.request(x.switchTo, nil)
	return a.conn, unread, a.err
}

// request has the task do something, after all that was written. It is given up when there is something in late.
func (x *exchange) request(do func(*ask) reply, late <-chan struct{}) reply {
	answer := make(chan reply, 1)
	a := &ask{do: do, answer: answer}
	x.ask.Store(a)
	x.bell.Wake()
	for done := func() bool { return len(answer) > 0 || lane.IsClosed(x.over) }; x.on.wait != nil && !done(); {
		x.on.wait(done)
	}
	select {
	case v := <-answer:
		return v
	case <-late:
		x.ask.CompareAndSwap(a, nil)
		return reply{} // the next call looks at the deadline
	case <-x.over:
	}
	select {
	case v := <-answer: // it came before the end: that of Hijack is followed by it
		return v
	default:
		return reply{err: x.errorOf(lane.ErrOver)}
	}
}

func (x *exchange) readDeadline(at time.Time) error {
	if x.in != nil {
		x.timed.read.Store(true)
		x.in.SetDeadline(at)
	}
	return nil
}

func (x *exchange) writeDeadline(at time.Time) error {
	x.timed.write.Store(true)
	x.lane().SetDeadline(at)
	return nil
}

// body is the body of a request.
type body struct {
	x      *exchange
	closed atomic.Bool
	ended  atomic.Bool // and the trailers are in the request
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.usable(); err != nil {
		return 0, err
	}
	if len(p) == 0 && b.ended.Load() {
		return 0, io.EOF
	}
	n, err := b.x.in.Read(p)
	return n, b.note(err)
}

// WriteTo spares io.Copy a copy, and gives it large pieces.
func (b *body) WriteTo(w io.Writer) (n int64, err error) {
	for {
		if err := b.usable(); err != nil {
			return n, err
		}
		var failure error // of w
		err := b.note(b.x.in.Use(func(p []byte) (k int) {
			if k, failure = w.Write(p); failure == nil && k < len(p) {
				failure = io.ErrShortWrite
			}
			n += int64(k)
			return k
		}))
		switch {
		case failure != nil:
			return n, failure
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

func (b *body) usable() error {
	if b.closed.Load() || b.x.state.Load() == returned {
		return http.ErrBodyReadAfterClose
	}
	return nil
}

// note notes an error of the lane, and returns what it is for a handler.
func (b *body) note(err error) error {
	if late, is := err.(net.Error); is && late.Timeout() {
		b.x.late.Store(true)
	}
	if err == io.EOF && !b.ended.Swap(true) {
		takeTrailers(&b.x.req.Trailer, b.x.trailer)
	}
	return b.x.errorOf(err)
}

// Close does not wait for the rest, which is thrown away when the answer is sent.
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}
