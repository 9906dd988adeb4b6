package sim_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldHTTP runs clients against an HTTP/1.1 server. Each client knows every byte that it must read.
//
//	http_request_test.go   what a client asks
//	http_reply_test.go     what the handler does for it, and what the client must read
//	http_client_test.go    how a client behaves
//	http_read_test.go      whether the client has read that, and whether the connection may end where it has
func TestWorldHTTP(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "noise")
	require.NoError(t, os.WriteFile(path, randomBytes, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var seen httpCounts
	o := sim.Options{Faults: sim.Anything(), Panics: true}
	const often = 65536 / 5
	o.Faults.ShortRead, o.Faults.ShortWrite, o.Faults.FalseEmpty, o.Faults.FalseFull = often, often, often, often
	sim.TestWith(t, o, func(w *sim.World) {
		h := &httpServer{w: w, seen: &seen, file: file}
		h.open(t)
	})
	t.Log(seen)
}

// httpCounts counts what has happened. A scenario in which nothing happens finds nothing.
type httpCounts struct {
	connections, answers, cut, refused, tooLate, continued, bodies, unanswered int
}

func (n httpCounts) String() string {
	return fmt.Sprintf("%d connections: %d answers read whole, of which %d refusals and %d for being late, %d cut; %d bodies, %d continued; "+
		"%d connections that an order has ended", n.connections, n.answers, n.refused, n.tooLate, n.cut, n.bodies, n.continued, n.unanswered)
}

// httpServer is the server.
type httpServer struct {
	w           *sim.World
	seen        *httpCounts
	file        *os.File // of randomBytes
	limits      listener.Limits
	times       httpd.Timeouts
	clients     []*httpClient
	present     *httpConn // the connection that has its turn
	skewed      bool      // the wall clock has jumped
	completions bool      // what has arrived need not have been received
	ordered     bool
	given       time.Duration // when
	terms       shutdown.Policy
}

func (h *httpServer) open(t testing.TB) {
	w := h.w
	h.limits = patient(w)
	h.limits.Read, h.limits.Linger = pick(w, 0, 2000, 20_000), pick(w, 5*time.Second, time.Hour, time.Hour, time.Hour)
	h.times = pick(w, httpd.Timeouts{}, httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1},
		httpd.Timeouts{Head: 5 * time.Second, Idle: 8 * time.Second, Body: 5 * time.Second, Write: 10 * time.Second})
	web := &httpd.Server{Handler: h.answer, Timeouts: h.times, OnResponse: h.answered}
	serve := func(c *listener.Conn) act.Action { return &httpConn{httpServer: h, c: c, inner: web.Serve(c)} }
	tcp := &service.TCP{Address: overTCP, Handler: serve, MaxConns: pick(w, 0, 0, 5), Limits: h.limits}
	unix := &service.Unix{Path: overUnix[len("unix:"):], Handler: serve, Limits: h.limits}
	cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 256)}
	cfg.Trace = &act.Trace{Ended: func(_ *act.Task, err error) {
		if p := (*act.Panic)(nil); errors.As(err, &p) && p.Value != errOnPurpose {
			w.Errorf("%v\n%s", p, p.Stack)
		}
	}}
	engine := anyEngine(w)
	h.completions = engine != nil
	v, err := w.Server("web", cfg, append(engine, tcp.Setup, unix.Setup)...)
	require.NoError(t, err)
	h.addClients(pick(w, []string{overTCP}, []string{overTCP, overUnix}))
	if w.Rand().IntN(2) == 0 {
		h.end(v)
	}
}

// The addresses of the server.
const overTCP, overUnix = "10.0.0.1:80", "unix:/run/web"

// addClients adds the clients, some of them late.
func (h *httpServer) addClients(places []string) {
	w := h.w
	for n := range pick(w, 8, 16, 32) {
		s := &httpClient{httpServer: h, n: n, place: pick(w, places...)}
		h.clients = append(h.clients, s)
		if n == 0 || w.Rand().IntN(2) == 0 {
			w.Client(s.place, s.run)
		} else {
			w.At(time.Duration(w.Rand().Int64N(int64(time.Second))), func() { w.Client(s.place, s.run) })
		}
	}
}

