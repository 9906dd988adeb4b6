package worlds_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/shutdown"
)

var errOnPurpose = errors.New("on purpose")

// find returns the request of a target.
func (h *server) find(target string) *request {
	var c, n int
	if _, err := fmt.Sscanf(target, "/%d/%d", &c, &n); err != nil || c >= len(h.clients) || n >= len(h.clients[c].plan) {
		h.w.Errorf("the server sees a request that was never sent: %q", target)
		return nil
	}
	return h.clients[c].plan[n]
}

// serve is the handler of httpd, around that of the Adapter.
func (h *server) serve(w *httpd.Response, r *httpd.Request) act.Action {
	q := h.find(string(r.Path()))
	if q == nil {
		return nil
	}
	if q.served || q.refused {
		h.w.Errorf("%v is served twice", q)
	}
	h.seen.requests++
	q.scheduler = r.Scheduler()
	if h.inline {
		q.served = true
		h.running++
		return h.adapter.Serve(w, r)
	}
	full := h.bound > 0 && h.running >= h.bound
	if full {
		q.refused = true
		h.seen.refused++
	} else {
		q.served = true
		h.running++
	}
	a := h.adapter.Serve(w, r)
	if (a == nil) != full {
		h.w.Errorf("%v comes while %d handlers run of %d: refused %v", q, h.running, h.bound, a == nil)
	}
	return a
}

// ServeHTTP is the handler.
func (h *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := h.find(r.URL.Path)
	if q == nil {
		return
	}
	if q.begun || !q.served {
		h.w.Errorf("the handler of %v is called again, or without having been accepted", q)
	}
	q.begun, q.ctx = true, r.Context()
	x := &handling{server: h, q: q, out: w, in: r}
	defer x.leave()
	x.check()
	x.prepare()
	for _, s := range q.steps {
		if !x.step(s) {
			x.giveUp()
			return
		}
	}
	x.end()
}

// handling is a call of the handler.
type handling struct {
	*server
	q      *request
	out    http.ResponseWriter
	in     *http.Request
	headed bool
}

// check checks that the request is the one that was sent.
func (x *handling) check() {
	r, q, length := x.in, x.q, int64(len(x.q.body))
	if q.framing == chunked {
		length = -1
	}
	if r.Method != q.method || r.ProtoMinor != q.minor || r.Header.Get("X-Id") != q.id() || r.Host != "world" ||
		r.ContentLength != length || r.Close != q.closes {
		x.w.Errorf("%v is seen as %v", q, r)
	}
	if _, has := r.Trailer["X-Behind"]; has != (q.trailers != nil) {
		x.w.Errorf("%v is seen with the trailers %v", q, r.Trailer)
	}
}

func (x *handling) prepare() {
	q, header := x.q, x.out.Header()
	header["X-Id"] = []string{q.id()}
	header["Content-Type"] = []string{"application/octet-stream"}
	if q.announced >= 0 {
		header["Content-Length"] = []string{strconv.Itoa(q.announced)}
	}
	if q.behind != nil {
		header["Trailer"] = []string{"X-After"}
	}
	if q.parts {
		header["Connection"] = []string{"close"}
	}
}

// leave is called when the handler returns or panics.
func (x *handling) leave() {
	q := x.q
	q.over = true
	x.running--
	x.w.At(x.w.Now()+time.Millisecond, func() {
		if q.ctx.Err() == nil {
			x.w.Errorf("the context of %v goes on behind the handler", q)
		}
	})
	if q.ctx.Err() != nil && x.mayCut() && !x.inline {
		q.outlived = !q.client.gone()
		x.seen.late++
	}
}

// lost reports whether calls of the handler may fail, and its context may have ended.
func (x *handling) lost() bool {
	return !x.gentle || x.q.client.gone() || x.q.client.parting == deaf || x.mayCut()
}

// step makes a step, and reports whether the handler goes on.
func (x *handling) step(s step) bool {
	if err := x.in.Context().Err(); err != nil && !x.lost() {
		x.w.Errorf("the context of %v has ended: %v", x.q, err)
	}
	switch s.do {
	case doRead:
		return x.read(s.n, false)
	case doWrite:
		return x.write(s.n)
	case doFlush:
		x.head()
		return x.wrote(0, http.NewResponseController(x.out).Flush())
	case doInform:
		x.out.WriteHeader(http.StatusEarlyHints)
		x.q.informed++
	case doSleep:
		x.sleep(s.d)
	case doEcho:
		return x.read(1<<30, true)
	case doBoth, doLeave:
		return x.both(s.n, s.do == doLeave)
	case doAwait:
		return x.await()
	case doClose:
		_ = x.in.Body.Close()
	}
	return true
}

// head settles the status.
func (x *handling) head() {
	if !x.headed {
		x.headed = true
		x.out.WriteHeader(x.q.status)
	}
}

// read reads so many bytes of the body, and may echo them.
func (x *handling) read(most int, echo bool) bool {
	q := x.q
	p := make([]byte, 1+q.dice.IntN(40_000))
	for got := 0; got < most; {
		q.asked = true
		n, err := x.in.Body.Read(p[:min(len(p), most-got)])
		if n > len(q.body)-q.read || !bytes.Equal(p[:n], q.body[q.read:q.read+n]) {
			x.w.Errorf("the body of %v is not what was sent, somewhere in %d bytes from %d of %d on", q, n, q.read, len(q.body))
		}
		q.read += n
		got += n
		switch {
		case n > 0 && echo && !x.write(n):
			return false
		case err == io.EOF:
			x.ended()
			return true
		case err != nil:
			return x.unreadable(err, echo)
		case n == 0:
			x.w.Errorf("a Read of the body of %v has returned nothing", q)
			return false
		}
	}
	return true
}

