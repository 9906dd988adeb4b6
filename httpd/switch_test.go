package httpd_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// takeover is a way in which a connection leaves HTTP.
type takeover func(*httpd.Response, func(*listener.Conn) act.Action) error

var takeovers = map[string]struct {
	take   takeover
	status string // that OnResponse is told
}{
	"Hijack": {(*httpd.Response).Hijack, "0"},
	"SwitchProtocols": {func(w *httpd.Response, next func(*listener.Conn) act.Action) error {
		return w.SwitchProtocols("line-echo", next)
	}, "101"},
}

// eachTakeover runs f for both ways.
func eachTakeover(t *testing.T, f func(t *testing.T, take takeover, status string)) {
	for name, way := range takeovers {
		t.Run(name, func(t *testing.T) { f(t, way.take, way.status) })
	}
}

// lineEcho is the other protocol: it returns each line, in capitals, and says "bye" on a shutdown request.
type lineEcho struct {
	in      listener.Line
	stopped bool
	log     *[]string // of what happens to it
}

// lines makes a lineEcho of a connection.
func lines(log *[]string) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		e := &lineEcho{in: listener.Line{Conn: c}, log: log}
		e.note("next")
		return e
	}
}

func (e *lineEcho) Act(t *act.Task) act.Directive {
	for {
		if e.stopped {
			_, _ = e.in.Conn.WriteString("bye\n")
			return act.Done
		}
		line, err := e.in.Read()
		if err != nil {
			return listener.Next(t, err)
		}
		if string(line) == "fail" {
			return t.Fail(io.ErrUnexpectedEOF)
		}
		if _, err := e.in.Conn.WriteString(strings.ToUpper(string(line)) + "\n"); err != nil {
			_, _ = e.in.Conn.Ended(t)
			return listener.Next(t, err)
		}
	}
}

func (e *lineEcho) Stop(*act.Task, shutdown.Order) { e.stopped = true; e.note("stopped") }
func (e *lineEcho) Close() error                   { e.note("closed"); return nil }
func (e *lineEcho) String() string                 { return "line echo" }
func (e *lineEcho) Describe(d *act.Description)    { d.Of(e.in.Conn) }

func (e *lineEcho) note(what string) {
	if e.log != nil {
		*e.log = append(*e.log, what)
	}
}

// hijacking takes over the connection of each request.
func hijacking(w *httpd.Response, _ *httpd.Request) act.Action {
	_ = w.Hijack(lines(nil))
	return nil
}

// upgrading answers each request by a switch to the protocol line-echo, or with 426.
func upgrading(w *httpd.Response, r *httpd.Request) act.Action {
	w.Add("X-Key", "abc")
	if err := w.SwitchProtocols("line-echo", lines(nil)); err != nil {
		w.StatusOnly(426)
		w.Add("Upgrade", "line-echo")
		_, _ = fmt.Fprintln(w, err)
	}
	return nil
}

const upgrade = "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: line-echo\n\n"

// The bytes after the head belong to the new protocol, however they come, and no byte of them is read as HTTP. A hijacked
// connection gets no answer.
func TestAllBehindTheHeadBelongsToTheNextProtocol(t *testing.T) {
	switched := raw("HTTP/1.1 101 Switching Protocols\nDate: " + noon.Format(http.TimeFormat) +
		"\nConnection: upgrade\nX-Key: abc\nUpgrade: line-echo\n\n")
	for head, row := range map[string]struct {
		handler httpd.Handler
		answer  string
	}{
		upgrade: {upgrading, switched},
		strings.Replace(upgrade, "line-echo", "h2c, Line-Echo", 1):         {upgrading, switched},
		strings.Replace(upgrade, "upgrade", "keep-alive, Upgrade", 1):      {upgrading, switched},
		strings.Replace(upgrade, "\nHost", "\nContent-Length: 0\nHost", 1): {upgrading, switched},

		get + "\n": {hijacking, ""},
		strings.Replace(get, "GET", "HEAD", 1) + "\n":        {hijacking, ""},
		"GET / HTTP/1.0\n\n":                                 {hijacking, ""},
		get + "Connection: close\n\n":                        {hijacking, ""},
		coded + "\n":                                         {hijacking, ""},
		post + "Expect: 100-continue\nContent-Length: 9\n\n": {hijacking, ""},
	} {
		for _, pieces := range ways(raw(head) + "hello\nGET / HTTP/1.1\n\n") {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(pieces...)
			require.Equal(t, row.answer+"HELLO\nGET / HTTP/1.1\n\n", c.received(), "%q", head)
			c.closesInOrder(t)
		}
	}
}

