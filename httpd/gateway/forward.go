package gateway

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
)

// forward is the action of a request: it passes the request to a back end, and the answer to the client.
//
//	client ──▶ r ──▶ send ──▶ call ──▶ back end
//	client ◀── w ◀── pass ◀── answer ◀─┘
//
// In each turn it goes on in both directions, as far as there is room. A request that a back end has not answered is passed to another
// one, if it may be: see again.
type forward struct {
	w       *httpd.Response
	r       *httpd.Request
	route   *route
	back    *backend // nil: none is chosen
	tried   []*backend
	call    client.Call
	answer  *client.Response       // nil: its head has not come
	kept    []byte                 // the content of a request that may be repeated
	informs func(*client.Response) // inform
	text    []byte                 // method, target and host of the call
	begun   time.Duration          // when the back end was chosen
	sent    bool                   // all of the content was given to the call
	loose   bool                   // some of it is gone, so the request cannot be repeated
	far     *listener.Conn         // after 101, until the client's connection is joined to it
}

// The bounds of a request that may be repeated.
const (
	mostTries = 3        // back ends
	mostKept  = 16 << 10 // bytes of content
)

// mostPassed bounds the bytes of content that a turn passes on in a direction. So others have their turns, and the bytes of the
// next turn are lent in the same memory.
const mostPassed = 64 << 10

// Act goes on with the request and with the answer.
func (f *forward) Act(t *act.Task) act.Directive {
	if f.r.Ended(t) { // as nginx and net/http do
		return t.Fail(httpd.ErrAbort)
	}
	if !f.gathered() {
		in, err := f.r.Body.Peek()
		if err != nil && err != io.EOF {
			return listener.Next(t, err)
		}
		f.kept = append(f.kept, in...)
		f.r.Body.Discard(len(in))
		return act.Yield
	}
	for f.answer == nil {
		if f.back == nil && !f.choose() {
			return f.refuse(503)
		}
		d := f.call.Act(t)
		switch d {
		case act.Done:
			if f.answer = f.call.Response(); f.disliked() && f.again(nil) {
				continue
			}
			if !f.begin() {
				return f.refuse(502)
			}
		case act.Failed:
			if err := t.Err(); !f.again(err) {
				return f.fail(t, err)
			}
			continue
		default:
			switch err := f.send(); {
			case err == client.ErrAnswered:
				return act.Yield // the call has the answer
			case err != nil:
				return f.wait(t, d, err)
			}
			return d
		}
	}
	return f.pass(t)
}

// gathered reports whether nothing more of the content is to be kept for a repetition.
func (f *forward) gathered() bool {
	n := f.r.Body.Length()
	return n <= 0 || n > mostKept || !syntax.Idempotent(syntax.String(f.r.Method())) || int64(len(f.kept)) == n
}

// choose chooses a back end and makes the call. It reports whether there is one.
func (f *forward) choose() bool {
	next := f.route.group.pick(f.r, f.tried)
	if next != nil {
		f.use(next)
	}
	return next != nil
}

// use makes the call to a back end.
func (f *forward) use(back *backend) {
	f.back = back
	f.begun = f.r.Scheduler().Now()
	f.back.begin()
	f.tried = append(f.tried, f.back)
	c := &f.call
	c.Reset()
	c.Origin = f.back.origin
	f.translate(c)
	switch n := f.r.Body.Length(); {
	case n <= 0 && f.r.Upgrades(webSocket): // a request with content stays one
		c.Upgrade, f.sent = webSocket, true
	case f.kept != nil:
		c.Content, f.sent = f.kept, true
	default:
		c.Length, f.sent = n, n == 0
	}
	c.Expect = !f.sent && f.r.Header("Expect") != nil
	c.Inform = f.informs
	if f.back.Proxy > 0 {
		c.Filter = proxyproto.Client(proxyproto.Header{Version: f.back.Proxy,
			Source: f.r.RemoteAddr(), Destination: f.r.Conn().LocalAddr()})
	}
}