// orderNotice is how long before an order a request must have arrived to be answered, since events may be late.
const orderNotice = 100 * time.Millisecond

// end gives the server an order.
func (h *httpServer) end(v *sim.Server) {
	w := h.w
	terms := pick(w, shutdown.Suspend, shutdown.Halt, shutdown.Unbounded, shutdown.Unbounded, shutdown.Policy{})
	if terms == (shutdown.Policy{}) {
		for given := false; !given; {
			terms, given = order(w)
		}
	}
	terms.Announce, terms.Spread = pick(w, 0, 0, 50*time.Millisecond, time.Second), pick(w, 0, 0, 50*time.Millisecond, 5*time.Second)
	at := orderNotice + time.Duration(w.Rand().Int64N(int64(pick(w, 5*time.Millisecond, 50*time.Millisecond, 500*time.Millisecond, 5*time.Second))))
	w.At(at-orderNotice, func() {
		for _, s := range h.clients {
			s.arrived = -1
			if s.httpConn != nil {
				s.arrived = s.c.Arrived()
			}
		}
	})
	w.At(at, func() {
		h.ordered, h.given, h.terms = true, w.Now(), terms.Resolved()
		v.Shutdown(shutdown.Now{Terms: terms})
	})
}

// mayCut reports whether an order now lets the server cut connections.
func (h *httpServer) mayCut() bool {
	switch {
	case !h.ordered:
		return false
	case h.terms.Kind == shutdown.Endless:
		return false
	case h.terms.Kind == shutdown.Bounded && h.terms.Turns == 0:
		return h.w.Now() >= h.given+h.terms.Time
	}
	return true
}

// httpConn is a connection of the server. It checks the action of the connection.
type httpConn struct {
	*httpServer
	c          *listener.Conn
	inner      act.Action
	httpClient *httpClient // nil: not known yet
	called     int         // handlers called in this turn
	open       int         // actions of handlers
	next       int         // the number of the next request
	logged     int         // how many of those that the handler has seen were logged
	ordered    bool
	away       bool // its action belongs to an offloaded function
	stopped    bool // after the last answer
}

func (v *httpConn) Act(t *act.Task) act.Directive {
	v.present, v.called = v, 0
	wall, now := t.Scheduler().Clock().Wall(), v.w.Now()
	v.skewed = v.skewed || !wall.Equal(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(now))
	if v.httpClient == nil {
		v.findClient()
	}
	d := v.inner.Act(t)
	v.away = d == act.Async
	if most := cmp.Or(v.limits.High, 64<<10) + 4<<10; v.c.Queued() > most {
		v.w.Errorf("%d bytes are queued, of %d at most", v.c.Queued(), most)
	}
	if v.called > 64 {
		v.w.Errorf("%d requests are answered in one turn", v.called)
	}
	return d
}

// findClient finds the client of the connection. Over TCP that is by its address.
func (v *httpConn) findClient() {
	at := v.c.RemoteAddr()
	for _, s := range v.clients {
		if at != nil && s.c != nil && s.place != overUnix && s.c.LocalAddr().String() == at.String() {
			v.httpClient, s.httpConn = s, v
		}
	}
}

func (v *httpConn) Stop(t *act.Task, o shutdown.Order) {
	v.ordered = true
	v.inner.(act.Stopper).Stop(t, o)
}

func (v *httpConn) Close() error {
	err := v.inner.(io.Closer).Close()
	if v.open != 0 {
		v.w.Errorf("a connection has ended, and %d actions of its handler have not", v.open)
	}
	if v.logged != v.next && !v.away {
		v.w.Errorf("a connection has ended, and %d answers of %d were logged", v.logged, v.next)
	}
	if name := act.Name(v.inner); name != "httpd: no request" {
		v.w.Errorf("a connection has ended, and keeps its exchange: %s", name)
	}
	return err
}

