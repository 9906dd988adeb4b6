package httpd_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// lineEcho is the other protocol: it returns each line, in capitals, and says "bye" on an order.
type lineEcho struct {
	in      listener.Line
	stopped bool
	log     *[]string // of what happens to it
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
			return listener.Next(t, err)
		}
	}
}

func (e *lineEcho) Stop(*act.Task, shutdown.Order) { e.stopped = true; e.note("stopped") }
func (e *lineEcho) Close() error                   { e.note("closed"); return nil }
func (e *lineEcho) String() string                 { return "line echo" }

func (e *lineEcho) note(what string) {
	if e.log != nil {
		*e.log = append(*e.log, what)
	}
}

// upgrading answers each request by a switch to the protocol line-echo, or with 426.
func upgrading(log *[]string) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("X-Key", "abc")
		err := w.SwitchProtocols("line-echo", func(c *listener.Conn) act.Action { return &lineEcho{in: listener.Line{Conn: c}, log: log} })
		if err != nil {
			w.Error(426)
			w.Add("Upgrade", "line-echo")
			_, _ = fmt.Fprintln(w, err)
		}
		return nil
	}
}

const upgrade = "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: line-echo\n\n"

// The bytes behind the head belong to the new protocol, however they come, and no byte of them is read as HTTP.
func TestProtocolsAreSwitched(t *testing.T) {
	for _, says := range []string{
		upgrade,
		strings.Replace(upgrade, "line-echo", "h2c, Line-Echo", 1),
		strings.Replace(upgrade, "upgrade", "keep-alive, Upgrade", 1),
		strings.Replace(upgrade, "\nHost", "\nContent-Length: 0\nHost", 1),
	} {
		for _, pieces := range ways(t, raw(says)+"hello\nGET / HTTP/1.1\n"+"\n") {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: upgrading(nil)}, listener.Limits{}).send(pieces...)
			head, rest, _ := strings.Cut(c.received(), "\r\n\r\n")
			require.Equal(t, raw("HTTP/1.1 101 Switching Protocols\nDate: "+noon.Format(httpd.TimeFormat)+
				"\nConnection: upgrade\nX-Key: abc\nUpgrade: line-echo"), head)
			require.Equal(t, "HELLO\nGET / HTTP/1.1\n\n", rest)
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
		c := d.dial(&httpd.Server{Handler: upgrading(nil)}, listener.Limits{}).send(raw(says))
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
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: httpd.WithBody(0, func(w *httpd.Response, r *httpd.Request, _ []byte) act.Action {
		return upgrading(nil)(w, r)
	})}, listener.Limits{}).send(raw(says))
	require.Equal(t, "HTTP/1.1 100 Continue\r\n\r\n", c.received())
	out := c.send("12345hello\n").received()
	require.True(t, strings.HasPrefix(out, "HTTP/1.1 101 ") && strings.HasSuffix(out, "\r\n\r\nHELLO\n"), out)

	c = d.dial(&httpd.Server{Handler: upgrading(nil)}, listener.Limits{}).send(raw(says) + "12345")
	require.Contains(t, c.received(), "HTTP/1.1 426 ", "it is unread")
}

// What a handler does beside a switch that does not go with it: the switch is off, or the answer fails.
func TestSwitchProtocolsWithOtherCalls(t *testing.T) {
	next := func(c *listener.Conn) act.Action { return &lineEcho{in: listener.Line{Conn: c}} }
	for name, row := range map[string]struct {
		handler httpd.Handler
		want    string
	}{
		"another status": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.SwitchProtocols("line-echo", next)
			w.SetStatus(404)
			return nil
		}, "HTTP/1.1 404 "},
		"an error": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.SwitchProtocols("line-echo", next)
			w.Error(403)
			return nil
		}, "HTTP/1.1 403 "},
		"content": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.SwitchProtocols("line-echo", next)
			_, err := w.WriteString("x")
			require.ErrorIs(t, err, httpd.ErrNoContent)
			return nil
		}, "HTTP/1.1 101 "},
		"content before it": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("x")
			_ = w.SwitchProtocols("line-echo", next)
			return nil
		}, "HTTP/1.1 500 "},
		"too late": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.Flush()
			require.ErrorIs(t, w.SwitchProtocols("line-echo", next), httpd.ErrLate)
			return nil
		}, "HTTP/1.1 200 "},
		"a close": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.Close()
			_ = w.SwitchProtocols("line-echo", next)
			return nil
		}, "HTTP/1.1 101 "},
		"an action": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			return act.Seq(&listener.Sleep{For: time.Second}, act.Func(func(*act.Task) act.Directive {
				_ = w.SwitchProtocols("line-echo", next)
				return act.Done
			}))
		}, "HTTP/1.1 101 "},
		"no action": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.SwitchProtocols("line-echo", func(*listener.Conn) act.Action { return nil })
			return nil
		}, "HTTP/1.1 101 "},
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(raw(upgrade))
		d.pass(time.Second)
		require.True(t, strings.HasPrefix(string(c.out), row.want), "%s: %s", name, c.out)
		if strings.Contains(row.want, "101") {
			require.NotContains(t, string(c.out), "close", name)
		}
	}
}