// send passes content on, and returns why it cannot go on: an act.Blocked, or what is wrong with the content. A call that takes
// no more is not an error here: it has the answer, or the cause.
func (f *forward) send() error {
	for passed := 0; !f.sent; {
		if passed >= mostPassed {
			return nextTurn{}
		}
		if _, err := f.call.Write(nil); err != nil {
			return blockedOnly(err)
		}
		in, err := f.r.Body.Peek() // not before it is wanted: this sends 100 (Continue)
		if err == io.EOF {
			f.sent = true
			return blockedOnly(f.call.End(trailers(f.r)...))
		}
		if err != nil {
			return err
		}
		n, err := f.call.Write(in)
		f.r.Body.Discard(n)
		f.loose = f.loose || n > 0
		passed += n
		if err != nil {
			return blockedOnly(err)
		}
	}
	return nil
}

// nextTurn is the error that enough was done in this turn.
type nextTurn struct{}

func (nextTurn) Error() string   { return "gateway: the next turn goes on" }
func (nextTurn) Arm(t *act.Task) { t.Waker().Wake() }

// blockedOnly leaves out what is wrong with a call: it comes again with the answer.
func blockedOnly(err error) error {
	if _, is := err.(act.Blocked); is || err == client.ErrAnswered {
		return err
	}
	return nil
}

// begin begins the answer to the client, and reports whether there can be one.
func (f *forward) begin() bool {
	a, w := f.answer, f.w
	if a.Status() == 101 {
		return f.join()
	}
	w.SetStatus(a.Status())
	copyFields(w, a, "")
	if n := a.Length(); n >= 0 {
		w.SetLength(n)
	} else {
		_ = w.Flush() // pass finds the error
	}
	return true
}

// pass passes the answer on, in both directions.
func (f *forward) pass(t *act.Task) act.Directive {
	if f.far != nil {
		return act.Done
	}
	up := f.send()
	if up == client.ErrAnswered {
		up = nil
	}
	in, err := f.answer.Peek()
	for passed := 0; err == nil; {
		var n int
		n, err = f.w.Write(in)
		f.answer.Discard(n)
		if passed += n; passed >= mostPassed {
			return act.Yield
		}
		if err == nil {
			in, err = f.answer.Peek()
		}
	}
	_, blocked := err.(act.Blocked)
	if blocked && f.text != nil { // it lasts
		f.answer.DropHead()
		f.text = nil
	}
	switch {
	case blocked:
		if d := f.wait(t, act.Wait, err); up == nil || d != act.Wait {
			return d
		}
		return f.wait(t, act.Wait, up)
	case err == io.EOF:
		copyTrailers(f.w, f.answer) // over HTTP/2 trailers may follow content of known length
		o := good
		if f.disliked() {
			o = bad
		}
		f.end(o)
		return act.Done
	}
	return f.fail(t, err)
}

// wait has the task woken by what is blocked. Any other error is one of the client.
func (f *forward) wait(t *act.Task, d act.Directive, err error) act.Directive {
	blocked, is := err.(act.Blocked)
	if !is {
		return t.Fail(err)
	}
	blocked.Arm(t)
	return d
}

// again chooses another back end, if the request may be repeated: no answer has been begun, its content is still there, the back end
// has not acted on it or its method is idempotent (RFC 9110 9.2.2), and the group's budget allows it. It reports whether it did.
func (f *forward) again(err error) bool {
	if f.loose || len(f.tried) >= mostTries || sentBy(err) && !syntax.Idempotent(syntax.String(f.r.Method())) {
		return false
	}
	next := f.route.group.pick(f.r, f.tried)
	if next == nil || !f.route.retry(f.r.Scheduler().Now()) {
		return false
	}
	f.blame(err)
	f.end(outcomeOf(err))
	f.use(next)
	return true
}

