package httpd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// stream is the exchange of HTTP/2: a request and its answer, on a stream of a connection (RFC 9113 5). It is also the task of the
// handler's action, if there is one.
//
// A task costs 64 bytes and 1.5 µs more than the same answer in the connection's turn (1.6 µs): the connection is woken
// once more. As a child of the connection, an action that yields, computes or offloads would hold up all other streams, and none
// could be inspected, cut or fail alone. So only a handler that returns an action has a task.
//
// It is over when the client has the answer, or when the stream was reset, and when the handler has returned. Until then it counts
// for Server.MaxStreams: a client that resets streams does not get many more handlers, see http2Conn.full.
type stream struct {
	*ofStream
	conn   *http2Conn
	in     Request
	out    Response
	head   http2.Head
	behind *stream // the next one in the queue of ready streams
	meter  listener.Meter
	timer  *timeout.Timer // of a handler that waits for content; nil until one does
	course
}

// course is the part of a stream that is new for each request.
type course struct {
	id       uint32
	state    http2.State
	returned bool      // the handler has returned, and so has its action
	watch    watch     // whether the handler wants to know when the client has closed its side
	asks     bool      // the client waits for 100 (Continue)
	handler  act.Child // the handler's action
	waker    act.Waker // of the task
	lost     error     // why the client neither sends nor is told anything
	tunnel   *tunnel   // when another protocol has the stream
	intake
	outlet
}

// intake is the content of the request.
type intake struct {
	body     []byte // what was received
	from     int    // how much of it was discarded
	received int64
	inflow   http2.Inflow
	bad      error     // why no more can be read after body
	reader   act.Waker // of a task that waits for more
	patience patience
	until    time.Duration // when the answer is complete: how long the rest may take, which is thrown away; else 0
	thrown   int           // how much of it was
}

// outlet is the content of the answer.
type outlet struct {
	queue   []byte // what was written
	at      int    // how much of it was sent
	sent    int64
	outflow http2.Outflow
	closing bool      // nothing follows but trailers
	queued  bool      // the stream is among the ready or the starved ones
	calling bool      // the handler is called, and has not returned an action
	direct  uint8     // frames of this turn that were not queued
	writer  act.Waker // of a task that waits for room
	pace    *pace     // of a client that leaves no window
}

// fullQueue is how much of an answer waits at a stream until its handler waits.
const fullQueue = http2.MaxFrame

// directATurn is how many frames of a turn do not wait there.
const directATurn = fullOut / http2.MaxFrame

// keepStreams bounds how many are kept for the next requests.
const keepStreams = 256

// stream returns a stream that is in no use.
func (c *cache) stream(x *http2Conn, id uint32) (s *stream) {
	if n := len(c.streams); n > 0 {
		s = c.streams[n-1]
		c.streams = c.streams[:n-1]
	} else {
		s = &stream{}
		s.in.Body.x, s.out.x, s.in.head = s, s, &s.head.Head
	}
	s.in.reset()
	s.out.reset()
	s.conn, s.ofStream = x, &x.names
	s.id = id
	s.inflow = http2.NewInflow(http2.DefaultWindow)
	s.outflow.Add(int64(x.initial))
	s.in.began = max(1, c.s.Now())
	return s
}

func (c *cache) keep(s *stream) {
	if len(c.streams) < keepStreams && cap(s.head.Text) <= smallHead && s.tunnel == nil {
		s.conn, s.ofStream, s.course = nil, nil, course{}
		c.streams = append(c.streams, s)
	}
}