// ended checks the body at its end.
func (x *handling) ended() {
	q := x.q
	if q.read != len(q.body) || q.client.sent < q.to() {
		x.w.Errorf("the body of %v ends after %d bytes of %d", q, q.read, len(q.body))
	}
	if got := x.in.Trailer.Get("X-Behind"); got != q.trailers.Get("X-Behind") {
		x.w.Errorf("the trailers of %v are seen as %v", q, x.in.Trailer)
	}
	if len(q.body) > 0 {
		x.seen.bodies++
	}
}

// unreadable is called when the body cannot be read, and reports whether the handler goes on.
func (x *handling) unreadable(err error, echo bool) bool {
	q := x.q
	if q.over {
		return false
	}
	if !x.lost() && !x.timed {
		x.w.Errorf("the body of %v cannot be read: %w", q, err)
	}
	x.seen.unread++
	q.bad = true
	if echo { // the answer is as long as it is
		q.content = q.content[:q.written]
	}
	q.aborted = !q.tolerant
	return q.tolerant
}

// write writes the next n bytes of the content.
func (x *handling) write(n int) bool {
	x.head()
	q := x.q
	k, err := x.out.Write(q.content[q.written : q.written+n])
	if err == nil && k < n {
		x.w.Errorf("%d bytes of %d are written without an error", k, n)
	}
	return x.wrote(k, err)
}

func (x *handling) wrote(n int, err error) bool {
	x.q.written += n
	if err != nil {
		x.q.failed = true
		if !x.lost() {
			x.w.Errorf("the answer to %v cannot be written: %w", x.q, err)
		}
	}
	return err == nil
}

func (x *handling) sleep(d time.Duration) {
	over := false
	x.w.At(x.w.Now()+d, func() { over = true })
	x.w.Await(func() bool { return over })
}

// both reads the body and writes, at the same time. It may leave the reading behind.
func (x *handling) both(n int, leaves bool) bool {
	q, all, over := x.q, false, false
	q.scheduler.Reserve(1).Execute(func() {
		all = x.read(1<<30, false)
		over = true
	})
	wrote := true
	for wrote && n > 0 {
		k := min(n, 1+q.dice.IntN(50_000))
		wrote = x.write(k)
		n -= k
	}
	if leaves {
		return wrote
	}
	x.w.Await(func() bool { return over })
	return all && wrote
}

// await waits for the end of the context.
func (x *handling) await() bool {
	q, c, from := x.q, x.q.client, x.w.Now()
	x.w.Await(func() bool { return q.ctx.Err() != nil })
	x.seen.ends++
	since := c.leftAt
	if x.ordered && x.terms.Kind != shutdown.Endless && (!c.gone() || x.given+x.terms.Time < since) {
		since = x.given + x.terms.Time
	}
	if late := x.w.Now() - max(from, since); x.gentle && late > heard {
		x.w.Errorf("the context of %v ends %v too late", q, late)
	}
	return true
}

// heard is how long it may take until an end is heard of: links may be clogged for 10 s.
const heard = 15 * time.Second

// giveUp ends a handler that cannot go on.
func (x *handling) giveUp() {
	if x.q.aborted {
		panic(http.ErrAbortHandler)
	}
}

// end ends the handler.
func (x *handling) end() {
	q := x.q
	switch q.ending {
	case aborts:
		q.aborted = true
		panic(http.ErrAbortHandler)
	case panics:
		q.aborted = true
		panic(errOnPurpose)
	case tunnels, leavesATunnel:
		x.tunnel()
		return
	}
	x.head()
	for name, values := range q.behind {
		x.out.Header()[name] = values
	}
}

// tunnel takes the connection over.
func (x *handling) tunnel() {
	q := x.q
	byHead := q.dice.IntN(2) == 0
	if byHead {
		x.out.Header()["Connection"], x.out.Header()["Upgrade"] = []string{"upgrade"}, []string{"echo"}
		x.head()
	}
	conn, both, err := http.NewResponseController(x.out).Hijack()
	if err != nil {
		q.failed = true
		if !x.lost() {
			x.w.Errorf("the connection of %v cannot be hijacked: %w", q, err)
		}
		return
	}
	q.hijacked = true
	if !byHead {
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Hijacked\r\nX-Id: %s\r\n\r\n", q.id()); err != nil && !x.lost() {
			x.w.Errorf("the hijacked connection of %v cannot be written to: %w", q, err)
		}
	}
	if q.ending == leavesATunnel {
		q.scheduler.Reserve(1).Execute(func() { x.echo(conn, both.Reader) })
		return
	}
	x.echo(conn, both.Reader)
}

// echo echoes what comes through the tunnel, until its end.
func (x *handling) echo(conn net.Conn, in io.Reader) {
	_, err := io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{in}, make([]byte, 1+x.q.dice.IntN(40_000)))
	if err != nil && !x.lost() && !(x.ordered && errors.Is(err, net.ErrClosed)) {
		x.w.Errorf("the tunnel of %v ends with %w", x.q, err)
	}
	_ = conn.Close()
}