// blame notes why a back end has failed, for the log: the error of its call, or without one the status of its answer.
func (f *forward) blame(err error) {
	failed := (*client.Error)(nil)
	switch {
	case f.back == nil:
		return
	case err == nil:
		err = fmt.Errorf("status %d", f.answer.Status())
	case !errors.As(err, &failed): // it is one of the client
		return
	}
	f.back.state.cause.Store(&err)
}

// outcomeOf says how a back end has done whose call has failed, or whose answer is disliked.
func outcomeOf(err error) outcome {
	if errors.Is(err, client.ErrBusy) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // the bound is ours
		return aborted
	}
	return bad
}

// disliked reports whether the answer says that another back end may do better.
func (f *forward) disliked() bool { return f.route.group.failure(f.answer.Status()) }

// refuse answers in place of a back end.
func (f *forward) refuse(status int) act.Directive {
	f.end(bad)
	f.w.StatusOnly(status)
	return act.Done
}

// fail ends the request that a back end has not answered to the end.
func (f *forward) fail(t *act.Task, err error) act.Directive {
	status := 502
	failed := (*client.Error)(nil)
	f.blame(err)
	switch {
	case !errors.As(err, &failed): // it is one of the client
		f.end(aborted)
		return t.Fail(err)
	case f.w.Written() > 0 || f.answer != nil:
		f.end(bad)
		return t.Fail(httpd.ErrAbort)
	case errors.Is(err, client.ErrBusy):
		status = 503
	case failed.Timeout():
		status = 504
	}
	f.end(outcomeOf(err))
	return f.refuse(status)
}

// end lets go of the back end.
func (f *forward) end(o outcome) {
	if f.back != nil {
		now := f.r.Scheduler().Now()
		f.back.end(now, now-f.begun, o)
		f.back = nil
	}
	if f.answer != nil {
		_ = f.answer.Close()
		f.answer = nil
	}
	_ = f.call.Close()
}

// Close is called when the request is over, or the client has gone.
func (f *forward) Close() error {
	if f.far != nil {
		f.far.Abort()
	}
	f.end(aborted)
	f.route.end(f.w.Status())
	if pool := pools.Get(f.r.Scheduler()); len(pool.free) < mostUnused && f.kept == nil {
		f.call.Reset()
		clear(f.tried)
		*f = forward{call: f.call, tried: f.tried[:0], text: f.text[:0], informs: f.informs}
		pool.free = append(pool.free, f)
	}
	return nil
}

// Describe implements act.Describer.
func (f *forward) Describe(d *act.Description) {
	if f.back != nil {
		d.Of(&f.call)
	}
}

// inform passes an interim answer on.
func (f *forward) inform(a *client.Response) {
	if a.Status() == 100 { // the client gets it when its content is read
		return
	}
	var fields []httpd.Field
	named := options(a.Fields())
	for name, value := range a.Fields() {
		if passes(name, named) {
			fields = append(fields, httpd.NewField(string(name), string(value)))
		}
	}
	_ = f.w.Inform(a.Status(), fields...) // a client that takes nothing does not get it
}

// webSocket is the protocol that connections can be switched to. Others would lead around the routes, as h2c does.
const webSocket = "websocket"

// join joins the client's connection to that of the back end, which has switched protocols. A handshake of HTTP/2 has neither the key
// nor the answer to it (RFC 8441 5).
func (f *forward) join() bool {
	without := ""
	if f.r.Header("Sec-WebSocket-Key") == nil {
		without = "Sec-WebSocket-Accept"
	}
	copyFields(f.w, f.answer, without)
	if f.far = f.answer.Conn(); f.far == nil {
		return false
	}
	err := f.w.SwitchProtocols(webSocket, func(near *listener.Conn) act.Action {
		far := f.far
		f.far = nil
		return listener.Join(near, far)
	})
	return err == nil
}

func sentBy(err error) bool {
	failed := (*client.Error)(nil)
	return !errors.As(err, &failed) || failed.Sent
}
