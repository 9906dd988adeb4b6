package httpd

import (
	"cmp"
	"errors"
	"io"
	"math/bits"
	"os"
	"strconv"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
)

// http1Exchange is the exchange of HTTP/1, from the first byte of a request until the last byte of its response is on its
// way. A connection at rest has none.
type http1Exchange struct {
	session *session
	cache   *cache
	in      Request
	out     Response
	parser  http1.Parser
	chunks  *http1.Chunks // nil until a body comes in chunks
	held    int           // bytes of memory that an unfinished head takes, of cache.heads
	meter   listener.Meter
	transfer
}

// transfer is the part of an exchange that is new for each request.
type transfer struct {
	framing http1.Framing
	content content // of the request
	coding  coding  // of the response
	watch   watch
	pending []byte // bytes that the connection had no room for
	whole   []byte // sent after that, without a copy
	lost    error  // why the client cannot be told anything any more
	cause   act.Blocked
	action  act.Action // of the handler, if it is not done in one go
	failure error      // of the handler. The client has been told, and in the end the task fails with it
}

// watch is whether the handler wants to know when the client has closed its side.
type watch uint8

const (
	unwatched watch = iota
	watched
	heard // it has asked in this turn, and is woken
)

// coding is how the client finds the end of the content.
type coding uint8

const (
	byLength coding = iota
	byChunks
	byEnd     // of the connection
	byNothing // there is no content
)

// cache is what all connections of a scheduler share: the exchanges that are not in use, and the date of the second.
type cache struct {
	s       *act.Scheduler
	idle    []*http1Exchange
	heads   int    // bytes of memory that unfinished heads take
	scratch []byte // for the head of a response
	opening http1.Opening
	date    []byte // as a field of HTTP/2
	streams []*stream
	frames  http2.Buffers // for http2Conn.out
	content http2.Buffers // for the content of requests and answers of HTTP/2
	counts  counts
}

var caches = act.NewLocal(func(s *act.Scheduler) *cache { return &cache{s: s} })

// renew renews the date, in the form of each version, if its second is over.
func (c *cache) renew() {
	if now := c.s.Now(); c.opening.Stale(now) {
		c.opening.Renew(now, c.s.Clock().Wall())
		c.date = http2.AppendLines(c.date[:0], c.opening.Date())
	}
}

// keepExchanges bounds how many are kept for the next requests.
const keepExchanges = 64

// hold notes that n bytes of an unfinished head are kept in place of held, and reports whether there is memory for that.
func (c *cache) hold(held *int, n int, of *Server) bool {
	if n > 0 {
		n = max(smallHead, 1<<bits.Len(uint(n))) // a listener.Conn doubles its buffer
		if most := cmp.Or(of.MaxHeads, 8<<20); most >= 0 && c.heads-*held+n > most {
			return false
		}
	}
	c.heads += n - *held
	*held = n
	return true
}

func (c *cache) take(x *session) (e *http1Exchange) {
	if n := len(c.idle); n > 0 {
		e = c.idle[n-1]
		c.idle = c.idle[:n-1]
	} else {
		e = &http1Exchange{cache: c}
		e.in.Body.x, e.out.x = e, e
		e.in.head = &e.parser.Head
		e.reset()
	}
	e.session = x
	e.parser.Limits = x.server.heads()
	return e
}

func (c *cache) give(e *http1Exchange) {
	e.drop()
	if len(c.idle) < keepExchanges {
		e.reset()
		e.session = nil
		c.idle = append(c.idle, e)
	}
}

// reset prepares e for the next request. It keeps what belongs to the connection, and memory for heads and small answers.
func (e *http1Exchange) reset() {
	e.drop()
	e.in.reset()
	e.out.reset()
	e.parser.Reset()
	e.transfer = transfer{}
}

// endTurn is called at the beginning of the next one.
func (e *http1Exchange) endTurn() {
	e.content.woken(e.cache.s.Now())
	if e.watch == heard {
		e.watch = watched
	}
}

// known reports whether there is a request: its head has come, or was refused.
func (e *http1Exchange) known() bool { return e.parser.Length > 0 || e.out.progress != gathering }

// drop notes that no unfinished head is kept.
func (e *http1Exchange) drop() {
	e.cache.heads -= e.held
	e.held = 0
}

// count counts the memory that the exchange has between two turns.
func (e *http1Exchange) count() {
	if len(e.pending) == 0 {
		e.pending = nil // it may be the end of a large array
	}
	if len(e.out.body) == 0 && cap(e.out.body) > gathered {
		e.out.body = nil // all of it was given to the connection, or is pending
	}
	n := cap(e.pending) + cap(e.out.body) + cap(e.out.trailers)
	if trailers := e.in.Body.trailers; trailers != nil {
		n += cap(trailers.Text)
	}
	if e.in.kept {
		n += cap(e.parser.Text)
	}
	e.meter.Set(e.session.conn, n)
}

// smallHead is the least memory that an unfinished head takes: a small buffer of its connection.
const smallHead = 4 << 10

// begins is called when the first byte of the request was found.
func (e *http1Exchange) begins() {
	e.in.began = max(1, e.cache.s.Now())
	e.session.askPeer()
}

