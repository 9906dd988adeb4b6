package worlds_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/stretchr/testify/require"
)

// connection is the action of a connection, and looks at that of the server below it.
type connection struct {
	act.Child
	*server
	c       *listener.Conn
	next    int // the number of the next request
	called  int // in this turn
	open    int // actions of handlers
	ordered bool
	closed  bool
}

func (v *connection) Act(t *act.Task) act.Directive {
	v.present, v.called = v, 0
	d := v.Child.Act(t)
	if n, most := v.c.Queued(), max(v.high, 64<<10)+longWrite+4<<10; n > most {
		v.w.Errorf("%d bytes are queued, of %d at most", n, most)
	}
	if v.called > 64 && !v.v2 || v.called > 128 {
		v.w.Errorf("%d requests are answered in one turn", v.called)
	}
	if c, ok := v.Child.Action.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			v.w.Errorf("%w", err)
		}
	}
	return d
}

func (v *connection) Stop(t *act.Task, o shutdown.Order) {
	v.ordered = true
	v.Child.Stop(t, o)
}

func (v *connection) Close() error {
	err := v.Child.Close()
	v.closed = true
	if v.open > 0 && !v.v2 { // streams are tasks of their own
		v.w.Errorf("a connection has ended, and %d actions of its handler have not", v.open)
	}
	return err
}

// find returns the request of a target.
func (h *server) find(target string) *request {
	var c, n int
	if _, err := fmt.Sscanf(target, "/%d/%d", &c, &n); err != nil || c >= len(h.clients) || n >= len(h.clients[c].plan) {
		h.w.Errorf("the server sees a request that was never sent: %q", target)
		return nil
	}
	return h.clients[c].plan[n]
}

// serve is the handler of httpd.
func (h *server) serve(w *httpd.Response, r *httpd.Request) act.Action {
	q, v := h.find(string(r.Path())), h.present
	if q == nil {
		return nil
	}
	switch {
	case q.served || q.refused:
		h.w.Errorf("%v is served twice", q)
	case q.n != v.next && !v.v2, q.n < v.next:
		h.w.Errorf("the server sees %v, and it is the turn of %d", q, v.next)
	case h.v2 && v.open >= 2*h.most: // requests that were reset have as many places again
		h.w.Errorf("the server sees %v, and has %d others, of %d at most", q, v.open, h.most)
	case v.open > 0 && !h.v2:
		h.w.Errorf("the server sees %v before it has answered the one before", q)
	case q.client.Sent < q.from+q.head:
		h.w.Errorf("the server sees %v, of which only %d bytes were sent", q, q.client.Sent-q.from)
	case v.c.Room() == 0 && !h.v2:
		h.w.Errorf("the server sees %v, and there is no room for its answer", q)
	}
	h.seen.requests++
	v.next = q.n + 1
	v.called++
	q.conn, q.scheduler = v, r.Scheduler()
	full := h.kind == adapter && h.bound > 0 && h.running >= h.bound
	q.served, q.refused = !full, full
	if full {
		h.seen.refused++
	} else {
		h.running++
	}
	if h.kind == action {
		return h.act(q, w, r)
	}
	a := h.adapter.Serve(w, r)
	if h.kind == adapter && (a == nil) != full {
		h.w.Errorf("%v comes while %d handlers run of %d: refused %v", q, h.running, h.bound, a == nil)
	}
	return a
}

// answered is called when an answer has been given to the connection, or will not be.
func (h *server) answered(_ *httpd.Response, r *httpd.Request) {
	if len(r.Header("X-Id")) == 0 {
		return // it was refused
	}
	if q := h.find(string(r.Header("X-Id"))); q != nil && q.logged {
		h.w.Errorf("the answer to %v is logged twice", q)
	} else if q != nil {
		q.logged = true
	}
}

// answer is what a handler makes: that of net/http, or that of httpd with calls that wait.
type answer interface {
	io.ReadWriter // the body, and the content
	Flush() error
	SendFile(from, n int) (int, error)
	Inform() error
	Sleep(d time.Duration) error
	Status(status int)
	Trailer(name string) string // of the request
	Check(q *request) bool      // that the request is the one that was sent
}

// handling is a call of the handler.
type handling struct {
	*server
	q   *request
	out answer
	p   []byte
}

// steps makes all steps, and reports whether the handler goes on to its end.
func (x *handling) steps() bool {
	x.p = make([]byte, 1+x.q.dice.IntN(40_000))
	for i := range x.q.steps {
		if !x.step(x.q.steps[i]) {
			return false
		}
	}
	return x.check()
}

func (x *handling) check() bool {
	if !x.out.Check(x.q) {
		x.w.Errorf("%v is seen otherwise than it was sent", x.q)
	}
	return true
}

// lost reports whether calls of the handler may fail, and its context may have ended.
func (x *handling) lost() bool {
	return !x.gentle || x.q.gone || x.v2 && x.q.stream.shut || x.q.client.Gone() || x.q.client.deaf || x.order.MayCut() || x.hasty
}

// step makes a step, and reports whether the handler goes on.
func (x *handling) step(s step) bool {
	q := x.q
	if q.ctx != nil && q.ctx.Err() != nil && !x.lost() {
		x.w.Errorf("the context of %v has ended: %v", q, q.ctx.Err())
	}
	switch s.do {
	case doRead:
		return x.read(s.n, false)
	case doWrite:
		return x.write(s.n)
	case doFile:
		x.head()
		at := bytes.Index(party.Noise(), q.content[q.written:q.written+s.n])
		n, err := x.out.SendFile(at, s.n)
		return x.wrote(n, err)
	case doFlush:
		x.head()
		return x.wrote(0, x.out.Flush())
	case doInform:
		if err := x.out.Inform(); err != nil {
			return x.wrote(0, err)
		}
		q.informed++
	case doSleep:
		return x.wrote(0, x.out.Sleep(s.d)) && x.check()
	case doEcho:
		return x.read(plenty, true)
	default:
		return x.out.(*byAdapter).step(x, s)
	}
	return true
}

