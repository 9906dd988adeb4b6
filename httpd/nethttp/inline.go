package nethttp

import (
	"bytes"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// inline answers a request on the scheduler's thread.
func (a *Adapter) inline(w *httpd.Response, r *httpd.Request) act.Action {
	if r.Body.Length() == 0 {
		return a.answer(w, r, nil)
	}
	return httpd.WithBody(0, a.answer)(w, r)
}

func (a *Adapter) answer(w *httpd.Response, r *httpd.Request, content []byte) act.Action {
	x := &struct { // one allocation
		req    http.Request // as in an exchange
		ctx    values
		writer writer
		body   lentBody
	}{}
	req := &x.req
	cancel, err := a.request(req, r, &x.ctx)
	if err != nil {
		return refusal(err)
	}
	defer cancel()
	if r.Body.Length() != 0 {
		addTrailers(req, trailersIn(&r.Body))
		x.body.rest.Reset(content)
		req.Body = &x.body
	}
	to := &x.writer
	*to = writer{to: inlineOutlet{w}, ctx: req.Context(), log: r.Scheduler().Logger(), header: http.Header{},
		mute: req.Method == http.MethodHead}
	defer x.body.end() // also after a panic: content is lent for this turn
	defer removeFiles(req)
	if !completes(a.handler(), to, req) {
		return act.Func(func(t *act.Task) act.Directive { return t.Fail(httpd.ErrAbort) })
	}
	h := to.finish(nil)
	h.last(w, to.mute)
	switch {
	case to.mute:
	case h.length < 0 && h.chunks:
		return &inPieces{w: w, body: to.body, trailers: to.trailers()}
	case len(to.body) > gathered:
		w.SetBody(to.body)
	default:
		_, _ = w.Write(to.body) // there is always room
		to.free()
	}
	for _, f := range to.trailers() {
		w.AddTrailer(f.name, f.value)
	}
	return nil
}

// inPieces sends the content of an inline handler that is not sent as a whole.
type inPieces struct {
	w        *httpd.Response
	body     []byte
	trailers []field
}

func (x *inPieces) Act(t *act.Task) act.Directive {
	n, err := x.w.Write(x.body)
	if x.body = x.body[n:]; err != nil {
		return listener.Next(t, err)
	}
	for _, f := range x.trailers {
		x.w.AddTrailer(f.name, f.value)
	}
	return act.Done
}

// completes calls the handler, and reports whether it has answered. A panic goes on, unless it is http.ErrAbortHandler.
func completes(h http.Handler, w *writer, r *http.Request) (completed bool) {
	defer func() {
		if completed {
			return
		}
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

// everything is what is gathered on the scheduler's thread.
const everything = math.MaxInt

// inlineOutlet is the outlet of a writer whose handler runs on the scheduler's thread: everything is kept.
type inlineOutlet struct{ w *httpd.Response }

func (inlineOutlet) gathers() int                { return everything }
func (inlineOutlet) start(*head)                 {}
func (inlineOutlet) write(p []byte) (int, error) { return len(p), nil }

// inform loses what there is no room for: it cannot wait.
func (o inlineOutlet) inform(h *head) error { return h.inform(o.w) }

func (inlineOutlet) hijack() (conn net.Conn, unread []byte, err error) {
	return nil, nil, http.ErrNotSupported
}

func (inlineOutlet) sendFile(f *os.File, offset, n int64) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (inlineOutlet) deadlines() (read, write func(time.Time), err error) {
	return nil, nil, http.ErrNotSupported
}

// lentBody is a body that is there for one turn.
type lentBody struct {
	mu   sync.Mutex // goroutines that a handler has left behind may still read
	rest bytes.Reader
	over bool
}

func (b *lentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.rest.Read(p)
}

func (b *lentBody) Close() error {
	b.end()
	return nil
}

func (b *lentBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}