// over calls OnResponse, once, if there was a request. Content that was not given to the connection is not counted then.
// Pending bytes may include framing, so the count of a response that was cut off may be a few bytes too small.
func (e *http1Exchange) over() {
	w := &e.out
	w.recall()
	if w.progress == over || !e.known() {
		return
	}
	if w.progress == gathering {
		w.status = 0
	}
	if !w.mute {
		w.written = max(0, w.written-int64(len(e.pending)+len(e.whole)))
	}
	w.progress = over
	if f := e.session.server.OnResponse; f != nil {
		f(w, &e.in)
	}
}

// lasts reports whether the connection cannot go on after the response, whatever the client sends.
func (e *http1Exchange) lasts() bool {
	c := &e.content
	return e.out.last || e.session.stopping || !e.framing.Persistent || c.err != nil ||
		c.asks || // the client may send the body or not: it is unknown what comes next (RFC 9110 10.1.1)
		c.left > drainable
}

// undecided reports whether the response, which the handler has given, can wait for the end of the body: only then it is
// known whether the connection can go on after it.
func (e *http1Exchange) undecided() bool {
	return e.content.kind == chunked && e.out.progress == gathering && !e.out.leaves() && !e.lasts()
}

func (e *http1Exchange) ended(t *act.Task) bool {
	e.watch = watched
	half, err := e.awaitEnd(t)
	if err == nil {
		e.watch = heard
	}
	return half || err != nil
}

// awaitEnd is Conn.Ended. An end that is among the bytes is received to be seen, after the body and unless a further request
// has come.
func (e *http1Exchange) awaitEnd(t *act.Task) (half bool, err error) {
	conn := e.session.conn
	if e.watch != unwatched && conn.Internals().EndsInBand() && e.content.kind == ended && conn.Buffered() == 0 {
		_, err := conn.Peek(1)
		if blocked, is := err.(act.Blocked); is {
			blocked.Arm(t) // it notices the end of the transport as well
			return false, nil
		}
		half = err == io.EOF
		if err != nil && !half {
			return false, err
		}
	}
	closed, err := conn.Ended(t)
	return half || closed, err
}

func (e *http1Exchange) link() *link { return &e.session.link }

func (e *http1Exchange) leave(protocol string) (status int, err error) {
	switch {
	case protocol == "":
	case !e.parser.Upgrades(e.parser.Text, protocol):
		return 0, ErrNoUpgrade
	case e.content.kind != ended: // the body precedes the switch (RFC 9110 7.8)
		return 0, errors.New("httpd: the body has to be read to its end before protocols are switched")
	}
	return 101, nil
}

// inform sends nothing to a client of HTTP/1.0 (RFC 9110 15.2).
func (e *http1Exchange) inform(status int, fields []Field) {
	if e.parser.Minor == 0 {
		return
	}
	if status == 100 {
		e.content.asks = false // it is the answer
	}
	to := append(e.cache.scratch[:0], http1.StatusLine(status)...)
	for _, f := range fields {
		to = append(to, f.line...)
	}
	e.cache.scratch = append(to, "\r\n\r\n"...)
	e.emit(e.cache.scratch)
}

// begin sends the head, and with it a small content that is there.
func (e *http1Exchange) begin(length int64) {
	w, c := &e.out, &e.content
	if c.kind == chunked && c.piece == 0 && !c.asks {
		_, _ = e.peek() // the handler may have taken all data and not asked for the end
	}
	switch old := e.parser.Minor == 0; {
	case syntax.Bodiless(w.status):
		e.coding = byNothing
	case e.framing.Connect && w.status < 300: // RFC 9110 9.3.6: it has neither field
		e.coding = byEnd
	case length >= 0 && (old || len(w.trailers) == 0 || w.announced >= 0 || w.whole != nil):
		e.coding = byLength
	case old:
		e.coding, w.last = byEnd, w.last || !w.mute
	default:
		e.coding = byChunks
	}
	// Of a body whose end is not there yet more may come than is thrown away, and that would be too late to say so.
	w.last = w.status != 101 && (e.lasts() || c.kind == chunked)
	whole := e.coding == byLength && !w.mute
	if whole && w.err == nil && len(e.pending) == 0 && e.session.pace == nil {
		// A further answer of this turn is made where it is gathered.
		if to := e.session.conn.Internals().Gathered(maxOwn + len(w.fields) + len(w.body)); to != nil {
			w.count(int64(len(w.body)))
			*to = append(e.head(*to, length), w.take()...)
			return
		}
	}
	head := e.head(e.cache.scratch[:0], length)
	if whole && len(head)+len(w.body) <= gathered { // nearly always: one call
		w.count(int64(len(w.body)))
		head = append(head, w.take()...)
	}
	e.cache.scratch = head
	e.emit(head)
}

// maxOwn bounds the part of a head of known length that the handler has not added.
const maxOwn = 256

