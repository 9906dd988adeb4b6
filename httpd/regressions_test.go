package httpd_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// An answer to HEAD is never held up, so a handler that streams without end was asked for more for ever.
func TestHEADEndsAHandlerThatStreamsWithoutEnd(t *testing.T) {
	for name, verdict := range map[string]act.Directive{"yields": act.Yield, "waits": act.Wait} {
		t.Run(name, func(t *testing.T) {
			turns, over := 0, false
			web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
				return act.All(act.Func(func(t *act.Task) act.Directive {
					turns++
					for err := error(nil); err == nil; {
						_, err = w.WriteString("and so on")
					}
					_ = t.Waker() // of an event that may never come
					return verdict
				}), closer(func() { over = true }))
			}}
			d := newDriver(t)
			c := d.dial(web, listener.Limits{}).send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Contains(t, c.received(), "HTTP/1.1 200 OK\r\n")
			require.Equal(t, 1, turns)
			require.True(t, over, "its action is closed")
			require.Equal(t, open, c.state)
		})
	}
}

// closer is an action that is only there to be closed.
type closer func()

func (closer) Act(*act.Task) act.Directive { return act.Wait }
func (f closer) Close() error              { f(); return nil }

func TestRemoteAddrOfAClientThatHasGoneIsUnknown(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.WriteString(r.RemoteAddr().String())
		return nil
	}}
	d := newDriver(t)
	c := d.dialOver(web, listener.Limits{}, func(w *wire) monitor.Stream { return addressless{w} })
	require.True(t, strings.HasSuffix(c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").received(), "\r\n\r\nunknown"))
}

// nowhere is a wire whose remote address the kernel no longer knows.
type addressless struct{ *wire }

func (addressless) PeerAddr() net.Addr { return nil }

// Found by the simulation.
func TestOnResponseIsCalledAfterAPanicBehindAnOffloadedFunction(t *testing.T) {
	told, back := make(chan struct{}, 2), false
	web := &httpd.Server{
		Handler: func(*httpd.Response, *httpd.Request) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				if back {
					panic("as it was told")
				}
				back = true
				return t.Offload(func() {})
			})
		},
		OnResponse: func(*httpd.Response, *httpd.Request) { told <- struct{}{} },
	}
	d := newDriver(t)
	d.dial(web, listener.Limits{}).send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for end := time.Now().Add(servertest.Timeout); len(told) == 0 && time.Now().Before(end); d.settle() {
		runtime.Gosched()
	}
	require.Len(t, told, 1)
}

// around is an action around another one that knows Close, but not Abandon.
type around struct {
	act.Action
	closed chan struct{}
}

func (c *around) Close() error {
	defer close(c.closed)
	return c.Action.(io.Closer).Close()
}

// The action is closed on the goroutine of the function, where OnResponse may not be called.
func TestOnResponseIsNotCalledForARequestThatIsDroppedInTheMiddleOfAnOffloadedFunction(t *testing.T) {
	release, told := make(chan struct{}), 0
	web := &httpd.Server{
		Handler: func(*httpd.Response, *httpd.Request) act.Action {
			return act.Func(func(t *act.Task) act.Directive { return t.Offload(func() { <-release }) })
		},
		OnResponse: func(*httpd.Response, *httpd.Request) { told++ },
	}
	d := newDriver(t)
	c := &client{d: d, wire: &wire{s: d.s, room: plenty, state: open}}
	x := &around{web.Serve(listener.NewConn(d.s, c.wire, listener.Limits{})), make(chan struct{})}
	d.s.Spawn(x)
	d.settle()
	c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	cut := (*shutdown.Cut)(nil)
	require.ErrorAs(t, d.s.Close(), &cut)
	require.Equal(t, 1, cut.Offloads)
	close(release)
	servertest.Receive(t, x.closed)
	require.Zero(t, told)
}

// A handler that appends to bytes that it was lent does not overwrite the bytes after them: the rest of the target, and of
// a body the next request.
func TestAppendingToLentBytesCopiesThem(t *testing.T) {
	spoil := func(p []byte) { _ = append(p, '#') }
	k := &recorder{}
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		for _, p := range [][]byte{r.Host(), r.Method(), r.Target(), r.Path(), r.Query(), r.Header("X")} {
			spoil(p)
		}
		in, _ := r.Body.Peek()
		spoil(in)
		return k.serve(w, r)
	}}
	d := newDriver(t)
	says := "POST http://a/b?c HTTP/1.1\nHost: a\nX: y\n"
	c := d.dial(web, listener.Limits{}).send(raw(says + "Content-Length: 5\n\nhello" + says + "Transfer-Encoding: chunked\n\n5\nhello\n0\n\n" + get + "\n"))
	require.Equal(t, "200 200 200", statuses(c.check(t)), k)
	require.Equal(t, `POST http://a/b?c path=/b?c X=y "hello"; POST http://a/b?c path=/b?c X=y "hello"; GET /`, k.String())
}

// A client of another protocol waits for an answer to what it has sent: it hears at once that this is not HTTP.
func TestAControlCharacterIsRefusedAtOnce(t *testing.T) {
	for _, says := range []string{"\x16\x03\x01", "\x00", "GET /\x00", get + "X: \x00"} {
		c := newDriver(t).dial(&httpd.Server{Handler: (&recorder{}).serve}, listener.Limits{}).send(raw(says))
		require.Equal(t, "400!", statuses(c.check(t)), "%q", says)
	}
}
