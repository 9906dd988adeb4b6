package httpd_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// lines makes a lineEcho of a connection.
func lines(log *[]string) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		e := &lineEcho{in: listener.Line{Conn: c}, log: log}
		e.note("next")
		return e
	}
}

// hijacking takes over the connection of each request.
func hijacking(w *httpd.Response, _ *httpd.Request) act.Action {
	if err := w.Hijack(lines(nil)); err != nil {
		panic(err)
	}
	return nil
}

// after returns an action that calls f after a second, and notes when it is closed.
func after(log *[]string, f func()) act.Action {
	return &closing{act.Child{Action: act.Seq(&listener.Sleep{For: time.Second}, act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	}))}, log}
}

type closing struct {
	act.Child
	log *[]string
}

func (c *closing) Stop(t *act.Task, o shutdown.Order) {
	*c.log = append(*c.log, "action stopped")
	c.Child.Stop(t, o)
}

func (c *closing) Close() error {
	*c.log = append(*c.log, "action closed")
	return c.Child.Close()
}

// All that is behind the head belongs to the next protocol, however it comes, and nothing is answered.
func TestAConnectionIsHijacked(t *testing.T) {
	for name, head := range map[string]string{
		"GET":                       get + "\n",
		"HEAD":                      strings.Replace(get, "GET", "HEAD", 1) + "\n",
		"HTTP/1.0":                  "GET / HTTP/1.0\n\n",
		"a client that is the last": get + "Connection: close\n\n",
		"a body":                    post + "Content-Length: 3\n\n",
		"a body in chunks":          coded + "\n",
		"a body that waits for 100": post + "Expect: 100-continue\nContent-Length: 1000000\n\n",
		"an upgrade":                upgrade,
	} {
		t.Run(name, func(t *testing.T) {
			for _, pieces := range ways(t, raw(head)+"hello\nGET / HTTP/1.1\n\n") {
				d := newDriver(t)
				c := d.dial(&httpd.Server{Handler: hijacking}, listener.Limits{}).send(pieces...)
				require.Equal(t, "HELLO\nGET / HTTP/1.1\n\n", strings.ReplaceAll(c.received(), "\r", ""))
				c.closesInOrder(t)
			}
		})
	}
}

// What the handler has read of the body is gone, and no more.
func TestTheRestOfABodyBelongsToTheNextProtocol(t *testing.T) {
	for says, want := range map[string]string{
		post + "Content-Length: 1000\n\nhello, world\n": ", WORLD\n",
		coded + "\n10\nhello, world\n0\n":               ", WORLD\n0\n",
	} {
		for _, pieces := range ways(t, raw(says)) {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
				left := 5
				return act.Func(func(t *act.Task) act.Directive {
					in, err := r.Body.Peek()
					if err != nil {
						return listener.Next(t, err)
					}
					n := min(left, len(in))
					r.Body.Discard(n)
					if left -= n; left > 0 {
						return act.Yield
					}
					hijacking(w, r)
					return act.Done
				})
			}}, listener.Limits{}).send(pieces...)
			require.Equal(t, want, strings.ReplaceAll(c.received(), "\r", ""))
		}
	}
}

// What was written is sent, and the next protocol may complete it.
func TestHijackBehindAPartOfTheAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		handler httpd.Handler
		rest    string
		body    string
	}{
		"with a length": {func(w *httpd.Response, r *httpd.Request) act.Action {
			w.SetLength(11)
			_, _ = w.WriteString("hello ")
			return hijacking(w, r)
		}, "world", "hello WORLD"},
		"flushed": {func(w *httpd.Response, r *httpd.Request) act.Action {
			w.SetLength(11)
			_, _ = w.WriteString("hello ")
			_ = w.Flush()
			return hijacking(w, r)
		}, "world", "hello WORLD"},
		"the head alone": {func(w *httpd.Response, r *httpd.Request) act.Action {
			w.SetLength(5)
			_ = w.Flush()
			return hijacking(w, r)
		}, "world", "WORLD"},
		"in chunks": {func(w *httpd.Response, r *httpd.Request) act.Action {
			_, _ = w.WriteString("hello ")
			return hijacking(w, r)
		}, "5\r\nworld\r\n0\r\n\r\n", "hello WORLD"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(raw(get+"\n") + row.rest + "\n")
			out := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(string(c.out), "\n"), "\r", ""), "\n", "\r\n")
			all, err := understand(out, false)
			require.NoError(t, err)
			require.Equal(t, "200", statuses(all))
			require.Equal(t, row.body, all[0].body)
		})
	}
}