// RFC 9110 7.8: without "Connection: upgrade", and in HTTP/1.0, Upgrade means nothing.
func TestProtocolsAreNotSwitched(t *testing.T) {
	for name, says := range map[string]string{
		"no Upgrade":       strings.Replace(upgrade, "Upgrade: line-echo\n", "", 1),
		"no Connection":    strings.Replace(upgrade, "Connection: upgrade\n", "", 1),
		"another protocol": strings.Replace(upgrade, "line-echo", "line-echo/2, websocket", 1),
		"another option":   strings.Replace(upgrade, "upgrade", "upgrades", 1),
		"HTTP/1.0":         strings.Replace(upgrade, "HTTP/1.1", "HTTP/1.0", 1),
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: upgrading}, listener.Limits{}).send(raw(says))
		all, err := understand(string(c.out), c.state != open, asked{old: name == "HTTP/1.0"})
		require.NoError(t, err, name)
		require.Equal(t, 426, all[0].status, name)
		require.Contains(t, all[0].body, httpd.ErrNoUpgrade.Error(), name)
		require.Equal(t, "line-echo", all[0].get("Upgrade"))
	}
}

// RFC 9110 7.8: the body precedes the switch, and the 100 for it precedes the 101.
func TestABodyPrecedesTheSwitch(t *testing.T) {
	says := strings.Replace(upgrade, "\nHost", "\nExpect: 100-continue\nContent-Length: 5\nHost", 1)
	reading := httpd.WithBody(0, func(w *httpd.Response, r *httpd.Request, _ []byte) act.Action { return upgrading(w, r) })
	c := newDriver(t).dial(&httpd.Server{Handler: reading}, listener.Limits{}).send(raw(says))
	require.Equal(t, "HTTP/1.1 100 Continue\r\n\r\n", c.received())
	out := c.send("12345hello\n").received()
	require.True(t, strings.HasPrefix(out, "HTTP/1.1 101 ") && strings.HasSuffix(out, "\r\n\r\nHELLO\n"), out)

	c = newDriver(t).dial(&httpd.Server{Handler: upgrading}, listener.Limits{}).send(raw(says) + "12345")
	require.Contains(t, c.received(), "HTTP/1.1 426 ", "it is unread")
}

// What a handler does beside it that does not go with it: the switch is off, or the answer fails. What was written before
// Hijack is sent, and the next protocol may complete it.
func TestATakeoverWithOtherCalls(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
	for text, want := range map[string]string{ // the client receives this, or what begins so; "HELLO" is said by the next protocol
		"switch, status 404":           "HTTP/1.1 404 ",
		"switch, error 403":            "HTTP/1.1 403 ",
		"switch, write 1 ErrNoContent": "HTTP/1.1 101 ",
		"write 1, switch":              "HTTP/1.1 500 ",
		"flush, switch ErrLate":        "HTTP/1.1 200 ",
		"switch-to-nothing":            "HTTP/1.1 101 ",
		"hijack-to-nothing":            "",
		"hijack, hijack error, write 1 error, flush error, inform 103 error, switch error, whole 1, close": "HELLO\n",
		"whole 1, hijack ErrLate":    "HTTP/1.1 200 ",
		"switch, hijack ErrLate":     "HTTP/1.1 101 ",
		"date, hijack error":         "HTTP/1.1 500 ",
		"length 11, write 6, hijack": head + "Content-Length: 11\r\n\r\nzzzzzzHELLO\n",
		"write 6, hijack":            head + "Transfer-Encoding: chunked\r\n\r\n6\r\nzzzzzz\r\nHELLO\n",
	} {
		c := newDriver(t).dial(&httpd.Server{Handler: does(t, text)}, listener.Limits{}).send(raw(upgrade) + "hello\n")
		if strings.HasSuffix(want, " ") {
			require.True(t, strings.HasPrefix(string(c.out), want), "%s: %s", text, c.out)
			require.False(t, !strings.Contains(want, "101") && strings.Contains(string(c.out), "HELLO"), "%s: it is not switched", text)
		} else {
			require.Equal(t, want, string(c.out), text)
		}
		require.NotEqual(t, aborted, c.state, text)
	}
	require.PanicsWithValue(t, "httpd: Hijack without an action", func() { _ = (&httpd.Response{}).Hijack(nil) })
}