// TestWorldUpgrade has clients switch to an echo, some of them with the first bytes behind the request: all bytes behind it
// are echoed, none is read as HTTP, and an order reaches the echo. Some connections are hijacked, which looks the same here.
func TestWorldUpgrade(t *testing.T) {
	switches := 0
	sim.Test(t, func(w *sim.World) {
		ordered, asked, told := false, 0, 0
		web := &httpd.Server{Handler: func(out *httpd.Response, r *httpd.Request) act.Action {
			asked++
			next := func(c *listener.Conn) act.Action { return &switched{w: w, c: c} }
			err := error(nil)
			if w.Rand().IntN(3) == 0 {
				err = out.Hijack(func(c *listener.Conn) act.Action {
					_, _ = c.WriteString("HTTP/1.1 101 Hijacked\r\n\r\n")
					return next(c)
				})
			} else {
				err = out.SwitchProtocols("echo", next)
			}
			if err != nil {
				w.Errorf("%s: %v", r.Target(), err)
			}
			if w.Rand().IntN(2) == 0 {
				return nil
			}
			return &listener.Sleep{For: time.Duration(w.Rand().Int64N(int64(time.Second)))}
		}, OnResponse: func(out *httpd.Response, _ *httpd.Request) {
			if told++; told > asked {
				w.Errorf("%d responses to %d requests", told, asked)
			}
			switches++
		}}
		tcp := &service.TCP{Address: "10.0.0.1:80", Handler: web.Serve, Limits: patient(w)}
		tcp.Limits.Read = max(tcp.Limits.Read, 1000) // so that a request fits
		v, err := w.Server("web", act.Config{Schedulers: pick(w, 1, 2)}, tcp.Setup)
		require.NoError(t, err)
		w.Excuse(func(*sim.Client, error) bool { return ordered }) // an idle connection is closed then
		for range 12 {
			w.Client("10.0.0.1:80", func(c *sim.Client) error { return upgrades(w, c) })
		}
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(3*time.Second))), func() {
				ordered = true
				v.Shutdown(shutdown.Now{Terms: terms})
			})
		}
	})
	t.Logf("%d switches", switches)
}

// upgrades is a client that switches to the echo. It talks when it has read the answer, or at once: then what it says
// looks like a request.
func upgrades(w *sim.World, c *sim.Client) error {
	const asks, behind = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n", "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	wait := c.Rand().IntN(2) == 0
	says, want := asks, ""
	if !wait {
		says, want = asks+behind, behind
	}
	for says != "" {
		n := min(len(says), 1+c.Rand().IntN(2*len(says)))
		if _, err := io.WriteString(c, says[:n]); err != nil {
			return err
		}
		if says = says[n:]; c.Rand().IntN(4) == 0 {
			c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
		}
	}
	var read []byte
	for !bytes.HasSuffix(read, []byte("\r\n\r\n"+want)) {
		one := make([]byte, 1)
		if _, err := c.Read(one); err != nil {
			return err
		}
		if read = append(read, one[0]); len(read) > 1000 || len(read) == 13 && string(read) != "HTTP/1.1 101 " {
			w.Errorf("it has answered %q", read)
			return nil
		}
	}
	return echoes(c)
}

// switched echoes, as the action of a connection that was one of HTTP.
type switched struct {
	w    *sim.World
	c    *listener.Conn
	told bool
}

func (x *switched) Act(t *act.Task) act.Directive {
	if t.Order() != nil && !x.told {
		x.w.Errorf("the order has not reached the action behind the switch")
	}
	in, err := x.c.Peek(1)
	if err == nil {
		var n int
		n, err = x.c.Write(in)
		x.c.Discard(n)
	}
	return listener.Next(t, err)
}

func (x *switched) Stop(*act.Task, shutdown.Order) { x.told = true }
