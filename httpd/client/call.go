package client

import (
	"errors"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
)

// Call is a request: an action that is Done when the head of its answer has come. Set the fields and call Add before the first turn, and
// take the answer with Response. A Call is used once, by one task.
//
//	fresh ──▶ waiting ──▶ dialing ──▶ calling ──▶ answered
//	            ▲  └──── a connection is idle ──▶ ││
//	            └── it was lost without an answer ─┘└─▶ failed
//
// The content of the request is Content, or what is given to Write meanwhile: then the task's action calls Act and Write in each of
// its turns. A server may answer before it has all of the content; what is written after that may be ignored.
type Call struct {
	// Origin is the server.
	Origin *Origin
	// Method is the method of the request; "" means GET. CONNECT is not supported.
	Method string
	// Target is the path, with the query: "/" if it is empty. It must begin with "/", or be "*" for OPTIONS.
	Target string
	// Host replaces the Origin's.
	Host string
	// Content is the content of the request. It must not be changed until the Call has ended.
	Content []byte
	// Length is how many bytes are going to be given to Write, if there is no Content; -1 means that it is not known before End.
	Length int64
	// Expect asks the server whether it wants the content, before any of it is sent (RFC 9110 10.1.1). A server that does not answer
	// gets it after a second.
	Expect bool
	// Repeatable says that the request may be sent again when its connection was lost, although its method is not idempotent.
	Repeatable bool
	// Upgrade is the protocol that the connection is to switch to, such as "websocket": see Response.Conn. Such a Call has a connection
	// of HTTP/1.1, so it fails if Origin.Protocol is HTTP2.
	Upgrade string
	// CloseAfter asks the server to close the connection after the answer, and no other Call uses it (RFC 9112 9.6). Over HTTP/2 it
	// does nothing.
	CloseAfter bool
	// Filter prepares a connection for this Call alone, which is closed afterwards, in addition to the filters of the Origin and
	// before them. nil means that a connection of the Origin is used.
	Filter listener.Filter
	// Inform, if not nil, is called with each interim answer, such as 103 (Early Hints). r is valid during the call, for Status and
	// the fields. It is called in a turn of the task, and must not block.
	Inform func(r *Response)
	// Timeouts replace the ones of the Origin that are not 0 here.
	Timeouts Timeouts

	lines    []byte // fields, each after CRLF
	bad      error  // why Add has failed
	state    callState
	pool     *pool
	exchange exchange
	dial     act.Child
	connect  *listener.Connect
	answer   Response
	owner    *act.Task // which ends the Call with itself; nil: the Response is taken

	written  int64 // content that was given to the exchange
	ended    bool  // all of it was
	begun    bool  // Begin is Done: the task writes, and gives the Call no turns meanwhile
	released bool  // the content may be sent: the server has not been asked, or wants it
	reused   bool  // the connection has carried other requests
	fresh    bool  // only a new connection is good enough
	asked    bool  // a server that was lost may have acted on the request
	queued   bool  // in pool.waiting
	place    bool  // the Call has a connection of the Origin's number: it dials
	tries    uint8
	interims uint8
	waker    act.Waker // while it is queued
	until    time.Duration
	total    time.Duration
	what     string // what until bounds
	timer    timeout.Timer
	in, out  act.Blocked // what a Peek and a Write wait for
}

type callState uint8

const (
	fresh callState = iota
	waiting
	dialing
	calling
	answered
	failed
)

// The bounds of a Call.
const (
	mostTries    = 3           // of a request that servers have not looked at
	mostInterims = 32          // interim answers
	askedFor     = time.Second // how long an answer to Expect is waited for
)

// exchange is a request and its answer on a connection: of HTTP/1 or on a stream of HTTP/2. All methods are called in turns of the
// Call's task. The errors are causes, or an act.Blocked.
type exchange interface {
	// begin sends the head, and reports whether the connection has carried other requests before.
	begin(c *Call) (reused bool)
	// write sends content, as much as there is room for. Without bytes it says whether there is any.
	write(p []byte) (int, error)
	// end sends what follows the content: trailers are lines as Call.lines.
	end(trailers []byte)
	// head reads the head of an answer, interim ones included, into r.
	head(r *Response) error
	// peek and discard are as in Response. After io.EOF the trailers are in r.
	peek(r *Response) ([]byte, error)
	discard(n int)
	// conn gives the connection, or the stream, to the protocol that the server has switched to.
	conn() *listener.Conn
	// leave ends the exchange. Its connection is kept if the request and the answer are complete, and otherwise the server is told
	// at once that nobody wants the rest.
	leave()
}