// What was written before is bound to Timeouts.Write until it is sent. Then nothing of HTTP wakes the next protocol: neither
// that nor the time-out of a head that came in pieces.
func TestTheNextProtocolHasNoTimeouts(t *testing.T) {
	eachTakeover(t, func(t *testing.T, take takeover, _ string) {
		d := newDriver(t)
		turns := 0
		c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
			require.NoError(t, take(w, func(c *listener.Conn) act.Action {
				echo := lines(nil)(c)
				return act.Func(func(t *act.Task) act.Directive {
					turns++
					return echo.Act(t)
				})
			}))
			return nil
		}}, listener.Limits{})
		c.room = 10
		c.send(raw(upgrade[:20]), raw(upgrade[20:]))
		d.pass(50 * time.Second)
		require.Equal(t, open, c.state)
		c.take(plenty)
		d.settle()
		c.received()
		before := turns
		d.pass(24 * time.Hour)
		require.Equal(t, before, turns)
		require.Equal(t, "HELLO\n", c.send("hello\n").received())
	})
}

// Orders, failures, the end and the name are the new action's, and OnResponse is called once.
func TestASwitchedConnectionBelongsToItsAction(t *testing.T) {
	for name, row := range map[string]struct {
		then func(*driver, *client)
		log  []string // after the status and "next"
		out  string
	}{
		"its client ends":   {func(_ *driver, c *client) { c.endInput() }, []string{"closed"}, ""},
		"it fails":          {func(_ *driver, c *client) { c.send("fail\n") }, []string{"closed"}, ""},
		"an order":          {func(d *driver, _ *client) { _ = d.obey(draining, nil) }, []string{"stopped", "closed"}, "bye\n"},
		"its client resets": {func(d *driver, c *client) { c.finish(net.ErrClosed); d.settle() }, []string{"closed"}, ""},
	} {
		eachTakeover(t, func(t *testing.T, take takeover, status string) {
			for _, around := range []bool{false, true} { // an action around it
				var log []string
				d := newDriver(t)
				d.around = around
				web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
					require.NoError(t, take(w, lines(&log)))
					return nil
				}, OnResponse: func(w *httpd.Response, r *httpd.Request) {
					log = append(log, fmt.Sprint(w.Status()))
				}}
				c := d.dial(web, listener.Limits{}).send(raw(upgrade))
				c.received()
				_, alone := c.host.action.(*lineEcho)
				require.Equal(t, !around, alone, "a service has nothing of HTTP left for it")
				row.then(d, c)
				_ = d.s.Close()
				require.Equal(t, append([]string{status, "next"}, row.log...), log, name)
				require.Equal(t, row.out, c.received(), name)
			}
		})
	}
}

// idling is a protocol that knows since when it is idle.
type idling struct{ lineEcho }

func (*idling) IdleSince() (time.Duration, bool) { return 7, true }

// What was broken: after a switch a connection was never idle.
func TestIdleSinceOfEachPhase(t *testing.T) {
	eachTakeover(t, func(t *testing.T, take takeover, _ string) {
		var c *client
		idle := func() bool {
			_, idle := c.host.action.(interface {
				IdleSince() (time.Duration, bool)
			}).IdleSince()
			return idle
		}
		d := newDriver(t)
		d.around = true
		c = d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			require.False(t, idle(), "in the handler")
			if string(r.Path()) == "/" {
				require.NoError(t, take(w, func(c *listener.Conn) act.Action {
					return &idling{lineEcho{in: listener.Line{Conn: c}}}
				}))
			}
			return nil
		}}, listener.Limits{})
		require.True(t, idle(), "before the first request")
		c.send("GET /a HTTP/1.1\r\nHo")
		require.False(t, idle(), "in the middle of a head")
		c.send("st: a\r\n\r\n")
		require.True(t, idle(), "between two requests")
		c.send(raw(upgrade))
		require.True(t, idle(), "as the other protocol says")
	})
}