func TestHijackWithOtherCalls(t *testing.T) {
	next := lines(nil)
	for name, row := range map[string]struct {
		handler httpd.Handler
		want    string // what the client gets, followed by what was sent behind the request if it was hijacked
	}{
		"again": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			require.NoError(t, w.Hijack(next))
			require.Error(t, w.Hijack(next))
			return nil
		}, "HELLO\n"},
		"and then others": {func(w *httpd.Response, r *httpd.Request) act.Action {
			require.NoError(t, w.Hijack(next))
			_, err := w.WriteString("x")
			require.Error(t, err)
			require.Error(t, w.Flush())
			require.Error(t, w.Inform(103))
			require.Error(t, w.SwitchProtocols("line-echo", next))
			w.SetBody([]byte("x"))
			w.Close()
			return nil
		}, "HELLO\n"},
		"behind SetBody": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.SetBody([]byte("x"))
			require.Equal(t, httpd.ErrLate, w.Hijack(next))
			return nil
		}, "HTTP/1.1 200 "},
		"behind a switch": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			require.NoError(t, w.SwitchProtocols("line-echo", next))
			require.Equal(t, httpd.ErrLate, w.Hijack(next))
			return nil
		}, "HTTP/1.1 101 "},
		"behind a mistake": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.Add("Date", "today")
			require.Error(t, w.Hijack(next))
			return nil
		}, "HTTP/1.1 500 "},
		"behind a mistake that comes out": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.SetLength(1)
			w.SetStatus(204)
			_ = w.Inform(103)
			_, err := w.WriteString("x")
			require.ErrorIs(t, err, httpd.ErrNoContent)
			require.NoError(t, w.Hijack(next))
			return nil
		}, "HTTP/1.1 103 Early Hints\r\n\r\nHELLO\n"},
		"an action": {func(w *httpd.Response, r *httpd.Request) act.Action {
			var log []string
			return after(&log, func() { hijacking(w, r) })
		}, "HELLO\n"},
		"no action": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			require.NoError(t, w.Hijack(func(*listener.Conn) act.Action { return nil }))
			return nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(raw(upgrade) + "hello\n")
			d.pass(time.Second)
			if strings.HasPrefix(row.want, "HTTP/1.1 ") && !strings.HasSuffix(row.want, "\n") {
				require.Contains(t, string(c.out), row.want)
			} else {
				require.Equal(t, row.want, string(c.out))
			}
			require.NotEqual(t, aborted, c.state)
		})
	}
	require.PanicsWithValue(t, "httpd: Hijack without an action", func() { _ = (&httpd.Response{}).Hijack(nil) })
}

// The handler goes on after Hijack as long as it likes: next is called when it has finished, also for HEAD. Its action is
// closed behind that.
func TestNextIsCalledWhenTheHandlerHasFinished(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		for name, take := range map[string]func(*httpd.Response, func(*listener.Conn) act.Action) error{
			"Hijack": (*httpd.Response).Hijack,
			"Hijack behind the head": func(w *httpd.Response, next func(*listener.Conn) act.Action) error {
				return errors.Join(w.Flush(), w.Hijack(next))
			},
			"SwitchProtocols": func(w *httpd.Response, next func(*listener.Conn) act.Action) error {
				return w.SwitchProtocols("line-echo", next)
			},
		} {
			var log []string
			d := newDriver(t)
			web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
				require.NoError(t, take(w, lines(&log)))
				return after(&log, func() { log = append(log, "handled") })
			}, OnResponse: func(w *httpd.Response, r *httpd.Request) {
				log = append(log, fmt.Sprint(w.Status()))
			}}
			c := d.dial(web, listener.Limits{}).send(raw(strings.Replace(upgrade, "GET", method, 1)))
			require.Empty(t, log)
			d.pass(time.Second)
			status := map[string]string{"Hijack": "0", "Hijack behind the head": "200", "SwitchProtocols": "101"}[name]
			require.Equal(t, []string{"handled", status, "next", "action closed"}, log, name)
			c.closesInOrder(t)
		}
	}
}

// If the connection is lost before it is handed over, the handler's action is closed without that.
func TestNextIsNotCalledForAConnectionThatIsLost(t *testing.T) {
	for name, lose := range map[string]func(*driver, *client){
		"its client resets": func(d *driver, c *client) { c.finish(syscall.ECONNRESET); d.settle() },
		"its client takes nothing": func(d *driver, c *client) {
			require.Equal(t, open, c.state)
			d.pass(3 * time.Minute)
		},
		"its task is dropped": func(d *driver, c *client) { _ = d.s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			d := newDriver(t)
			web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
				_, _ = w.Write(make([]byte, 100_000))
				return after(&log, func() { require.NoError(t, w.Hijack(lines(&log))) })
			}}
			c := d.dial(web, listener.Limits{High: 1000, Low: 100})
			c.room = 100
			c.send(raw(get + "\n"))
			d.pass(time.Second)
			require.Empty(t, log, "what was written is not sent yet")
			lose(d, c)
			require.Equal(t, []string{"action closed"}, log)
			require.Equal(t, aborted, c.state)
		})
	}
}