// notDone is the cause of a lost request that the server has certainly not looked at (RFC 9113 8.7).
type notDone struct{ error }

var (
	errMethod   = errors.New("the method is not a token, or is CONNECT")
	errTarget   = errors.New("the target does not begin with a slash, or has a byte that none may have")
	errField    = errors.New("a field has a byte that none may have, or is not the caller's to set")
	errUpgrade  = errors.New("an Upgrade, which HTTP/2 does not have")
	errContent  = errors.New("there is both Content and a Length, or Expect without content")
	errInterims = errors.New("too many interim answers")
	errLong     = errors.New("more content than Length has announced, or content after End")
	errShort    = errors.New("less content than Length has announced")
	errEarly    = errors.New("the Call is not Done")
)

// Add adds a field, after fields of the same name. The Call fails if the name is not a token, if the value has a control character,
// or if the Call itself sets the field: Host, Content-Length, Transfer-Encoding, Connection, Upgrade and Expect.
func (c *Call) Add(name, value string) {
	if !syntax.ValidField(name, value) || syntax.KindOf(syntax.Bytes(name)) != syntax.Ordinary {
		c.bad = errField
		return
	}
	c.lines = appendLine(c.lines, name, value)
}

func appendLine(to []byte, name, value string) []byte {
	to = append(to, "\r\n"...)
	to = append(to, name...)
	to = append(to, ": "...)
	return append(to, value...)
}

// Reset makes a Call that is over, and whose answer is closed, as new: for another request, with the memory that it has.
func (c *Call) Reset() {
	text, fields := c.answer.head.Text[:0], c.answer.head.Fields[:0]
	*c = Call{lines: c.lines[:0]}
	c.answer.head.Text, c.answer.head.Fields = text, fields
}

// Act goes on with the request. It is Done when the head of the answer has come, and fails with an *Error.
func (c *Call) Act(t *act.Task) act.Directive {
	for {
		var err error
		switch c.state {
		case fresh:
			err = c.prepare(t)
		case waiting:
			err = c.pool.take(c)
		case dialing:
			err = c.dialled(t)
		case calling:
			err = c.call()
		case answered:
			return act.Done
		case failed:
			return t.Fail(c.answer.err)
		}
		now := t.Scheduler().Now()
		blocked, is := err.(act.Blocked)
		switch {
		case err == nil:
			continue
		case !is:
			c.fail(err)
			continue
		case c.late(now) == nil:
			c.timer.WakeAt(t, min(c.until, c.total))
			if p, is := err.(pending); is {
				return p.d
			}
			blocked.Arm(t)
			return act.Wait
		case c.state == calling && !c.released: // the server does not answer the question
			c.release(now)
		default:
			c.fail(c.late(now))
		}
	}
}

// prepare checks the request, and finds the pool of the scheduler.
func (c *Call) prepare(t *act.Task) error {
	c.owner = t
	t.Own((*owned)(c))
	c.answer.call = c
	now := t.Scheduler().Now()
	c.total = timeout.Never
	if c.Origin == nil {
		panic("client: a Call without an Origin")
	}
	if err := c.Origin.prepare(); err != nil {
		return err
	}
	if c.Method == "" {
		c.Method = "GET"
	}
	if c.Target == "" {
		c.Target = "/"
	}
	if c.Host == "" {
		c.Host = c.Origin.host
	}
	c.Timeouts = c.Timeouts.or(c.Origin.Timeouts)
	c.total = now + timeout.Or(c.Timeouts.Total, timeout.Never)
	switch method, target := syntax.Bytes(c.Method), syntax.Bytes(c.Target); {
	case c.bad != nil:
		return c.bad
	case !syntax.Token.Only(method) || c.Method == "CONNECT":
		return errMethod
	case !syntax.Target.Only(target) || target[0] != '/' && (c.Target != "*" || c.Method != "OPTIONS"):
		return errTarget
	case !syntax.ValidHost(syntax.Bytes(c.Host)):
		return errField
	case c.Upgrade != "" && c.Origin.Protocol == HTTP2:
		return errUpgrade
	case c.Content != nil && c.Length != 0, c.Expect && c.Content == nil && c.Length == 0,
		c.Upgrade != "" && !syntax.Token.Only(syntax.Bytes(c.Upgrade)):
		return errContent
	}
	if c.Content != nil {
		c.Length = int64(len(c.Content))
	}
	c.pool = poolOf(c.Origin, t.Scheduler())
	c.state = waiting
	c.limit(now, c.Timeouts.Wait, "no connection is free")
	return nil
}

