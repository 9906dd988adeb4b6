package nethttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/lane"
	"github.com/daimon-go/daimon/listener"
)

// Transport is an http.RoundTripper that sends requests on the schedulers of a Group, by package client. It is for goroutines,
// such as handlers of an [Adapter]: they use an http.Client, and share the connections and the bounds of Client. Actions and
// coroutines use a client.Call, which costs less. The package documentation says what is different from http.Transport.
//
// A Transport must not be copied. Its methods are for any goroutine, but RoundTrip panics on the thread of the scheduler that
// it would wait for.
type Transport struct {
	// Client has the Origins of the requests, their bounds and their time-outs. It must not be changed after the first request.
	Client client.Client

	seats atomic.Pointer[[]*seat]
}

// seat is a scheduler that takes requests.
type seat struct {
	s     *act.Scheduler
	trips atomic.Int64
	gone  chan struct{} // closed with the scheduler
}

var seats = act.NewLocal(func(s *act.Scheduler) *seat { return &seat{s: s, gone: make(chan struct{})} })

// Close is called with the scheduler.
func (x *seat) Close() error {
	close(x.gone)
	return nil
}

// Setup is a set-up function of a Group: it has s take requests. It keeps Run from returning until a shutdown begins, and so
// does each request after that. A Transport is for one Group.
func (tr *Transport) Setup(s *act.Scheduler) error {
	all := []*seat{seats.Get(s)}
	if others := tr.seats.Load(); others != nil {
		all = append(all, *others...)
	}
	tr.seats.Store(&all)
	s.Install(demon.Stay())
	return nil
}

var (
	errNoSetup = errors.New("nethttp: a request before Transport.Setup was called")
	errLength  = errors.New("nethttp: the body of the request is longer or shorter than its ContentLength")
)

// wholeRequest bounds the content that is read before a request begins.
const wholeRequest = 64 << 10

// RoundTrip implements http.RoundTripper. An error is that of the request's context, or a *client.Error, or says what is wrong
// with the request.
func (tr *Transport) RoundTrip(req *http.Request) (r *http.Response, err error) {
	x := &trip{req: req, over: make(chan struct{}), ready: make(chan struct{}, 1)}
	if err = tr.begin(x); err == nil {
		r, err = x.await()
	}
	if x.stop == nil {
		x.end()
	}
	return r, err
}

// CloseIdleConnections closes the connections without a request, soon: http.Client.CloseIdleConnections calls it.
func (tr *Transport) CloseIdleConnections() { tr.Client.CloseIdle() }

// begin gives the trip to a scheduler.
func (tr *Transport) begin(x *trip) error {
	req := x.req
	origin, err := tr.Client.Origin(req.URL.Scheme, req.URL.Host)
	if err != nil {
		return err
	}
	x.call = client.Call{Origin: origin, Method: req.Method, Target: req.URL.RequestURI(), Host: req.Host}
	x.fields()
	if err := x.content(); err != nil {
		return err
	}
	all := tr.seats.Load()
	if all == nil {
		return errNoSetup
	}
	x.seat = slices.MinFunc(*all, func(a, b *seat) int { return int(a.trips.Load() - b.trips.Load()) })
	if x.seat.s.Internals().Here() {
		panic("nethttp: RoundTrip on the thread of a scheduler, which must not wait: use a client.Call")
	}
	x.seat.trips.Add(1)
	return x.seat.s.Post(func(s *act.Scheduler) { s.Spawn(x) })
}

// fields gives the call the header. The call itself makes the fields that decide how the connection goes on.
func (x *trip) fields() {
	c, header := &x.call, x.req.Header
	for name, values := range header {
		if name == "Trailer" || syntax.KindOf(syntax.Bytes(name)) != syntax.Ordinary {
			continue
		}
		if name == "User-Agent" && slices.Equal(values, []string{""}) {
			continue // as net/http does
		}
		for _, v := range values {
			c.Add(name, strings.Trim(v, " \t"))
		}
	}
	if _, named := header["User-Agent"]; !named {
		c.Add("User-Agent", "Go-http-client/1.1")
	}
	c.CloseAfter = x.req.Close || lists(header["Connection"], "close")
	if lists(header["Connection"], "upgrade") {
		c.Upgrade = header.Get("Upgrade")
	}
	c.Repeatable = header["Idempotency-Key"] != nil || header["X-Idempotency-Key"] != nil
}