// head appends everything up to the empty line. Fields begin with the end of the line before, which saves a copy.
func (e *http1Exchange) head(to []byte, length int64) []byte {
	c := e.cache
	c.renew()
	c.counts.answers[e.out.status/100]++ // a status has three digits, see SetStatus
	to = c.opening.Append(to, e.out.status, e.coding == byLength)
	switch e.coding {
	case byLength:
		to = strconv.AppendInt(to, length, 10)
	case byChunks:
		to = append(to, "\r\nTransfer-Encoding: chunked"...)
	}
	switch {
	case e.out.last:
		to = append(to, "\r\nConnection: close"...)
	case e.parser.Minor == 0:
		to = append(to, "\r\nConnection: keep-alive"...)
	}
	if e.out.upgrade {
		to = append(to, "\r\nConnection: upgrade"...) // RFC 9110 7.8
	}
	to = append(to, e.out.fields...)
	return append(to, "\r\n\r\n"...)
}

func (e *http1Exchange) send(p []byte) {
	if e.coding != byChunks {
		e.emit(p)
		return
	}
	c := e.cache
	c.scratch = append(strconv.AppendInt(c.scratch[:0], int64(len(p)), 16), "\r\n"...)
	e.emit(c.scratch)
	e.emit(p)
	e.emit(syntax.Bytes("\r\n"))
}

// offer gives the connection all of p at once, which takes as much as the kernel takes and as may be queued. Only a
// chunk needs its length before: that is what there is room for in any case.
func (e *http1Exchange) offer(p []byte) int {
	if e.coding == byChunks {
		p = p[:min(len(p), e.room())]
		e.send(p)
		return len(p)
	}
	n, err := e.session.give(p)
	if err != nil && !isBlocked(err) {
		e.lose(err)
	}
	return n
}

func (e *http1Exchange) end() {
	switch w := &e.out; {
	case w.mute:
	case e.coding == byChunks:
		e.emit(syntax.Bytes("0"))
		e.emit(w.trailers)
		e.emit(syntax.Bytes("\r\n\r\n"))
	default:
		e.whole = w.whole
	}
}

func (e *http1Exchange) sendFile(f *os.File, offset, n int64) (int64, error) {
	if err := e.push(); err != nil {
		return 0, err
	}
	sent, err := e.session.conn.SendFile(f, offset, n)
	e.session.given(sent)
	if err != nil {
		return sent, e.blocked(err)
	}
	e.session.pace = nil
	return sent, nil
}

func (e *http1Exchange) room() int {
	if e.session.phase == asking {
		return unlimited
	}
	return e.session.conn.Room()
}

func (e *http1Exchange) ready() error {
	if err := e.push(); err != nil {
		return err
	}
	for conn := e.session.conn; conn.Room() == 0; {
		if _, err := conn.Write(nil); err != nil {
			return e.blocked(err)
		}
		_ = conn.Flush() // what was gathered is all that was in the way; the next call says what was wrong
	}
	return nil
}

// emit gives bytes to the connection, and keeps those for which it has no room.
func (e *http1Exchange) emit(p []byte) {
	if e.out.err != nil {
		return
	}
	if len(e.pending) == 0 {
		n, err := e.session.give(p)
		if p = p[n:]; err != nil && !isBlocked(err) {
			e.lose(err)
		}
	}
	e.pending = append(e.pending, p...)
}

// push sends the rest, and returns why not all of it was sent.
func (e *http1Exchange) push() error {
	if len(e.pending)+len(e.whole) > 0 {
		return e.pushAll()
	}
	return e.out.err
}

func (e *http1Exchange) pushAll() error {
	for e.out.err == nil && (len(e.pending) > 0 || len(e.whole) > 0) {
		rest := &e.pending
		if len(e.pending) == 0 {
			rest = &e.whole
		}
		n, err := e.session.give(*rest)
		if *rest = (*rest)[n:]; err != nil {
			return e.blocked(err)
		}
	}
	return e.out.err
}

// lose notes that the client cannot be told anything any more.
func (e *http1Exchange) lose(err error) error {
	e.out.fail(err)
	e.lost = e.out.err
	return e.lost
}

// blocked returns what an error of the connection means for the response.
func (e *http1Exchange) blocked(err error) error {
	cause, is := err.(act.Blocked)
	switch {
	case !is:
		return e.lose(err)
	case e.session.stalled(e.out.writeTimeout(e.session.server)):
		return e.lose(ErrSlow)
	}
	e.cause = cause
	return (*blockedOutput)(e)
}

func isBlocked(err error) bool {
	_, is := err.(act.Blocked)
	return is
}

// refuse answers with a status alone, and closes.
func (e *http1Exchange) refuse(status int) error {
	w := &e.out
	w.mute = string(e.in.Method()) == "HEAD"
	w.err = nil
	w.StatusOnly(status)
	w.last = true
	return w.finish()
}

// blockedOutput is an exchange as the error that the client has to take more first.
type blockedOutput http1Exchange

func (*blockedOutput) Error() string {
	return "httpd: the client has not taken enough of the response yet"
}

// Arm has the task woken when there is room, and when the client has been too slow.
func (b *blockedOutput) Arm(t *act.Task) {
	b.cause.Arm(t)
	b.session.timer.WakeAt(t, b.session.pace.until())
}