// limit bounds the present phase.
func (c *Call) limit(now, by time.Duration, what string) {
	c.until, c.what = timeout.Never, what
	if by > 0 && by < timeout.Never {
		c.until = now + by
	}
}

// progress is called when bytes have gone either way.
func (c *Call) progress() {
	if c.state == calling && c.ended {
		c.limit(c.pool.s.Now(), c.Timeouts.Head, "no answer comes")
	} else {
		c.limit(c.pool.s.Now(), c.Timeouts.Idle, "the server neither sends nor takes more")
	}
}

// late returns an error if the time of the phase, or of the whole Call, has passed.
func (c *Call) late(now time.Duration) error {
	switch {
	case now >= c.total:
		return timeoutError("the call took too long")
	case now >= c.until:
		return timeoutError(c.what)
	}
	return nil
}

// use begins the request on a connection.
func (c *Call) use(x exchange) {
	s := c.pool.s
	c.exchange, c.state = x, calling
	c.written, c.ended = 0, c.Length == 0
	c.released = !c.Expect
	if c.reused = x.begin(c); c.released {
		c.release(s.Now())
	} else {
		c.limit(s.Now(), askedFor, "")
	}
}

// release has the content sent.
func (c *Call) release(now time.Duration) {
	c.released = true
	if c.limit(now, c.Timeouts.Head, "no answer comes"); !c.ended {
		c.until = timeout.Never
	}
}

// sent is called when content was given to the exchange: n bytes, and err is why not all of it. The server is waited for only if it
// has no room.
func (c *Call) sent(n int, err error) {
	c.written += int64(n)
	switch {
	case err == nil && c.state == calling:
		c.until = timeout.Never
	case n > 0 || c.until == timeout.Never:
		c.progress()
	}
}

// call sends Content, and reads heads until the one of the answer has come.
func (c *Call) call() error {
	var full error // why not all of the content was sent
	if c.Content != nil && !c.ended && c.released {
		var n int
		n, full = c.exchange.write(c.Content[c.written:])
		if c.sent(n, full); c.written == c.Length {
			_ = c.End()
		}
	}
	switch err := c.exchange.head(&c.answer); {
	case err == nil:
	case full != nil && isBlocked(full) && isBlocked(err):
		return both{full.(act.Blocked), err.(act.Blocked)}
	case isBlocked(err):
		return err
	case c.again(err):
		return nil
	default:
		return err
	}
	now := c.pool.s.Now()
	switch status := c.answer.status; {
	case status == 101 && c.Upgrade == "":
		return errUnasked
	case status >= 200 || status == 101:
		c.state = answered
		c.progress()
		return nil
	case status == 100 && !c.released:
		c.release(now)
	}
	if c.interims++; c.interims > mostInterims {
		return errInterims
	}
	if c.Inform != nil {
		c.Inform(&c.answer)
	}
	return nil
}

// again begins anew, if the request may be sent once more: see the package documentation.
func (c *Call) again(err error) bool {
	_, sure := err.(notDone)
	c.fresh = !sure
	c.tries++
	switch {
	case c.Content == nil && (c.written > 0 || c.begun || c.ended && c.Length < 0): // it is gone, or its writer is
		return false
	case c.Filter != nil, c.answer.heard, c.tries >= mostTries:
		return false
	case !sure && (!c.reused || c.tries > 1 || !c.Repeatable && !syntax.Idempotent(c.Method)):
		return false
	}
	c.exchange.leave()
	c.exchange, c.state = nil, waiting
	c.asked = c.asked || !sure
	c.pool.counts.repeats++
	c.limit(c.pool.s.Now(), c.Timeouts.Wait, "no connection is free")
	return true
}

// fail ends the Call.
func (c *Call) fail(err error) {
	_, sure := err.(notDone)
	sent := c.asked || c.state == calling && !sure
	c.stop()
	c.state = failed
	c.answer.err = c.failure(err, sent)
}