// The time-outs of the Server end with the switch, the slow client's too.
func TestASwitchedConnectionHasNoTimeouts(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: upgrading(nil)}, listener.Limits{})
	c.room = 10
	c.send(raw(upgrade))
	d.pass(50 * time.Second)
	c.take(plenty)
	d.settle()
	require.True(t, strings.HasSuffix(c.received(), "\r\n\r\n"))
	_, armed := d.s.NextDeadline()
	require.False(t, armed)
	d.pass(24 * time.Hour)
	require.Equal(t, "HELLO\n", c.send("hello\n").received())
}

// Orders, failures, the end and the name are the new action's, and OnResponse is told of the 101.
func TestASwitchedConnectionBelongsToItsAction(t *testing.T) {
	for name, row := range map[string]struct {
		then func(*driver, *client)
		log  []string
		out  string
	}{
		"its client ends":   {func(_ *driver, c *client) { c.endInput() }, []string{"101", "closed"}, ""},
		"it fails":          {func(_ *driver, c *client) { c.send("fail\n") }, []string{"101", "closed"}, ""},
		"an order":          {func(d *driver, _ *client) { _ = d.obey(draining, nil) }, []string{"101", "stopped", "closed"}, "bye\n"},
		"its client resets": {func(d *driver, c *client) { c.finish(net.ErrClosed); d.settle() }, []string{"101", "closed"}, ""},
	} {
		for _, around := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", an action around it: ", around), func(t *testing.T) {
				var log []string
				d := newDriver(t)
				d.around = around
				web := &httpd.Server{Handler: upgrading(&log), OnResponse: func(w *httpd.Response, r *httpd.Request) {
					log = append(log, fmt.Sprint(w.Status()))
				}}
				c := d.dial(web, listener.Limits{}).send(raw(upgrade))
				c.received()
				_, alone := c.host.action.(*lineEcho)
				require.Equal(t, !around, alone, "a service has nothing of HTTP left for it")
				row.then(d, c)
				_ = d.s.Close()
				require.Equal(t, row.log, log)
				require.Equal(t, row.out, c.received())
			})
		}
	}
}

// The action behind a switch may be a coroutine, which reads what follows the request as a stream.
func TestProtocolsAreSwitchedToACoroutine(t *testing.T) {
	runtime.LockOSThread() // coroutines live on the thread of Step
	t.Cleanup(runtime.UnlockOSThread)
	dropped := 0
	lines := func(c *coro.Conn) error {
		in := bufio.NewScanner(c)
		for c.Co().UntilOrder(func() error { in.Scan(); return in.Err() }) == nil && in.Text() != "" {
			if _, err := fmt.Fprintln(c, strings.ToUpper(in.Text())); err != nil {
				return err
			}
		}
		if errors.Is(in.Err(), coro.ErrStopped) {
			dropped++
			return in.Err()
		}
		_, err := fmt.Fprintln(c, "bye")
		return err
	}
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.SwitchProtocols("line-echo", coro.Serve(lines)))
		return nil
	}}
	for _, pieces := range ways(t, raw(upgrade)+"one\ntwo\n") {
		d := newDriver(t)
		c := d.dial(web, listener.Limits{}).send(pieces...)
		_, rest, _ := strings.Cut(c.received(), "\r\n\r\n")
		require.Equal(t, "ONE\nTWO\n", rest)
		require.Equal(t, "bye\n", c.endInput().received())
		require.Equal(t, closed, c.state)
		require.Equal(t, act.Done, c.verdict)
	}
	for name, row := range map[string]struct {
		end     func(*driver) error
		said    string
		dropped int
	}{
		"an order":            {func(d *driver) error { return d.obey(draining, nil) }, "ONE\nbye\n", 0},
		"the task's dropping": {func(d *driver) error { return d.s.Close() }, "ONE\n", 1},
	} {
		dropped = 0
		d := newDriver(t)
		c := d.dial(web, listener.Limits{}).send(raw(upgrade) + "one\n")
		_ = row.end(d)
		require.True(t, strings.HasSuffix(c.received(), "\r\n\r\n"+row.said), name)
		require.Equal(t, row.dropped, dropped, name)
	}
}

