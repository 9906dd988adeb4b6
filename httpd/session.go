package httpd

import (
	"errors"
	"io"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// session is the action of a connection of HTTP/1: one request after the other, in order (RFC 9112 9.3.2).
//
//	          head                     answer             sent, persistent          body read
//	resting ──────▶ asking, handling ──────────▶ sending ──────────────────▶ draining ──────────▶ resting
//	  │  │                 │                       │  │                         │
//	  │  │ refusal         │ failure: 500          │  │ the last one            │ not in time
//	  │  └─────────▶ sending ◀──┘                  │  └────────▶ closing ◀──────┘
//	  └ EOF, too late ──▶ leaving                  └──101, hijacked──▶ switched
//
// It begins as fresh, which is resting before the first request. When a part of a head has come it is arriving, and it is away
// while the handler's action belongs to a function that it has offloaded.
//
// An answer that is complete before the end of a chunked body goes from handling to draining, and then to sending: only there it
// is known whether it is the last one.
//
// A request that fails after the head of its response is aborted, at once.
//
// At rest it holds a timer and no buffer.
type session struct {
	link
	exchange *http1Exchange // nil at rest
	next     *act.Child     // the action of another protocol, once switched, for an action that is around this one
	limit    time.Duration  // when the awaited input must be there; 0: not set yet
	phase    phase
	blank    uint8 // empty lines before the next request, which have been discarded
	asked    bool  // a head has come
}

type phase uint8

const (
	fresh    phase = iota // nothing of the first request has come, or it is there as a whole
	resting               // likewise of the next one, between two
	arriving              // a part of a head has come, and limit is for the rest
	asking                // the handler is called
	handling              // its action has turns
	away                  // the action belongs to a function that it has offloaded
	sending
	draining // what the handler has left of the body
	leaving  // closing at rest: no client waits for anything
	closing
	aborted
	switched // to another protocol
)

// idle reports whether a connection in this phase has no request.
func (p phase) idle() bool { return p <= resting }

// requestsATurn bounds how many pipelined requests are answered in a turn.
const requestsATurn = 64

// idleLinger is how long a client may take to close its side of an idle connection. Many clients do not watch idle
// connections, and there is nothing to protect but a request that may be on its way: so a shutdown does not wait for
// them.
const idleLinger = 500 * time.Millisecond

// drainable is how much of a body is thrown away so that the connection can go on. An answer waits for no longer than drainTime
// for the end of a body in chunks: its client may wait for the answer before it sends more.
const (
	drainable = 256 << 10
	drainTime = 500 * time.Millisecond
)

// Act takes the connection as far as it goes. A phase that is over returns Done: the next one has begun.
func (x *session) Act(t *act.Task) act.Directive {
	if x.exchange != nil {
		x.exchange.endTurn()
	}
	defer x.keep()
	d := act.Done
	for requests := 0; d == act.Done; {
		switch x.phase {
		case fresh, resting, arriving:
			if requests++; requests > requestsATurn {
				return act.Yield
			}
			d = x.await(t)
		case asking:
			d = x.ask(t)
		case handling, away:
			d = x.handle(t)
		case sending:
			d = x.send(t)
		case draining:
			d = x.drain(t)
		case leaving, closing:
			return x.close(t)
		case aborted:
			return act.Done
		case switched:
			return x.next.Act(t)
		}
	}
	return d
}

// keep keeps the request, if there still is one when the turn ends: for later turns, and for String, even after a
// panic. A refused one is kept, as far as it has come, for OnResponse.
func (x *session) keep() {
	if e := x.exchange; e != nil {
		if !e.in.kept && e.known() {
			e.in.keep()
		}
		if e.out.progress != gathering { // it lasts, and the head is out
			e.out.fields = nil
		}
		e.count()
	}
}

// await reads a head, of which more may come than has so far.
func (x *session) await(t *act.Task) act.Directive {
	in, err := x.conn.Peek(1)
	if err != nil {
		return x.silence(t, err)
	}
	e := x.engage()
	if e.in.began == 0 {
		e.begins()
	}
	if err := e.ready(); err != nil { // a client that does not read gets no more to read
		return x.hold(t, err)
	}
	may2, must2 := false, false
	if !x.asked {
		if may2, must2 = x.versions(); must2 {
			return x.await2(t, http1.ErrMajor)
		}
	}
	for {
		e.parser.Text = in
		over, bad := e.parser.Read(in)
		if e.parser.Minor > 0 {
			e.in.version = http11
		}
		switch {
		case bad == http1.ErrMajor && may2:
			return x.await2(t, bad)
		case bad != nil:
			return x.refuse(t, bad)
		case over:
			return x.understand(t)
		}
		if in, err = x.conn.Peek(len(in) + 1); err != nil {
			return x.silence(t, err)
		}
	}
}

// versions is called before the first request. It reports whether the connection may be one of HTTP/2, which begins like a
// request of HTTP/1 with a version that is too high (RFC 9113 3.4), and whether it can be nothing else: with TLS that is agreed on
// by ALPN (3.2, 3.3).
func (x *session) versions() (may2, must2 bool) {
	if x.server.MaxStreams < 0 {
		return false, false
	}
	over, encrypted := listener.As[interface{ NegotiatedProtocol() string }](x.conn)
	must2 = encrypted && over.NegotiatedProtocol() == "h2"
	return must2 || !encrypted && x.blank == 0, must2
}

// await2 waits for the rest of the preface of HTTP/2.
func (x *session) await2(t *act.Task, bad error) act.Directive {
	in, err := x.conn.Peek(len(http2.Preface))
	n := min(len(in), len(http2.Preface))
	switch {
	case string(in[:n]) != http2.Preface[:n]:
		return x.refuse(t, bad)
	case err != nil:
		x.exchange.parser.Reset() // it reads the line again
		return x.silence(t, err)
	}
	x.conn.Discard(n)
	x.timer.Stop()
	x.release()
	x.pace = nil
	x.becomes(t, newHTTP2(t, x.link))
	return act.Done
}

// engage gives the connection an exchange.
func (x *session) engage() *http1Exchange {
	if x.exchange == nil {
		x.exchange = caches.Get(x.conn.Scheduler()).take(x)
		x.exchange.parser.Blank = x.blank
	}
	return x.exchange
}

// silence is called when no head is there, or not all of it.
func (x *session) silence(t *act.Task, err error) act.Directive {
	if x.skip(); x.exchange != nil && x.phase != arriving {
		x.phase, x.limit = arriving, 0
		x.enter(StateActive)
	}
	now := t.Scheduler().Now()
	blocked, is := err.(act.Blocked)
	if x.stopping && x.phase.idle() && x.limit == 0 { // after an answer that does not say that it is the last one
		x.limit = x.leave(t)
	}
	switch {
	case err == listener.ErrTooLong:
		return x.refuse(t, http1.ErrLargeHead)
	case err == io.EOF:
		return x.depart()
	case !is:
		return x.abort(t, err)
	case x.exchange != nil && !x.exchange.cache.hold(&x.exchange.held, x.conn.Buffered(), x.server):
		return x.refuse(t, errCrowded)
	case x.limit == 0:
		x.limit = max(1, now+x.patience())
	case now >= x.limit && x.phase == arriving:
		return x.refuse(t, errSlowHead)
	case now >= x.limit:
		return x.depart()
	}
	blocked.Arm(t)
	x.timer.WakeAt(t, x.limit)
	return act.Wait
}

// leave returns when a shutdown ends the connection, if no request begins. The first one may be on its way.
func (x *session) leave(t *act.Task) time.Duration {
	if x.phase == resting {
		return max(1, t.NextLeaveTime())
	}
	return max(1, x.conn.FirstLeaveTime(t))
}

// skip discards empty lines before a request: they do not begin one, so the connection is at rest (RFC 9112 2.2).
func (x *session) skip() {
	if n := x.conn.Buffered(); x.exchange != nil && x.exchange.parser.OnlyBlank(n) {
		x.conn.Discard(n)
		x.blank = x.exchange.parser.Blank
		x.release()
	}
}

// patience returns how long the client may take with the awaited input.
func (x *session) patience() time.Duration {
	if x.phase == resting {
		return x.server.idleTime()
	}
	return x.server.headTime()
}

// IdleSince tells a service at MaxConns since when nothing is lost by closing the connection: between two requests, when
// the client has taken the answer, and before the first. Another protocol speaks for itself.
func (x *session) IdleSince() (since time.Duration, idle bool) {
	if x.next != nil {
		if next, ok := x.next.Action.(interface {
			IdleSince() (since time.Duration, idle bool)
		}); ok {
			return next.IdleSince()
		}
		return 0, false
	}
	return x.limit - x.patience(), x.phase.idle() && x.limit != 0 && x.conn.Queued() == 0
}

// understand takes the head, in the turn in which it has ended.
func (x *session) understand(t *act.Task) act.Directive {
	x.enter(StateActive)
	x.asked = true
	e := x.exchange
	n := e.parser.Length
	x.conn.Discard(n)
	e.parser.Text = e.parser.Text[:n:n]
	if err := e.parser.Framing(e.parser.Text, &e.framing); err != nil {
		return x.refuse(t, err)
	}
	if e.drop(); x.server.tooLarge(e.framing.Length) {
		return x.refuse(t, errTooLarge)
	}
	if e.framing.Chunked || e.framing.Length > 0 {
		e.expect()
	}
	e.out.mute = string(e.in.Method()) == "HEAD"
	e.cache.counts.requests++
	x.phase = asking
	return act.Done
}

// ask lets the handler answer.
func (x *session) ask(t *act.Task) act.Directive {
	e := x.exchange
	e.action = x.server.handler(e.framing.Connect)(&e.out, &e.in)
	if x.phase = handling; e.action == nil {
		return x.answered(t)
	}
	if x.stopping {
		x.Stop(t, t.Order())
	}
	return x.turn(t)
}

// handle goes on with that.
func (x *session) handle(t *act.Task) act.Directive {
	if err := x.exchange.push(); err != nil && !isBlocked(err) {
		return x.failed(t, err)
	}
	return x.turn(t)
}

// turn gives the handler's action a turn.
func (x *session) turn(t *act.Task) act.Directive {
	e := x.exchange
	x.phase = handling // also for one that panics now
	d := e.action.Act(t)
	if d == act.Async {
		x.phase = away
	}
	if d == act.Wait || d == act.Async {
		x.deliver(t)
	}
	if d == act.Wait && e.content.since == 0 && e.watch != heard { // an action that waits for the body hears of the end from there
		if _, err := e.awaitEnd(t); err != nil {
			x.closeAction()
			return x.abort(t, err)
		}
	}
	switch {
	case d == act.Failed:
		return x.failed(t, t.Scheduler().Internals().Failure())
	case d == act.Done, d != act.Async && e.out.complete():
		return x.answered(t)
	}
	return d
}

// deliver sends what the handler has written when it waits, and has a turn come for the bytes that did not fit.
func (x *session) deliver(t *act.Task) {
	e := x.exchange
	if len(e.out.body) > 0 {
		_ = e.out.Flush() // an error stays for the next call
	}
	if blocked, is := e.push().(act.Blocked); is {
		blocked.Arm(t)
	}
}

// answered is called when the handler is done.
func (x *session) answered(t *act.Task) act.Directive {
	if x.exchange.undecided() {
		x.closeAction()
		return x.leftover(t.Scheduler().Now() + drainTime)
	}
	return x.finish(t)
}

// finish sends the answer, as far as there is room.
func (x *session) finish(t *act.Task) act.Directive {
	if err := x.exchange.out.finish(); err != nil {
		return x.failed(t, err)
	}
	if !x.exchange.out.leaves() { // see handOver
		x.closeAction()
	}
	x.phase = sending
	return act.Done
}

// failed is called when the handler is not going to answer. The client is told, if it is not too late.
func (x *session) failed(t *act.Task, err error) act.Directive {
	x.closeAction()
	e, bad := x.exchange, (*syntax.Refusal)(nil)
	ofConn := e.lost != nil && errors.Is(err, e.lost) || e.content.err != nil && errors.Is(err, e.content.err)
	switch {
	case err == ErrAbort:
		return x.abort(t, err)
	case errors.Is(err, ErrAbort):
		return x.abort(t, &failure{err})
	case !errors.As(err, &bad) && !ofConn: // it comes from something else that the handler did
		err, bad = &failure{err}, errHandler
		e.failure = err
	}
	if e.out.progress != gathering || bad == nil {
		return x.abort(t, err)
	}
	return x.refuse(t, bad)
}

// failure is the error of a handler. It does not unwrap: a handler's error may be the reset of another connection, which
// the service must not take for the end of this one.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// As finds a Panic, whose stack is logged.
func (f *failure) As(target any) bool {
	p, is := target.(**act.Panic)
	return is && errors.As(f.err, p)
}

// refuse answers with an error, as the last thing on this connection.
func (x *session) refuse(t *act.Task, err error) act.Directive {
	x.enter(StateActive)
	bad := err.(*syntax.Refusal)
	x.note(t, "a request is refused", bad)
	if err := x.engage().refuse(bad.Status); err != nil {
		return x.abort(t, err)
	}
	x.phase = sending
	return act.Done
}

// send sends the rest of the response.
func (x *session) send(t *act.Task) act.Directive {
	e := x.exchange
	if err := e.push(); err != nil {
		return x.hold(t, err)
	}
	e.over()
	switch {
	case e.out.leaves():
		x.handOver(t)
	case e.out.last:
		x.phase = closing
	case e.content.kind == ended:
		x.rest()
	default:
		x.leftover(timeout.Never) // the client may not be too slow, which bounds the time
	}
	return act.Done
}

// handOver leaves the connection to another protocol. The handler's action is closed after that, or by Close if it has come
// to nothing: a goroutine may be waiting for the connection, and the action can tell it.
func (x *session) handOver(t *act.Task) {
	hijacked := x.exchange.out.status != 101
	if hijacked {
		x.keep()
	}
	x.timer.Stop()
	next := x.exchange.out.next(x.conn)
	x.closeAction()
	if hijacked {
		x.exchange.meter.Set(x.conn, 0)
		x.exchange = nil // it is the collector's: a goroutine may still look at the request
	} else {
		x.release()
	}
	x.pace = nil
	x.enter(StateHijacked)
	x.becomes(t, next)
}

// becomes has another action go on with the connection.
func (x *session) becomes(t *act.Task, next act.Action) {
	x.next, x.phase = &act.Child{Action: next}, switched
	if x.stopping {
		x.next.Stop(t, t.Order())
	}
	if outer, ok := t.Action().(parent); ok && next != nil {
		outer.Replace(x, next) // this is the session's last turn, unless another action is around it
	}
}

// parent is the action of a task that can go on with another action in place of one that it calls. Replace reports whether it
// calls old; then it calls replacement from the next turn on, and everything else it had for old now goes to replacement:
// shutdown requests, the end and the name.
type parent interface {
	Replace(old, replacement act.Action) bool
}

// leftover begins to throw away the unread rest of the body (RFC 9112 9.3): otherwise it would be the next request.
func (x *session) leftover(until time.Duration) act.Directive {
	x.phase, x.limit = draining, until
	x.exchange.content.leave(x.server)
	return act.Done
}

// drain goes on with that until the end of the body, or of its bounds.
func (x *session) drain(t *act.Task) act.Directive {
	e := x.exchange
	for {
		in, err := e.peek()
		if isBlocked(err) && t.Scheduler().Now() < x.limit {
			x.timer.WakeAt(t, x.limit)
			return listener.Next(t, err)
		}
		if err != nil || e.content.taken+int64(len(in)) > e.content.most {
			break
		}
		e.discard(len(in))
	}
	switch {
	case e.out.progress == gathering:
		return x.finish(t)
	case e.content.kind == ended:
		x.rest()
		return act.Done
	}
	return x.depart()
}

// rest begins to wait for the next request, which may be there already.
func (x *session) rest() {
	x.phase, x.limit, x.blank = resting, 0, 0
	x.enter(StateIdle)
	if x.conn.Buffered() > 0 {
		x.exchange.reset()
	} else {
		x.release()
	}
}

// hold waits until the client has taken more. A client that does not is cut off.
func (x *session) hold(t *act.Task, err error) act.Directive {
	if isBlocked(err) {
		return listener.Next(t, err)
	}
	return x.abort(t, err)
}

// depart begins to close: nothing further is read.
func (x *session) depart() act.Directive {
	x.engage()
	if x.phase.idle() {
		x.phase = leaving
	} else {
		x.phase = closing
	}
	return act.Done
}

// close closes in stages (RFC 9112 9.6), when everything has been handed to the kernel: that may take a slow client
// longer than listener.Limits.Linger.
func (x *session) close(t *act.Task) act.Directive {
	if err := x.conn.Sent(); err != nil {
		return x.hold(t, x.exchange.blocked(err))
	}
	if err := x.exchange.failure; err != nil {
		return t.Fail(err) // the report names the peer; then Close closes the connection
	}
	if x.phase == leaving {
		_ = x.conn.Internals().CloseWithin(idleLinger)
	}
	_ = x.conn.Close() // an error means that the client has gone
	x.release()
	return act.Done
}

// abort ends the connection so that the client sees that something is missing. A client's mistake is not a failure of
// the server.
func (x *session) abort(t *act.Task, err error) act.Directive {
	x.conn.Abort()
	x.phase = aborted
	if x.exchange != nil {
		x.exchange.over()
	}
	if bad := (*syntax.Refusal)(nil); errors.As(err, &bad) || errors.Is(err, ErrSlow) || err == ErrAbort {
		x.note(t, "a connection is cut", err)
		return act.Done
	}
	return t.Fail(err)
}

func (x *session) closeAction() {
	c, ok := x.exchange.action.(io.Closer)
	if x.exchange.action = nil; ok {
		_ = c.Close() // there is no caller left to return its error to
	}
}

func (x *session) release() {
	if x.exchange != nil {
		x.exchange.meter.Set(x.conn, 0)
		x.exchange.cache.give(x.exchange)
		x.exchange = nil
	}
}

// Stop passes a shutdown request on to the handler's action, and has the connection end with the response; at rest, when its
// moment has come.
func (x *session) Stop(t *act.Task, o shutdown.Order) {
	x.stopping = true
	switch {
	case x.next != nil:
		x.next.Stop(t, o)
	case x.phase.idle():
		if leave := x.leave(t); x.limit == 0 || leave < x.limit {
			x.limit = leave
		}
	case x.exchange != nil && (x.phase == handling || x.phase == away):
		if st, ok := x.exchange.action.(act.Stopper); ok {
			st.Stop(t, o)
		}
	}
}

// Abandon leaves the handler's action to the function that it has offloaded, and the exchange to the collector: the
// function may still read the request.
func (x *session) Abandon() act.Action {
	if x.next != nil {
		return x.next.Abandon()
	}
	x.enter(StateClosed)
	a := x.exchange.action
	x.exchange = nil
	return (&act.Child{Action: a}).Abandon()
}

// Close closes the handler's action, if it has not finished. The exchange is left to the collector: the handler may have
// kept the request or the response. An action around the session that does not pass Abandon on is closed when an offloaded
// function returns, on the goroutine of that function if the scheduler is closed by then: nothing of the scheduler's is
// touched there.
func (x *session) Close() error {
	if x.next != nil {
		return x.next.Close()
	}
	if x.exchange == nil || x.phase != away {
		x.enter(StateClosed)
	}
	if e := x.exchange; e != nil {
		x.closeAction()
		if x.phase != away {
			e.over()
			e.drop()
		}
		if e.failure != nil {
			_ = x.conn.Close() // an error means that the client has gone
		}
		x.exchange = nil
	}
	return nil
}

// String names the request, or says that there is none.
func (x *session) String() string {
	switch {
	case x.next != nil:
		return x.next.String()
	case x.exchange == nil:
		return noRequest
	}
	return x.exchange.in.name()
}
