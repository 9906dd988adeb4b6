package nethttp

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/lane"
	"github.com/daimon-go/daimon/listener"
)

// trip is the action of a request, and what it shares with the goroutines of its caller.
//
//	a goroutine                                     the scheduler's thread
//	RoundTrip ─── the fields ─────────────────────▶ client.Call
//	Request.Body, on one of its own ─── out ──────▶ Call.Write
//	Response ◀─── the head ───────────────────────  Call.Response
//	Response.Body ◀─── in ────────────────────────  Response.Peek
type trip struct {
	req      *http.Request
	ctx      context.Context
	seat     *seat
	stop     func() bool   // ends the wait for the end of ctx; nil: it has none
	over     chan struct{} // closed when the caller wants no more
	ended    atomic.Bool   // over is, or is going to be
	closed   sync.Once     // Request.Body
	bell     act.AtomicWaker
	out      *lane.Lane    // content of the request; nil: there is none, or it is Call.Content
	ready    chan struct{} // has an element when response or err is set
	interims chan interim  // nil: nobody wants them
	response *http.Response
	err      error
	in       *lane.Lane  // content of the response; nil: it has none, or all of it is there
	trailer  http.Header // of the response, before the end of in

	// The goroutine's that reads the content, before the end of out.
	failure  error
	trailers []string

	// The task's.
	call     client.Call
	answer   *client.Response // nil: its head has not come
	sending  bool             // the content is being read
	sent     bool             // all of it, or as much as the server takes
	finished bool
}

// begin is posted to the scheduler.
func (x *trip) begin(s *act.Scheduler) { s.Spawn(x) }

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
			if x.begun(t) {
				return act.Done
			}
		default:
			if d == act.Wait {
				d = x.send(t)
			}
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
		case p == nil && x.failure != nil:
			return x.finish(x.failure)
		case p == nil:
			x.sent = true
			if err = x.call.End(x.trailers...); err != nil {
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
		} else if err != nil { // the call knows more
			x.sent = true
			x.out.End(errAnswered)
			return act.Yield
		}
	}
	return act.Wait
}

// sendContent reads the content of the request, on a goroutine.
func (x *trip) sendContent() {
	defer x.closeContent()
	var err error
	if length := x.call.Length; length < 0 {
		_, err = io.Copy(x.out, x.req.Body)
	} else if _, err = io.CopyN(x.out, x.req.Body, length); err == io.EOF {
		err = errShort
	} else if err == nil {
		if more, _ := x.req.Body.Read(make([]byte, 1)); more > 0 {
			err = errLong
		}
	}
	if x.failure = err; err == nil && x.call.Length < 0 {
		for name, values := range x.req.Trailer {
			for _, v := range values {
				x.trailers = append(x.trailers, name, v)
			}
		}
	}
	_ = x.out.Finish() // an error means that nobody wants it
}

// closeContent closes the body of the request, on a goroutine.
func (x *trip) closeContent() {
	if x.req.Body != nil {
		x.closed.Do(func() { _ = x.req.Body.Close() })
	}
}

// begun makes the response of the head that has come, and reports whether the trip is over.
func (x *trip) begun(t *act.Task) bool {
	a := x.call.Response()
	x.answer = a
	text := make(text, 0, sizeOf(a.Fields()))
	r := &http.Response{StatusCode: a.Status(), Proto: a.Proto(), ProtoMajor: 1, Header: text.header(a.Fields()), Body: http.NoBody,
		ContentLength: a.Length(), Request: x.req}
	r.Status = strconv.Itoa(r.StatusCode) + " " + http.StatusText(r.StatusCode)
	switch r.Proto {
	case "HTTP/1.1":
		r.ProtoMinor = 1
	case "HTTP/2.0":
		r.ProtoMajor = 2
	}
	if state, ok := a.TLS(); ok {
		r.TLS = &state
	}
	if a.Header("Transfer-Encoding") != nil {
		r.TransferEncoding = []string{"chunked"}
	}
	r.Close = lists(r.Header["Connection"], "close")
	x.response = r
	if conn := a.Conn(); conn != nil {
		bridge := &listener.Bridge{Conn: conn}
		r.Body = bridge.NetConn()
		t.Scheduler().Spawn(bridge)
		x.finish(nil)
		return true
	}
	var err error
	if r.Trailer, err = announced(r.Header); err != nil {
		x.finish(err)
		return true
	}
	if x.whole() {
		x.finish(nil)
		return true
	}
	r.Body = &incoming{x: x}
	x.ready <- struct{}{}
	return false
}

// whole reports whether all of the content has come with the head. Otherwise the rest comes through a lane.
func (x *trip) whole() bool {
	a, r := x.answer, x.response
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
		x.out.End(errAnswered)
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
func (x *trip) Describe(d *act.Description) {
	d.Of(&x.call)
	if x.in != nil && x.in.Full() {
		d.WaitsFor("a goroutine that reads the answer")
	}
}

// inform is the client.Call's.
func (x *trip) inform(a *client.Response) {
	text := make(text, 0, sizeOf(a.Fields()))
	select {
	case x.interims <- interim{a.Status(), text.header(a.Fields())}:
	default:
	}
}

// cancel ends all calls that wait, and has the server told. Any goroutine.
func (x *trip) cancel() {
	if !x.ended.Swap(true) {
		close(x.over)
		x.bell.Wake()
		x.closeContent()
	}
}

// end is called on a goroutine when the trip is over.
func (x *trip) end() {
	if x.stop != nil {
		x.stop()
	}
	x.closeContent()
}

// incoming is the body of a response that has not come with its head.
type incoming struct {
	x     *trip
	ended atomic.Bool // and the trailers are in the response
}

func (b *incoming) Read(p []byte) (int, error) {
	x := b.x
	n, err := x.in.Read(p)
	switch {
	case err == nil:
	case err == lane.ErrOver && x.ctx.Err() != nil:
		err = context.Cause(x.ctx)
	case err == lane.ErrOver:
		err = http.ErrBodyReadAfterClose
	case !b.ended.Swap(true):
		takeTrailers(&x.response.Trailer, x.trailer)
		x.end()
	}
	return n, err
}

// Close gives up what has not come.
func (b *incoming) Close() error {
	b.x.cancel()
	b.x.end()
	return nil
}