func (c *Call) failure(err error, sent bool) error {
	e := &Error{Sent: sent, Err: err}
	if c.Origin != nil { // of a Call that was given up before its first turn
		e.Address = c.Origin.Address
	}
	return e
}

// stop gives back what the Call has.
func (c *Call) stop() {
	c.timer.Stop()
	if c.queued {
		c.pool.unqueue(c)
	}
	if c.connect != nil {
		_ = c.dial.Close()
		c.connect, c.dial = nil, act.Child{}
	}
	if c.place {
		c.place = false
		c.pool.dialling(c, -1)
		c.pool.free()
	}
	if c.exchange != nil {
		c.exchange.leave()
		c.exchange = nil
	}
	if c.owner != nil {
		c.owner.Release((*owned)(c))
		c.owner = nil
	}
}

// Write sends content: p, or as much of it as there is room for. If that is not all of p, the error is an act.Blocked, which wakes the
// task when there may be room; ErrAnswered, when the server has answered instead of taking more, so that the rest need not be sent;
// or an *Error. While there is no connection, it is an act.Blocked that leaves it to Act, or Begin, to wake the task.
func (c *Call) Write(p []byte) (int, error) {
	switch {
	case c.state < calling || c.state == calling && !c.released:
		return 0, (*blockedCall)(c)
	case c.exchange == nil:
		return 0, c.over()
	case !c.released:
		return 0, ErrAnswered
	case c.pool.s.Now() >= c.total:
		return 0, c.failure(c.late(c.total), true)
	case c.ended && len(p) > 0, c.Length >= 0 && int64(len(p)) > c.Length-c.written:
		return 0, c.failure(errLong, true)
	}
	n, err := c.exchange.write(p)
	if c.sent(n, err); err == nil {
		return n, nil
	}
	blocked, is := err.(act.Blocked)
	if c.state == calling { // the server may have answered instead of taking it
		switch err = c.call(); {
		case c.state == answered:
			return n, ErrAnswered
		case err == nil: // it was an interim answer, or the request begins anew
			return n, (*blockedCall)(c)
		case !isBlocked(err):
			is = false
		case is:
			blocked = both{blocked, err.(act.Blocked)}
		default:
			blocked, is = err.(act.Blocked), true
		}
	}
	if is {
		if late := c.late(c.pool.s.Now()); late != nil {
			return n, c.failure(late, true)
		}
		c.out = blocked
		return n, (*blockedOutput)(c)
	}
	if err == ErrAnswered {
		return n, err
	}
	_, sure := err.(notDone)
	return n, c.failure(err, !sure)
}

// Begin returns an action that is Done when the content can be written, which is earlier than the Call: for a coroutine that writes
// it before it waits for the answer.
//
//	err := co.Do(call.Begin())
//	…
//	_, err = io.Copy(coro.Writer(co, call), file)
//	…
//	err = call.End()
//	…
//	err = co.Do(call)
//
// It fails as the Call does.
func (c *Call) Begin() act.Action { return (*begun)(c) }

type begun Call

func (b *begun) Act(t *act.Task) act.Directive {
	c := (*Call)(b)
	d := c.Act(t)
	if d == act.Wait && c.state == calling && c.released {
		c.begun = true
		return act.Done
	}
	return d
}

// End says that all content was written. It fails if Length has announced more. Trailers are sent after the content if its length
// was not announced: name, value, name, value.
func (c *Call) End(trailers ...string) error {
	switch {
	case c.exchange == nil:
		return c.over()
	case c.Length >= 0 && c.written < c.Length:
		return c.failure(errShort, true)
	case c.ended:
		return nil
	}
	var lines []byte
	for i := 0; i+1 < len(trailers); i += 2 {
		if !syntax.ValidField(trailers[i], trailers[i+1]) || syntax.KindOf(syntax.Bytes(trailers[i])) != syntax.Ordinary {
			return errField
		}
		lines = appendLine(lines, trailers[i], trailers[i+1])
	}
	c.ended = true
	c.exchange.end(lines)
	c.progress()
	return nil
}

// over is the error of calls when the Call has failed or is not under way.
func (c *Call) over() error {
	if c.answer.err == errOver { // most callers never ask, so this costs nothing before
		c.answer.err = c.failure(errOver, true)
	}
	if c.answer.err != nil {
		return c.answer.err
	}
	return c.failure(errEarly, false)
}