// serve has the handler answer the request, whose head has come. An answer that is ready leaves with the connection's turn.
func (s *stream) serve(t *act.Task) {
	x, v := s.conn, s.conn.server
	x.cache.counts.requests++
	x.askPeer()
	s.in.version, s.in.kept = http20, true
	if s.in.Body.length, s.asks = s.head.Length, s.head.Continue; s.hasAll() {
		s.in.Body.length, s.asks = 0, false
	}
	s.out.mute = string(s.in.Method()) == "HEAD"
	s.setTimeout(0)
	if s.extended() { // as it would be in HTTP/1.1
		from := uint32(len(s.head.Text))
		s.head.Text = append(s.head.Text, "GET"...)
		s.head.Method = syntax.Span{From: from, To: from + 3}
	}
	var action act.Action
	err := error(nil)
	switch bad := s.head.Refused; {
	case bad != nil:
		err = bad
	case v.tooLarge(s.in.Body.length):
		err = errTooLarge
	default:
		action, err = s.call(v.Handler)
	}
	if action != nil {
		s.handler.Action = action
		t.Scheduler().Spawn(s)
		return
	}
	if failure := s.answer(t, err); failure != nil {
		t.Scheduler().Spawn(&failed{x.names, s.String(), failure})
	}
	if s.tunnel != nil {
		t.Scheduler().Spawn(s)
		return
	}
	s.over()
}

// call calls the handler. Its panic is the end of its stream, and of no other.
func (s *stream) call(h Handler) (a act.Action, err error) {
	s.calling = true
	defer func() {
		s.calling = false
		if v := recover(); v != nil {
			err = panics.Recovered(v)
		}
	}()
	return h(&s.out, &s.in), nil
}

// failed is the task that fails for a handler that has no task.
type failed struct {
	ofStream
	name string
	err  error
}

func (f *failed) Act(t *act.Task) act.Directive { return t.Fail(f.err) }
func (f *failed) String() string                { return f.name }

// Act gives the handler's action a turn.
func (s *stream) Act(t *act.Task) act.Directive {
	s.patience.woken(t.Scheduler().Now())
	s.direct = 0
	if s.watch == heard {
		s.watch = watched
	}
	if s.lost != nil && s.tunnel == nil {
		return act.Done
	}
	d, err := s.handler.Act(t), error(nil)
	s.rest()
	switch {
	case s.tunnel != nil && d == act.Failed && s.lost != nil && errors.Is(t.Scheduler().Internals().Failure(), s.lost):
		return act.Done // it is the client's doing
	case s.tunnel != nil:
		s.waker = t.Waker()
		s.count()
		return d
	case d == act.Failed:
		err = t.Scheduler().Internals().Failure()
	case d == act.Done, d != act.Async && s.out.complete():
	case d == act.Yield:
		return d
	default:
		if len(s.out.body) > 0 {
			_ = s.out.Flush() // an error stays for the next call
		}
		s.waker = t.Waker()
		s.count()
		return d
	}
	if failure := s.answer(t, err); failure != nil {
		return t.Fail(failure)
	}
	if s.tunnel != nil {
		return act.Yield
	}
	return act.Done
}

// answer ends the answer. err is why the handler has not given it. If that is not the client's doing, answer returns what the
// handler's task fails with.
func (s *stream) answer(t *act.Task, err error) (cause error) {
	switch {
	case err != nil:
	case s.extended() && !s.out.leaves() && s.out.status < 300: // the client would take it for a tunnel
		err = errNoTunnel
	default:
		err = s.out.finish()
	}
	if err == nil {
		if s.out.last {
			s.conn.leaveNow()
		}
		if s.out.leaves() {
			s.switchTo()
		}
		return nil
	}
	bad, ofClient := (*syntax.Refusal)(nil), s.lost != nil && errors.Is(err, s.lost) || s.bad != nil && errors.Is(err, s.bad)
	_, panicked := err.(*panics.Panic)
	switch {
	case err == ErrAbort:
	case errors.Is(err, ErrAbort), panicked:
		cause = &failure{err}
	case !errors.As(err, &bad) && !ofClient: // it comes from something else that the handler did
		cause, bad = &failure{err}, errHandler
	}
	switch {
	case s.lost != nil:
	case s.out.progress == gathering && bad != nil && s.refuse(t, bad):
	default:
		s.conn.note(t, "a stream is cut", err)
		s.resetHere(http2.InternalError, err)
	}
	return cause
}

// refuse answers with a status alone.
func (s *stream) refuse(t *act.Task, bad *syntax.Refusal) bool {
	s.conn.note(t, "a request is refused", bad)
	s.out.err = nil
	s.out.StatusOnly(bad.Status)
	return s.out.finish() == nil
}