// head settles the status.
func (x *handling) head() {
	if !x.q.headed {
		x.q.headed, x.q.ordered = true, x.q.conn.ordered
		x.q.early = x.q.framing == chunked && !x.q.ended || len(x.q.body)-x.q.read > drained
		x.out.Status(x.q.status)
	}
}

// read reads so many bytes of the body, and may echo them.
func (x *handling) read(most int, echo bool) bool {
	q := x.q
	for got := 0; got < most; {
		q.asked = true
		n, err := x.out.Read(x.p[:min(len(x.p), most-got)])
		x.compare(x.p[:n])
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

// compare compares what was read of the body with what was sent.
func (x *handling) compare(p []byte) {
	q := x.q
	if len(p) > len(q.body)-q.read || !bytes.Equal(p, q.body[q.read:q.read+len(p)]) {
		x.w.Errorf("the body of %v is not what was sent, somewhere in %d bytes from %d of %d on", q, len(p), q.read, len(q.body))
	}
	q.read += len(p)
}

// ended checks the body at its end.
func (x *handling) ended() {
	q := x.q
	q.ended = true
	empty := x.v2 && q.framing == sized && len(q.body) == 0 // so says its head
	if q.read != len(q.body) || q.client.Sent < q.to() && !empty {
		x.w.Errorf("the body of %v ends after %d bytes of %d", q, q.read, len(q.body))
	}
	if got := x.out.Trailer("X-Behind"); got != q.trailers.Get("X-Behind") {
		x.w.Errorf("the trailer of %v is seen as %q", q, got)
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
	if echo { // the rest of the body is no part of the answer
		q.content = append(q.content[:q.written:q.written], q.content[q.written+len(q.body)-q.read:]...)
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
	q := x.q
	q.written += n
	if err != nil {
		q.failed = true
		if !x.lost() && (x.kind != action || q.method != "HEAD") {
			x.w.Errorf("the answer to %v cannot be written: %w", q, err)
		}
	}
	return err == nil
}

// isSeen reports whether this is the request that was sent.
func (q *request) isSeen(method, id, host string, minor int, length int64) bool {
	want := int64(len(q.body))
	if q.framing == chunked {
		want = -1
	}
	if q.client.v2 {
		if minor = q.minor; method == http.MethodGet && q.method == tunnelled {
			method = tunnelled
		}
	}
	return method == q.method && id == q.id() && host == "world" && minor == q.minor && length == want
}

// begun is called when the handler begins.
func (x *handling) begun() {
	if x.q.begun || !x.q.served {
		x.w.Errorf("the handler of %v is called again, or without having been accepted", x.q)
	}
	x.q.begun = true
	x.check()
}

// What a handler of net/http sees of a client that is silent for ten minutes. The time-outs are 4 s.
func TestSlowClientsOfAHandler(t *testing.T) {
	const silence = 10 * time.Minute
	const small = 15_000 // the kernel has no room for all of it, but the handler does not wait for that
	large := make([]byte, 1<<20)
	reads := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		return err
	}
	writes := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(large)
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	leaves := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(large[:small])
		return err
	}
	patiently := func(set func(*http.ResponseController, time.Time) error, f func(http.ResponseWriter, *http.Request) error,
	) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			return errors.Join(set(http.NewResponseController(w), time.Time{}), f(w, r))
		}
	}
	for name, row := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request) error
		lasts   time.Duration // until its error is that the client is too slow; 0: it has none
		got     int           // by the client; -1: it is cut off
	}{
		"it is read from":                       {reads, 4 * time.Second, 0},
		"it is written to":                      {writes, 4 * time.Second, -1},
		"read from, without a deadline":         {patiently((*http.ResponseController).SetReadDeadline, reads), 0, 0},
		"written to, without a deadline":        {patiently((*http.ResponseController).SetWriteDeadline, writes), 0, 1 << 20},
		"without one, by one that has returned": {patiently((*http.ResponseController).SetWriteDeadline, leaves), 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			world := sim.New(sim.Options{})
			world.Excuse(func(*sim.Client, error) bool { return row.got < 0 })
			returned, got := false, int64(0)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				began := world.Now()
				err := row.handler(w, r)
				if returned = true; row.lasts == 0 {
					require.NoError(t, err)
					return
				}
				late := net.Error(nil)
				require.ErrorAs(t, err, &late)
				require.True(t, late.Timeout())
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.GreaterOrEqual(t, world.Now()-began, row.lasts)
				require.LessOrEqual(t, world.Now()-began, row.lasts*9/8+time.Second/4)
			})
			web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: handler}).Serve,
				Timeouts: httpd.Timeouts{Body: 4 * time.Second, Write: 4 * time.Second}}
			tcp := &service.Listener{Address: address, Handler: web.Serve}
			_, err := world.Server("web", act.Config{}, tcp.Setup)
			require.NoError(t, err)
			world.Client(address, func(c *sim.Client) error {
				body := "hello"
				if row.got == 0 {
					body = "he"
				}
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"+body)
				c.Sleep(silence)
				_, _ = io.WriteString(c, "hello"[len(body):])
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err == nil {
					got, err = io.Copy(io.Discard, answer.Body)
				}
				return err
			})
			require.NoError(t, world.Run())
			require.True(t, returned)
			if row.got < 0 {
				require.Less(t, got, int64(small))
			} else {
				require.EqualValues(t, row.got, got)
			}
		})
	}
}
