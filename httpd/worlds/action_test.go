package worlds_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// byAction is the answer of a handler of httpd. Its action is a coroutine.
type byAction struct {
	co   *coro.Co // nil: it answers without an action, and so there is room
	w    *httpd.Response
	r    *httpd.Request
	file *os.File // of Noise
}

// act answers at once, or returns the action that does.
func (h *server) act(q *request, w *httpd.Response, r *httpd.Request) act.Action {
	out := &byAction{w: w, r: r, file: h.file}
	x := &handling{server: h, q: q, out: out}
	x.begun()
	w.Add("X-Id", q.id())
	if q.announced >= 0 {
		w.SetLength(int64(q.announced))
	}
	if q.parts {
		w.CloseAfter()
	}
	if q.headed = q.collect >= 0; q.ending != tunnels && q.ending != leavesATunnel {
		w.SetStatus(q.status)
	}
	switch {
	case q.collect >= 0:
		q.asked = true
		return h.tracked(q, httpd.WithBody(q.collect, func(_ *httpd.Response, _ *httpd.Request, body []byte) act.Action {
			x.compare(body)
			x.ended()
			q.over = x.write(len(q.content))
			return nil
		})(w, r))
	case q.atOnce:
		q.over = x.steps() && x.end()
		q.returned = true
		h.running--
		return nil
	}
	return h.tracked(q, coro.New(func(co *coro.Co) error {
		defer func() { q.over = true }()
		out.co = co
		if !x.steps() || !x.end() {
			q.aborted = true
			return party.ErrOnPurpose
		}
		return nil
	}))
}

// end ends the handler, and reports whether it has ended well.
func (x *handling) end() bool {
	q, out := x.q, x.out.(*byAction)
	switch q.ending {
	case aborts:
		return false
	case panics:
		q.aborted = true
		panic(party.ErrOnPurpose)
	case tunnels:
		q.hijacked = out.w.SwitchProtocols("echo", x.echo) == nil
	case leavesATunnel:
		q.hijacked = out.w.Hijack(func(c *listener.Conn) act.Action {
			_, _ = c.WriteString("HTTP/1.1 101 Hijacked\r\nX-Id: " + q.id() + "\r\n\r\n")
			return x.echo(c)
		}) == nil
	default:
		x.head()
		for name, values := range q.behind {
			out.w.AddTrailer(name, values[0])
		}
	}
	return true
}

// echo is what comes after HTTP. A shutdown request reaches it.
func (x *handling) echo(c *listener.Conn) act.Action {
	return &tunnel{x: x, c: c}
}

type tunnel struct {
	x    *handling
	c    *listener.Conn
	told bool
}

func (a *tunnel) Act(t *act.Task) act.Directive {
	if t.Order() != nil && !a.told {
		a.x.w.Errorf("the order has not reached the action behind the switch")
	}
	in, err := a.c.Peek(1)
	if err == nil {
		var n int
		n, err = a.c.Write(in)
		a.c.Discard(n)
	}
	return listener.Next(t, err)
}

func (a *tunnel) Stop(*act.Task, shutdown.Order) { a.told = true }

// tracked looks at an action until it is closed.
func (h *server) tracked(q *request, inner act.Action) act.Action {
	if inner == nil {
		q.returned = true
		h.running--
		return nil
	}
	q.conn.open++
	return &trackedAction{Child: act.Child{Action: inner}, q: q}
}

type trackedAction struct {
	act.Child
	q      *request
	told   bool // of a shutdown
	closed bool
}

func (a *trackedAction) Stop(t *act.Task, o shutdown.Order) {
	a.told = true
	a.Child.Stop(t, o)
}

func (a *trackedAction) Act(t *act.Task) act.Directive {
	if a.closed {
		a.q.client.w.Errorf("the action of %v has a turn after its end", a.q)
	}
	if a.q.conn.closed {
		a.q.client.w.Errorf("the action of %v has a turn after the end of its connection", a.q)
	}
	if a.q.conn.ordered && !a.told {
		a.q.client.w.Errorf("%v is answered under an order that its action was not told of", a.q)
	}
	return a.Child.Act(t)
}

func (a *trackedAction) Close() error {
	if a.closed {
		a.q.client.w.Errorf("the action of %v is closed twice", a.q)
	}
	a.closed, a.q.returned = true, true
	a.q.conn.open--
	a.q.client.running--
	return a.Child.Close()
}

// wait waits for what blocks.
func (x *byAction) wait(err error) error {
	if _, blocked := err.(act.Blocked); blocked {
		return x.co.Unblock(err)
	}
	return err
}

func (x *byAction) Write(p []byte) (n int, err error) {
	for err == nil && n < len(p) {
		var k int
		k, err = x.w.Write(p[n:])
		n, err = n+k, x.wait(err)
	}
	return n, err
}

func (x *byAction) SendFile(from, n int) (sent int, err error) {
	for err == nil && sent < n {
		var k int64
		k, err = x.w.SendFile(x.file, int64(from+sent), int64(n-sent))
		sent, err = sent+int(k), x.wait(err)
	}
	return sent, err
}

func (x *byAction) Read(p []byte) (int, error) {
	for {
		n, err := x.r.Body.Read(p)
		_, blocked := err.(act.Blocked)
		if !blocked || n > 0 {
			return n, err
		}
		if err := x.wait(err); err != nil {
			return 0, err
		}
	}
}

func (x *byAction) Flush() (err error) {
	for again := true; again && err == nil; {
		err = x.w.Flush()
		_, again = err.(act.Blocked)
		err = x.wait(err)
	}
	return err
}

func (x *byAction) Inform() error {
	if err := x.w.Inform(103, httpd.NewField("X-Id", string(x.r.Header("X-Id")))); !errors.Is(err, httpd.ErrLate) {
		return x.wait(err)
	}
	return nil
}

func (x *byAction) Sleep(d time.Duration) error {
	if d%2 == 0 {
		_, err := coro.Offload(x.co, func() (int, error) { return 0, nil })
		return err
	}
	return x.co.Sleep(d)
}

func (x *byAction) Status(status int)          { x.w.SetStatus(status) }
func (x *byAction) Trailer(name string) string { return string(x.r.Body.Trailer(name)) }

func (x *byAction) Check(q *request) bool {
	return q.isSeen(string(x.r.Method()), string(x.r.Path()), string(x.r.Host()), int(x.r.Proto()[len("HTTP/1.")]-'0'), x.r.Body.Length()) &&
		strings.HasSuffix(string(x.r.Header("X-Id")), q.id())
}

var _ io.Reader = (*byAction)(nil)
