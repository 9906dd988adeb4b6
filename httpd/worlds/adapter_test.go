package worlds_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/shutdown"
)

// byAdapter is the answer of a handler of net/http.
type byAdapter struct {
	w http.ResponseWriter
	r *http.Request
	x *handling
}

// ServeHTTP is the handler.
func (h *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := h.find(r.URL.Path)
	if q == nil {
		return
	}
	x := &handling{server: h, q: q}
	out := &byAdapter{w: w, r: r, x: x}
	q.ctx, x.out = r.Context(), out
	x.begun()
	defer out.leave()
	out.prepare()
	if x.steps() {
		out.end()
	} else if q.aborted {
		panic(http.ErrAbortHandler)
	}
}

func (o *byAdapter) prepare() {
	q, header := o.x.q, o.w.Header()
	header["X-Id"], header["Content-Type"] = []string{q.id()}, []string{"application/octet-stream"}
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
func (o *byAdapter) leave() {
	x, q := o.x, o.x.q
	q.over = true
	x.running--
	x.w.At(x.w.Now()+time.Millisecond, func() {
		if q.ctx.Err() == nil {
			x.w.Errorf("the context of %v goes on behind the handler", q)
		}
	})
	if q.ctx.Err() != nil && x.order.MayCut() && x.kind == adapter {
		q.outlived = !q.client.Gone() && !q.gone
		x.seen.late++
	}
}

// end ends the handler.
func (o *byAdapter) end() {
	q := o.x.q
	switch q.ending {
	case aborts:
		q.aborted = true
		panic(http.ErrAbortHandler)
	case panics:
		q.aborted = true
		panic(party.ErrOnPurpose)
	case tunnels, leavesATunnel:
		o.tunnel()
		return
	}
	o.x.head()
	for name, values := range q.behind {
		o.w.Header()[name] = values
	}
}

// step makes one of the steps that only a handler of net/http makes.
func (o *byAdapter) step(x *handling, s step) bool {
	switch s.do {
	case doBoth, doLeave:
		return o.both(s.n, s.do == doLeave)
	case doAwait:
		o.await()
	case doClose:
		_ = o.r.Body.Close()
	}
	return true
}

// both reads the body and writes, at the same time. It may leave the reading behind.
func (o *byAdapter) both(n int, leaves bool) bool {
	x, q, all, over := o.x, o.x.q, false, false
	q.scheduler.Internals().Reserve(1).Execute(func() {
		all = x.read(plenty, false)
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
func (o *byAdapter) await() {
	x, q, from := o.x, o.x.q, o.x.w.Now()
	c := q.client
	x.w.Await(func() bool { return q.ctx.Err() != nil })
	if context.Cause(q.ctx) != context.Canceled {
		x.w.Errorf("the context of %v ends with %v", q, context.Cause(q.ctx))
	}
	x.seen.ends++
	since := c.LeftAt
	if cut := x.order.At + x.order.Terms.Time; x.order.Given && x.order.Terms.Kind != shutdown.Unbounded && (!c.Gone() || cut < since) {
		since = cut
	}
	if late := x.w.Now() - max(from, since); x.gentle && late > heard {
		x.w.Errorf("the context of %v ends %v too late", q, late)
	}
}

// heard is how long it may take until an end is heard of.
const heard = 15 * time.Second

// tunnel takes the connection over.
func (o *byAdapter) tunnel() {
	x, q := o.x, o.x.q
	byHead := q.dice.IntN(2) == 0
	if byHead {
		o.w.Header()["Connection"], o.w.Header()["Upgrade"] = []string{"upgrade"}, []string{"echo"}
		x.head()
	}
	conn, both, err := http.NewResponseController(o.w).Hijack()
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
		q.scheduler.Internals().Reserve(1).Execute(func() { x.copy(conn, both.Reader) })
		return
	}
	x.copy(conn, both.Reader)
}

// copy echoes what comes through the tunnel, until its end.
func (x *handling) copy(conn net.Conn, in io.Reader) {
	_, err := io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{in}, make([]byte, 1+x.q.dice.IntN(40_000)))
	if err != nil && !x.lost() && !(x.order.Given && errors.Is(err, net.ErrClosed)) {
		x.w.Errorf("the tunnel of %v ends with %w", x.q, err)
	}
	_ = conn.Close()
}

func (o *byAdapter) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o *byAdapter) Read(p []byte) (int, error)  { return o.r.Body.Read(p) }
func (o *byAdapter) Flush() error                { return http.NewResponseController(o.w).Flush() }
func (o *byAdapter) SendFile(from, n int) (int, error) {
	return o.w.Write(party.Noise()[from : from+n])
}
func (o *byAdapter) Status(status int)          { o.w.WriteHeader(status) }
func (o *byAdapter) Trailer(name string) string { return o.r.Trailer.Get(name) }

func (o *byAdapter) Inform() error {
	o.w.WriteHeader(http.StatusEarlyHints)
	return nil
}

func (o *byAdapter) Sleep(d time.Duration) error {
	w, over := o.x.w, false
	w.At(w.Now()+d, func() { over = true })
	w.Await(func() bool { return over })
	return nil
}

func (o *byAdapter) Check(q *request) bool {
	r := o.r
	_, has := r.Trailer["X-Behind"]
	return q.isSeen(r.Method, r.Header.Get("X-Id"), r.Host, r.ProtoMinor, r.ContentLength) && r.Close == q.closes && has == (q.trailers != nil)
}