// Close is called when the task is over. A handler that has neither answered nor failed has panicked or was dropped.
func (s *stream) Close() error {
	err := s.handler.Close()
	s.handler = act.Child{}
	if s.tunnel != nil {
		_ = s.tunnel.conn.Close() // an error means that the stream is lost
	}
	if !s.closing {
		s.resetHere(http2.InternalError, act.ErrDropped)
	}
	s.over()
	return err
}

// Abandon leaves the handler's action to the function that it has offloaded, and the stream to the collector.
func (s *stream) Abandon() act.Action {
	s.resetHere(http2.InternalError, act.ErrDropped)
	return s.handler.Abandon()
}

// Stop passes a shutdown request on to the handler's action.
func (s *stream) Stop(t *act.Task, o shutdown.Order) { s.handler.Stop(t, o) }

// String names the request.
func (s *stream) String() string { return s.in.name() }

// Describe says what the handler waits for.
func (s *stream) Describe(d *act.Description) {
	d.Name = s.in.redacted()
	s.describeClient(d)
	switch {
	case s.patience.since != 0:
		s.conn.timed(d, "more of the request's body", s.patience.since+s.patience.left)
	case s.pace != nil:
		s.conn.timed(d, "the client to take the response", s.pace.cut())
	}
	d.Of(s.handler.Action)
}

// describeClient says who the client is. What the connection waits for is said by its own task.
func (s *stream) describeClient(d *act.Description) {
	said := d.Internals()
	n := said.Waits.Len()
	s.conn.conn.Describe(d)
	said.Waits.Truncate(n)
}

// over is called when the handler has returned. The stream stays until the client has the answer.
func (s *stream) over() {
	s.returned = true
	if !s.settle() {
		s.count()
	}
}