// content gives the call the content, or prepares the lane that it comes through.
func (x *trip) content() (err error) {
	c, req := &x.call, x.req
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	c.Expect = lists(req.Header["Expect"], "100-continue")
	if req.GetBody != nil && 0 < req.ContentLength && req.ContentLength <= wholeRequest {
		defer x.closeContent()
		c.Content, err = io.ReadAll(io.LimitReader(req.Body, req.ContentLength+1))
		if err == nil && int64(len(c.Content)) != req.ContentLength {
			err = errLength
		}
		return err
	}
	if c.Length = req.ContentLength; c.Length == 0 { // with a body it means that the length is not known
		c.Length = -1
	}
	if len(req.Trailer) > 0 && c.Length < 0 {
		c.Add("Trailer", strings.Join(slices.Sorted(maps.Keys(req.Trailer)), ", "))
	}
	x.out = lane.From(x.over, &x.bell)
	return nil
}

// await waits for the answer, on the goroutine of RoundTrip.
func (x *trip) await() (r *http.Response, err error) {
	ctx := x.req.Context()
	select {
	case <-x.ready:
		if r, err = x.response, x.err; x.in != nil {
			x.stop = context.AfterFunc(ctx, x.cancel)
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-x.seat.gone:
		err = act.ErrClosed
	}
	return r, err
}

// trip is the action of a request, and what it shares with the goroutines of its caller.
//
//	a goroutine                                     the scheduler's thread
//	RoundTrip ─── the fields ─────────────────────▶ client.Call
//	Request.Body, on one of its own ─── out ──────▶ Call.Write
//	Response ◀─── the head ───────────────────────  Call.Response
//	Response.Body ◀─── in ────────────────────────  Response.Peek
type trip struct {
	req      *http.Request
	seat     *seat
	stop     func() bool   // ends the wait for the end of the context; nil: nothing waits
	over     chan struct{} // closed when the caller wants no more
	ended    sync.Once     // over
	closed   sync.Once     // Request.Body
	bell     act.AtomicWaker
	out      *lane.Lane    // content of the request; nil: there is none, or it is Call.Content
	failure  error         // of Request.Body, before the end of out
	ready    chan struct{} // has an element when response or err is set
	response *http.Response
	err      error
	in       *lane.Lane  // content of the response; nil: it has none, or all of it is there
	trailer  http.Header // of the response, before the end of in

	// The task's.
	call     client.Call
	answer   *client.Response // nil: its head has not come
	sending  bool             // the content is being read
	sent     bool             // all of it, or as much as the server takes
	finished bool
}

// Act carries content both ways.
func (x *trip) Act(t *act.Task) act.Directive {
	x.bell.Set(t.Waker()) // before checking what the goroutines have done
	if lane.IsClosed(x.over) {
		return act.Done
	}
	if x.answer == nil {
		switch d := x.call.Act(t); d {
		case act.Failed:
			return x.finish(t.Err())
		case act.Done:
			if x.begun(t); x.finished {
				return act.Done
			}
		case act.Wait:
			return x.send(t)
		default:
			return d
		}
	}
	if d := x.send(t); d != act.Wait {
		return d
	}
	return x.receive(t)
}

// send sends content. It returns Yield if the call has something to say.
func (x *trip) send(t *act.Task) act.Directive {
	for x.out != nil && !x.sent {
		_, err := x.call.Write(nil)
		p := x.out.Front()
		switch {
		case err != nil:
		case !x.sending: // not before it is wanted
			x.sending = true
			executors.Get(t.Scheduler()).Execute(x.sendContent)
			return act.Wait
		case p == nil && !x.out.Finished():
			return act.Wait
		case p == nil:
			if err = x.failure; err == nil {
				err = x.call.End(pairs(x.req.Trailer)...)
			}
			if x.sent = true; err != nil {
				return x.finish(err)
			}
			return act.Yield // the call waits for the answer from now on
		default:
			var n int
			n, err = x.call.Write(p)
			x.out.Discard(n)
		}
		if blocked, is := err.(act.Blocked); is {
			x.out.Discard(0)
			blocked.Arm(t)
			return act.Wait
		}
		if err != nil && err != client.ErrAnswered && x.answer == nil {
			return x.finish(err)
		}
		if err != nil {
			x.sent = true
			x.out.End(err)
			return act.Yield
		}
	}
	return act.Wait
}

// pairs returns the names and values of a header.
func pairs(header http.Header) (all []string) {
	for name, values := range header {
		for _, v := range values {
			all = append(all, name, v)
		}
	}
	return all
}

// sendContent reads the content of the request, on a goroutine.
func (x *trip) sendContent() {
	defer x.closeContent()
	_, x.failure = io.Copy(x.out, x.req.Body)
	_ = x.out.Finish() // an error means that nobody wants it
}

// closeContent closes the body of the request, on a goroutine.
func (x *trip) closeContent() {
	if x.req.Body != nil {
		x.closed.Do(func() { _ = x.req.Body.Close() })
	}
}

// begun makes the response of the head that has come.
func (x *trip) begun(t *act.Task) {
	a := x.call.Response()
	x.answer = a
	r := &http.Response{StatusCode: a.Status(), Proto: a.Proto(), Header: http.Header{}, Body: http.NoBody,
		ContentLength: a.Length(), Request: x.req}
	for name, value := range a.Fields() {
		if syntax.KindOf(name) != syntax.TransferEncoding {
			r.Header.Add(string(name), string(value))
		}
	}
	r.Status = strconv.Itoa(r.StatusCode) + " " + http.StatusText(r.StatusCode)
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(r.Proto)
	if state, ok := a.TLS(); ok {
		r.TLS = &state
	}
	r.Close = lists(r.Header["Connection"], "close")
	var err error
	if conn := a.Conn(); conn != nil {
		bridge := &listener.Bridge{Conn: conn}
		r.Body = bridge.NetConn()
		t.Scheduler().Spawn(bridge)
	} else if r.Trailer, err = announced(r.Header); err != nil {
		x.finish(err)
		return
	} else if !x.whole(r) {
		r.Body = &incoming{x: x}
		x.response = r
		x.ready <- struct{}{}
		return
	}
	x.response = r
	x.finish(nil)
}

// whole reports whether all of the content has come with the head. Otherwise the rest comes through a lane.
func (x *trip) whole(r *http.Response) bool {
	a := x.answer
	p, err := a.Peek()
	var all []byte
	if len(p) > 0 && len(p) <= lane.ChunkSize && int64(len(p)) == a.Length() {
		all = bytes.Clone(p)
		a.Discard(len(p))
		_, err = a.Peek()
	}
	if err == io.EOF {
		takeTrailers(&r.Trailer, headerOf(a.Trailers()))
		if all != nil {
			r.Body = io.NopCloser(bytes.NewReader(all))
		}
		return true
	}
	x.in = lane.To(x.over, &x.bell)
	x.in.Put(all)
	return false
}

// receive passes content of the response on, as far as there is room.
func (x *trip) receive(t *act.Task) act.Directive {
	for range piecesPerTurn {
		if x.in.Full() {
			return act.Wait // Read wakes the task
		}
		p, err := x.answer.Peek()
		if blocked, is := err.(act.Blocked); is {
			blocked.Arm(t)
			return act.Wait
		} else if err != nil {
			return x.finish(err)
		}
		x.answer.Discard(x.in.Put(p))
	}
	return act.Yield
}

// finish ends the trip, with io.EOF after the last byte of the response.
func (x *trip) finish(err error) act.Directive {
	if x.finished {
		return act.Done
	}
	x.finished = true
	if x.seat.trips.Add(-1); x.answer != nil {
		x.trailer = headerOf(x.answer.Trailers())
		_ = x.answer.Close() // before the caller can make the next request
	}
	if x.out != nil {
		x.out.End(client.ErrAnswered)
	}
	if x.in != nil {
		x.in.End(err)
	} else {
		x.err = err
		x.ready <- struct{}{}
	}
	return act.Done
}

// Close is called when the trip is over, or was dropped: then all calls of its goroutines fail.
func (x *trip) Close() error {
	x.finish(net.ErrClosed)
	return nil
}

// Describe implements act.Describer.
func (x *trip) Describe(d *act.Description) { d.Of(&x.call) }

// cancel ends all calls that wait, and has the server told. Any goroutine.
func (x *trip) cancel() {
	x.ended.Do(func() { close(x.over) })
	x.bell.Wake()
	x.closeContent()
}

// end is called on the caller's goroutine when it wants no more.
func (x *trip) end() {
	if x.cancel(); x.stop != nil {
		x.stop()
	}
}

// incoming is the body of a response that has not come with its head.
type incoming struct {
	x   *trip
	err error // of Read; the trailers are in the response
}

func (b *incoming) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	x := b.x
	if n, err = x.in.Read(p); err == lane.ErrOver {
		if err = context.Cause(x.req.Context()); err == nil {
			err = http.ErrBodyReadAfterClose
		}
	} else if err != nil {
		takeTrailers(&x.response.Trailer, x.trailer)
		x.end()
	}
	b.err = err
	return n, err
}

// Close gives up what has not come.
func (b *incoming) Close() error {
	b.x.end()
	return nil
}