// What was written before is bound to Timeouts.Write until it is sent, and then there is no time-out.
func TestAHijackedConnectionHasNoTimeouts(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.Write(make([]byte, 100_000))
		return hijacking(w, r)
	}}, listener.Limits{High: 1000, Low: 100})
	c.room = 100
	c.send(raw(get), "\r\n")
	d.pass(50 * time.Second)
	require.Equal(t, open, c.state)
	c.take(plenty)
	d.settle()
	c.received()
	_, armed := d.s.NextDeadline()
	require.False(t, armed)
	d.pass(24 * time.Hour)
	require.Equal(t, "HELLO\n", c.send("hello\n").received())
}

// Orders, failures and the end are the new action's, and OnResponse is called once.
func TestAHijackedConnectionBelongsToItsAction(t *testing.T) {
	for name, row := range map[string]struct {
		then func(*driver, *client)
		log  []string
		out  string
	}{
		"its client ends":   {func(_ *driver, c *client) { c.endInput() }, []string{"0", "next", "closed"}, ""},
		"it fails":          {func(_ *driver, c *client) { c.send("fail\n") }, []string{"0", "next", "closed"}, ""},
		"an order":          {func(d *driver, _ *client) { _ = d.obey(draining, nil) }, []string{"0", "next", "stopped", "closed"}, "bye\n"},
		"its client resets": {func(d *driver, c *client) { c.finish(net.ErrClosed); d.settle() }, []string{"0", "next", "closed"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			d := newDriver(t)
			web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
				require.NoError(t, w.Hijack(lines(&log)))
				return nil
			}, OnResponse: func(w *httpd.Response, r *httpd.Request) {
				log = append(log, fmt.Sprint(w.Status()))
			}}
			c := d.dial(web, listener.Limits{}).send(raw(get + "\n"))
			row.then(d, c)
			_ = d.s.Close()
			require.Equal(t, row.log, log)
			require.Equal(t, row.out, c.received())
		})
	}
}

// An order that comes while the handler waits reaches the action that next makes, and the handler's action only before it
// has finished.
func TestAnOrderBeforeAHijack(t *testing.T) {
	var log []string
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		return after(&log, func() { require.NoError(t, w.Hijack(lines(&log))) })
	}}, listener.Limits{}).send(raw(get + "\n"))
	require.NoError(t, d.obey(draining, nil))
	require.Equal(t, []string{"action stopped", "next", "action closed", "stopped", "closed"}, log)
	require.Equal(t, "bye\n", c.received())

	log = nil // and once more, while what it has written is sent
	d = newDriver(t)
	c = d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.Write(make([]byte, 100_000))
		return after(&log, func() { require.NoError(t, w.Hijack(lines(&log))) })
	}}, listener.Limits{High: 1000, Low: 100})
	c.room = 100
	c.send(raw(get + "\n"))
	d.pass(time.Second)
	require.NoError(t, d.obey(draining, func() { c.take(plenty) }))
	require.Equal(t, []string{"next", "action closed", "stopped", "closed"}, log)
	require.True(t, strings.HasSuffix(c.received(), "bye\n"))
}

func TestAnActionThatFailsAfterHijackAbortsTheConnection(t *testing.T) {
	d := newDriver(t)
	var log []string
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.Hijack(lines(&log)))
		return failing(errOurs)
	}}, listener.Limits{}).send(raw(get + "\n"))
	require.Equal(t, aborted, c.state)
	require.Empty(t, string(c.out))
	require.Empty(t, log)
	require.Equal(t, act.Failed, c.verdict)
	require.Equal(t, 1, d.logs.Len())
}

// A goroutine that is there already takes the connection over, over a socket and over TLS.
func TestAGoroutineTakesAConnectionOver(t *testing.T) {
	for _, secret := range []bool{false, true} {
		ended := make(chan error, 1)
		web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			taken := make(chan net.Conn, 1)
			go func() {
				c := <-taken
				_, err := io.Copy(c, c)
				ended <- errors.Join(err, c.Close())
			}()
			require.NoError(t, w.Hijack(func(c *listener.Conn) act.Action {
				x := &listener.Bridge{Conn: c}
				taken <- x.NetConn()
				return x
			}))
			return nil
		}}
		var c interface {
			net.Conn
			CloseWrite() error
		}
		if secret {
			at, trust := secured(t, web)
			encrypted, err := tls.Dial("tcp", at, trust)
			require.NoError(t, err)
			c = encrypted
		} else {
			plain, err := net.Dial("tcp", serve(t, web))
			require.NoError(t, err)
			c = plain.(*net.TCPConn)
		}
		require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
		data := strings.Repeat("hello, world\n", 100_000)
		go func() {
			_, _ = io.WriteString(c, raw(get+"\n")+data)
			_ = c.CloseWrite()
		}()
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, data == string(got))
		require.NoError(t, servertest.Receive(t, ended))
		require.NoError(t, c.Close())
	}
}