// Response takes the answer once the Call is Done. The caller then owns it and closes it. An answer that is not taken is closed when
// the task ends. It returns nil if there is none, or if it was taken.
func (c *Call) Response() *Response {
	if c.state != answered || c.owner == nil {
		return nil
	}
	c.owner.Release((*owned)(c))
	c.owner = nil
	return &c.answer
}

// Close gives up a Call that is not Done: the server is told at once. After Done it does nothing; the task owns the answer until it is
// taken.
func (c *Call) Close() error {
	if c.state != answered {
		c.giveUp()
	}
	return nil
}

func (c *Call) giveUp() {
	if c.stop(); c.answer.err == nil {
		c.answer.err = c.failure(act.ErrDropped, c.asked || c.state >= calling)
	}
	c.state = failed
}

// owned is a Call that its task ends with itself.
type owned Call

func (o *owned) Close() error {
	o.owner = nil
	(*Call)(o).giveUp()
	return nil
}

// Describe implements act.Describer.
func (c *Call) Describe(d *act.Description) {
	d.Name = "client: " + c.Method + " " + c.Origin.Address
	switch c.state {
	case waiting:
		d.WaitsFor("a free connection to " + c.Origin.Address)
	case dialing:
		d.Of(c.dial.Action)
	case calling, answered:
		d.WaitsFor("an answer of " + c.Origin.Address)
	}
}

// dialled goes on to make a connection.
func (c *Call) dialled(t *act.Task) error {
	switch d := c.dial.Act(t); d {
	case act.Done:
		conn := c.connect.Conn()
		_ = c.dial.Close()
		c.connect, c.dial, c.place = nil, act.Child{}, false
		return c.pool.connected(c, conn)
	case act.Failed:
		return t.Err()
	default:
		return pending{d}
	}
}

// alone reports whether the Call cannot share a connection with others.
func (c *Call) alone() bool { return c.Filter != nil || c.Upgrade != "" }

// dialTo begins to make a connection. The Call has a place for it.
func (c *Call) dialTo() {
	o := c.Origin
	c.place, c.state = true, dialing
	c.connect = &listener.Connect{Address: o.Address, Limits: o.Limits, Filters: o.filters}
	if c.Upgrade != "" && o.TLS != nil {
		c.connect.Filters = o.filter1
	}
	if c.Filter != nil {
		c.connect.Filters = append([]listener.Filter{c.Filter}, c.connect.Filters...)
	}
	c.dial = act.Child{Action: c.connect}
	c.limit(c.pool.s.Now(), c.Timeouts.Connect, "the connection is not established")
}

// pending is a directive of a dial as an error: the dial has arranged what wakes the task.
type pending struct{ d act.Directive }

func (pending) Error() string   { return "client: a connection is being made" }
func (pending) Arm(t *act.Task) {}

// blockedCall is a Call as the error that the content cannot be sent yet.
type blockedCall Call

func (*blockedCall) Error() string { return "client: the content is not wanted yet" }

// Arm does nothing: the task waits for the Call itself, which has a turn then.
func (*blockedCall) Arm(*act.Task) {}

// blockedInput and blockedOutput are a Call as the error that a Peek or a Write would have to wait.
type (
	blockedInput  Call
	blockedOutput Call
)

func (*blockedInput) Error() string { return "client: no more of the answer has come yet" }
func (*blockedOutput) Error() string {
	return "client: the server has not taken enough of the content yet"
}

// Arm has the task woken when there is more, and when the server has been too slow.
func (b *blockedInput) Arm(t *act.Task) {
	b.in.Arm(t)
	b.timer.WakeAt(t, min(b.until, b.total))
}

// Arm has the task woken when there is room, and when the server has been too slow.
func (b *blockedOutput) Arm(t *act.Task) {
	b.out.Arm(t)
	b.timer.WakeAt(t, min(b.until, b.total))
}

// both waits for either of two things.
type both struct{ x, y act.Blocked }

func (both) Error() string { return "client: neither room nor an answer" }
func (b both) Arm(t *act.Task) {
	b.x.Arm(t)
	b.y.Arm(t)
}

func isBlocked(err error) bool {
	_, is := err.(act.Blocked)
	return is
}

// appendLength appends a number of bytes as a field.
func appendLength(to []byte, n int64) []byte {
	return strconv.AppendInt(append(to, "\r\nContent-Length: "...), n, 10)
}