// An order that comes while the handler waits reaches the action behind the switch.
func TestAnOrderBeforeASwitch(t *testing.T) {
	var log []string
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		return act.Seq(&listener.Sleep{For: time.Second}, act.Func(func(*act.Task) act.Directive {
			upgrading(&log)(w, r)
			return act.Done
		}))
	}}
	d := newDriver(t)
	c := d.dial(web, listener.Limits{}).send(raw(upgrade))
	require.NoError(t, d.obey(draining, nil))
	require.Contains(t, log, "stopped")
	require.True(t, strings.HasSuffix(c.received(), "\r\n\r\nbye\n"))
}

func TestCurlIsSwitched(t *testing.T) {
	curl := tier.Tool(t, "curl")
	at := serve(t, &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if w.SwitchProtocols("once", func(c *listener.Conn) act.Action { _, _ = c.WriteString("hello"); return nil }) != nil {
			w.Error(426)
			w.Add("Upgrade", "once")
		}
		return nil
	}})
	out, err := exec.Command(curl, "-si", "-m", "10", "-H", "Connection: Upgrade", "-H", "Upgrade: once", "http://"+at).CombinedOutput()
	require.True(t, strings.HasPrefix(string(out), "HTTP/1.1 101 Switching Protocols"), "%v: %s", err, out)
	require.True(t, strings.HasSuffix(string(out), "\r\n\r\nhello"), "%s", out)
	out, err = exec.Command(curl, "-si", "-m", "10", "http://"+at).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "HTTP/1.1 426 Upgrade Required")
	require.Contains(t, string(out), "Connection: upgrade")
}

// The time-outs of a Server end with HTTP: a head that came slowly leaves no timer that would wake the next protocol.
func TestTheNextProtocolIsNotWokenByTimeoutsOfHTTP(t *testing.T) {
	d := newDriver(t)
	turns := 0
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.SwitchProtocols("wait", func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				turns++
				_, err := c.Peek(1)
				return listener.Next(t, err)
			})
		}))
		return nil
	}}
	d.dial(web, listener.Limits{}).send(raw(get), raw("Connection: upgrade\nUpgrade: wait\n\n"))
	d.pass(time.Hour)
	require.Equal(t, 1, turns)
}

// idling is a protocol that knows since when it is idle.
type idling struct{ lineEcho }

func (*idling) IdleSince() (time.Duration, bool) { return 7, true }

// What was broken: behind a switch a connection was never idle.
func TestIdleSinceOfEachPhase(t *testing.T) {
	for _, hijack := range []bool{false, true} {
		idleSinceOfEachPhase(t, hijack)
	}
}

func idleSinceOfEachPhase(t *testing.T, hijack bool) {
	var action act.Action
	idle := func() bool {
		_, idle := action.(interface {
			IdleSince() (time.Duration, bool)
		}).IdleSince()
		return idle
	}
	d := newDriver(t)
	d.around = true
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		require.False(t, idle(), "in the handler")
		if string(r.Path()) == "/" {
			next := func(c *listener.Conn) act.Action { return &idling{lineEcho{in: listener.Line{Conn: c}}} }
			if hijack {
				require.NoError(t, w.Hijack(next))
			} else {
				require.NoError(t, w.SwitchProtocols("line-echo", next))
			}
		}
		return nil
	}}
	c := &client{d: d, wire: &wire{s: d.s, room: plenty, state: open}}
	conn := listener.NewConn(d.s, plainStream(c.wire), listener.Limits{})
	action = web.Serve(conn)
	require.False(t, idle(), "before its first turn")
	d.s.Spawn(&host{client: c, conn: conn, action: action})
	d.settle()
	require.True(t, idle(), "before the first request")
	c.send("GET /a HTTP/1.1\r\nHo")
	require.False(t, idle(), "in the middle of a head")
	c.send("st: a\r\n\r\n")
	require.True(t, idle(), "between two requests")
	c.send(strings.ReplaceAll(upgrade, "\n", "\r\n"))
	require.True(t, idle(), "as the other protocol says")
}