// settle ends the stream if everything is over, and reports whether it is.
func (s *stream) settle() bool {
	if !s.returned || s.lost == nil && s.open() {
		return false
	}
	x := s.conn
	s.report()
	if s.lost == nil && !s.hasAll() && !x.eof {
		if s.until == 0 { // clients do not like it if their upload is reset (RFC 9113 8.1)
			s.until = max(1, x.cache.s.Now()+x.server.restTime())
			s.throw(len(s.body) - s.from)
			x.unwatched = true
		}
		return s.lost != nil // it was too much
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.meter.Set(x.conn, 0)
	x.remove(s)
	if s.lost == nil { // otherwise the handler may have kept the request
		x.cache.keep(s)
	}
	return true
}

// open reports whether the server can send on the stream.
func (s *stream) open() bool { return s.state == http2.Open || s.state == http2.HalfRemote }

// hasAll reports whether the client has ended the request.
func (s *stream) hasAll() bool { return s.state == http2.HalfRemote || s.state == http2.Closed }

// report calls OnResponse.
func (s *stream) report() {
	w := &s.out
	switch w.progress {
	case over:
		return
	case gathering:
		w.status = 0
	}
	w.progress = over
	if f := s.conn.server.OnResponse; f != nil {
		f(w, &s.in)
	}
}

// reset ends the stream without its answer. The handler is told by its next turn, in which its action is closed.
func (s *stream) reset(state http2.State, err error) {
	if s.lost != nil {
		return
	}
	if w := &s.out; !w.mute && w.progress != over {
		w.written = max(0, w.written-int64(s.pending()))
	}
	s.lost, s.state = err, state
	s.out.fail(err)
	s.body, s.from, s.queue, s.at, s.out.whole = nil, 0, nil, 0, nil
	if i := slices.Index(s.conn.starved, s); i >= 0 {
		s.conn.starved = slices.Delete(s.conn.starved, i, i+1)
	}
	s.count()
	s.waker.Wake()
	s.reader.Wake()
	s.writer.Wake()
	if s.tunnel != nil {
		s.tunnel.Wake()
	}
	s.settle()
}

// resetHere is reset by the server, with RST_STREAM.
func (s *stream) resetHere(code http2.Code, err error) {
	if s.lost == nil {
		s.conn.sendReset(s.id, code)
		s.reset(http2.Reset, err)
	}
}

// rest gives memory back that the stream does not need between two turns.
func (s *stream) rest() {
	if len(s.body) == 0 && cap(s.body) > gathered {
		s.conn.cache.content.Put(s.body)
		s.body = nil
	}
}

// count counts the memory that the stream has between two turns.
func (s *stream) count() {
	s.meter.Set(s.conn.conn, cap(s.body)+cap(s.queue)+cap(s.out.body)+cap(s.head.Text)+20*cap(s.head.Fields))
}

// The content of the request.

// admit counts DATA with n bytes of content, or returns what is wrong with it.
func (s *stream) admit(h http2.Header, n int) *http2.Error {
	switch {
	case !s.inflow.Receive(h.Length):
		return &http2.Error{Code: http2.FlowControlError, Stream: s.id, Why: "more DATA than the window of the stream has"} // 9113 6.9.1
	case s.in.Body.length >= 0 && s.received+int64(n) > s.in.Body.length:
		s.inflow.Take(h.Length)
		return &http2.Error{Code: http2.ProtocolError, Stream: s.id, Why: "more DATA than Content-Length says"} // 9113 8.1.1
	}
	if s.received += int64(n); s.conn.server.tooLarge(s.received) && s.bad == nil && !s.extended() {
		s.bad = errTooLarge
		s.reader.Wake()
	}
	return nil
}

// take keeps content that has come.
func (s *stream) take(p []byte) {
	switch {
	case s.bad != nil:
		s.inflow.Take(uint32(len(p)))
		return
	case s.until != 0:
		s.throw(len(p))
		return
	}
	if s.from > 0 && len(s.body)+len(p) > cap(s.body) { // nothing of it is lent in a turn of the connection
		s.body, s.from = append(s.body[:0], s.body[s.from:]...), 0
	}
	if s.body == nil && len(p) > gathered {
		s.body = s.conn.cache.content.Get()
	}
	s.body = append(s.body, p...)
	s.count()
	s.reader.Wake()
}

// throw throws away content that nobody wants, up to a bound.
func (s *stream) throw(n int) {
	s.body, s.from = nil, 0
	s.inflow.Take(uint32(n))
	if s.thrown += n; s.thrown > drainable {
		s.resetHere(http2.NoError, errUnread)
		return
	}
	s.credit()
	s.conn.waker.Wake() // for the time that is left
}

var errUnread = errors.New("httpd: more of a body than the server throws away")

// ends is called when the request has ended, by h.
func (s *stream) ends(h http2.Header) error {
	if s.received < s.in.Body.length {
		return &http2.Error{Code: http2.ProtocolError, Stream: s.id, Why: "less DATA than Content-Length says"} // 9113 8.1.1
	}
	s.state, _ = s.state.Receive(h)
	if s.reader.Wake(); s.tunnel != nil {
		s.tunnel.end.Wake()
	}
	s.settle()
	return nil
}

func (s *stream) ended(t *act.Task) bool {
	s.watch = heard
	return s.lost != nil || s.conn.eof
}

func (s *stream) setTimeout(d time.Duration) {
	s.patience.grant(timeout.Or(cmp.Or(d, s.conn.server.Timeouts.Body), standardBody))
}

func (s *stream) peek() ([]byte, error) {
	switch {
	case s.lost != nil:
		return nil, s.lost
	case s.from < len(s.body):
		s.asks = false // a client that sends does not wait (RFC 9110 10.1.1)
		return s.body[s.from:len(s.body):len(s.body)], nil
	case s.bad != nil:
		return nil, s.bad
	case s.hasAll():
		return nil, io.EOF
	}
	if s.asks && s.out.progress == gathering {
		s.inform(100, nil)
	}
	if s.asks = false; s.patience.left <= 0 {
		s.bad = errSlowBody
		return nil, s.bad
	}
	return nil, (*blockedIntake)(s)
}

func (s *stream) read(p []byte) (int, error) {
	in, err := s.peek()
	n := copy(p, in)
	s.discard(n)
	return n, err
}

func (s *stream) discard(n int) {
	if n < 0 || n > len(s.body)-s.from {
		panic("httpd: Discard of more than there is")
	}
	if s.from += n; s.from == len(s.body) {
		s.body, s.from = s.body[:0], 0
	}
	s.inflow.Take(uint32(n))
	s.patience.took(n, s.in.Body.length < 0)
	if !s.hasAll() {
		s.credit()
	}
}

// credit gives the client the window back for what the handler has taken, and a larger one if the handler takes all that comes.
func (s *stream) credit() {
	n := s.inflow.Give()
	if n == 0 {
		return
	}
	if size := s.inflow.Size(); len(s.body) == 0 && size < widestWindow && !budget.Of(s.conn.cache.s).Paused() {
		s.inflow.Grow(min(size, widestWindow-size))
		n += s.inflow.Give()
	}
	s.conn.out = http2.AppendWindowUpdate(s.conn.buffer(), s.id, n)
	s.conn.waker.Wake()
}

// blockedIntake is a stream as the error that more of the content has to be waited for.
type blockedIntake stream

func (*blockedIntake) Error() string { return (*blockedContent)(nil).Error() }

// Arm has the task woken when more has come, and when the client has been too slow.
func (b *blockedIntake) Arm(t *act.Task) {
	b.reader = t.Waker()
	if b.timer == nil {
		b.timer = new(timeout.Timer)
	}
	b.timer.WakeAt(t, b.patience.begin(t.Scheduler().Now()))
}

// The answer.

func (s *stream) inform(status int, fields []Field) {
	if status == 100 {
		s.asks = false // it is the answer
	}
	block := s.conn.head(status)
	for _, f := range fields {
		block = http2.AppendLines(block, syntax.Bytes(f.line))
	}
	s.sendHead(block, false)
}

// begin sends the head, and with it a small content that is there.
func (s *stream) begin(length int64) {
	w, x := &s.out, s.conn
	x.cache.counts.answers[w.status/100]++ // a status has three digits, see SetStatus
	x.cache.renew()
	block := http2.AppendLines(append(x.head(w.status), x.cache.date...), w.fields)
	if length >= 0 {
		block = http2.AppendContentLength(block, length)
	}
	trails := len(w.trailers) > 0
	if s.extended() && !w.leaves() && w.status < 300 {
		s.resetHere(http2.ConnectError, errNoTunnel)
		return
	}
	end := w.mute || syntax.Bodiless(w.status) || length == 0 && !trails
	s.sendHead(block, end)
	n := len(w.body)
	if !end && !trails && length == int64(n) && w.whole == nil && !x.ready.any() &&
		n <= min(http2.MaxFrame, s.outflow.Room(), x.outflow.Room()) { // nearly always: nobody is waiting, and there is room
		w.count(int64(n))
		s.queue, s.closing = append(s.queue, w.take()...), true
		s.sendData(n)
	}
}

func (s *stream) sendHead(block []byte, end bool) {
	x := s.conn
	x.cache.scratch = block
	x.out = http2.AppendHeaders(x.buffer(), s.id, block, end)
	x.floods.Useful()
	s.state = s.state.Send(http2.Headers, end)
	x.waker.Wake()
}

// send adds p to what is sent. Frames that are full are not copied twice if nobody waits, and if there is room.
func (s *stream) send(p []byte) {
	x := s.conn
	for len(p) >= http2.MaxFrame && s.pending() == 0 && s.direct < directATurn && x.clear() &&
		min(s.outflow.Room(), x.outflow.Room()) >= http2.MaxFrame {
		s.data(p[:http2.MaxFrame], nil, false)
		p = p[http2.MaxFrame:]
		s.direct++
		x.floods.Useful()
		x.waker.Wake()
	}
	if s.at > 0 && len(s.queue)+len(p) > cap(s.queue) { // what was sent makes room
		s.queue, s.at = append(s.queue[:0], s.queue[s.at:]...), 0
	}
	if s.queue == nil && len(p) > gathered {
		s.queue = s.conn.cache.content.Get()
	}
	s.queue = append(s.queue, p...)
	s.conn.schedule(s)
}

func (s *stream) offer(p []byte) int {
	p = p[:min(len(p), s.room())]
	s.send(p)
	return len(p)
}

func (s *stream) end() {
	if s.out.leaves() {
		return
	}
	s.closing = true
	s.conn.schedule(s)
}

// pending returns how much content is not sent yet.
func (s *stream) pending() int {
	n := len(s.queue) - s.at
	if s.closing {
		n += len(s.out.whole) // follows, without a copy
	}
	return n
}

// sendable reports whether there is something to send for which the stream has a window.
func (s *stream) sendable() bool {
	return s.lost == nil && s.open() && (s.pending() > 0 && s.outflow.Room() > 0 || s.pending() == 0 && s.closing)
}

// sendData adds a frame with n bytes of content to what the connection sends, and what follows if that was all.
func (s *stream) sendData(n int) {
	x := s.conn
	last := s.closing && n == s.pending()
	if n >= http2.Dribble || n == s.pending() {
		x.floods.Useful()
	}
	trails := last && len(s.out.trailers) > 0
	if n > 0 || !trails {
		k := min(n, len(s.queue)-s.at)
		s.data(s.queue[s.at:s.at+k], s.out.whole[:n-k], last && !trails)
		s.out.whole = s.out.whole[n-k:]
		if s.at += k; s.at == len(s.queue) {
			if s.at = 0; cap(s.queue) > gathered {
				x.cache.content.Put(s.queue)
				s.queue = nil
			}
			s.queue = s.queue[:0]
		}
	}
	if trails {
		s.sendHead(http2.AppendLines(x.cache.scratch[:0], s.out.trailers), true)
	}
	if s.pending() == 0 { // out has up to 64 KiB that the client gets meanwhile
		s.writer.Wake()
	}
	if s.tunnel != nil {
		s.tunnel.sentSome()
	}
}

// data adds a frame, whose content lies in two places.
func (s *stream) data(p, q []byte, end bool) {
	x, n := s.conn, len(p)+len(q)
	h := http2.Header{Length: uint32(n), Type: http2.Data, Stream: s.id}
	if end {
		h.Flags = http2.EndStream
	}
	x.out = append(append(h.Append(x.buffer()), p...), q...)
	s.sent += int64(n)
	s.outflow.Take(n)
	x.outflow.Take(n)
	s.state = s.state.Send(http2.Data, end)
}

// sendFile reads no more than there is room for: nothing that was read is thrown away.
func (s *stream) sendFile(f *os.File, offset, n int64) (int64, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	n = min(n, int64(min(fullQueue, s.room())))
	at := len(s.queue)
	s.queue = slices.Grow(s.queue, int(n))
	k, err := f.ReadAt(s.queue[at:at+int(n)], offset)
	s.queue = s.queue[:at+k]
	s.conn.schedule(s)
	if err == io.EOF && int64(k) < n {
		err = io.ErrUnexpectedEOF
	} else if err == io.EOF {
		err = nil
	}
	return int64(k), err
}

func (s *stream) lend() (*Sender, error) { return nil, errors.ErrUnsupported }

func (s *stream) room() int {
	if s.calling {
		return unlimited
	}
	return max(0, fullQueue-s.pending())
}

func (s *stream) ready() error {
	if s.out.err == nil && s.pending() >= fullQueue {
		return (*blockedOutlet)(s)
	}
	return s.out.err
}

func (s *stream) link() *link { return &s.conn.link }

func (s *stream) leave(protocol string) (status int, err error) {
	switch {
	case protocol == "":
		return 0, errNoConn
	case !s.extended() || !syntax.EqualFold(s.head.Protocol.Of(s.head.Text), protocol):
		return 0, ErrNoUpgrade
	}
	return 200, nil
}

var errNoConn = fmt.Errorf("httpd: a request of HTTP/2 has no connection of its own: %w", errors.ErrUnsupported)

// blockedOutlet is a stream as the error that the client has to take more first.
type blockedOutlet stream

func (*blockedOutlet) Error() string { return (*blockedOutput)(nil).Error() }

// Arm has the task woken when there is room.
func (b *blockedOutlet) Arm(t *act.Task) { b.writer = t.Waker() }

// resetError is the error of a request whose stream the client has reset (RFC 9113 6.4).
type resetError struct{ code http2.Code }

func (e *resetError) Error() string {
	return "httpd: the client has reset the stream: " + e.code.String()
}
