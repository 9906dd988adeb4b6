package httpd_test

import (
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
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// What follows was found by the simulation: sim, TestWorldHTTP.

func TestASlowBodyBehindTheHeadOfAResponseAborts(t *testing.T) {
	asked := 0
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		asked++
		return echo(w, r)
	}}
	d := newDriver(t)
	c := d.dial(web, listener.Limits{}).send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	require.Contains(t, c.received(), "hello")
	d.pass(time.Minute)
	require.Equal(t, aborted, c.state)
	require.Equal(t, act.Done, c.verdict)
	require.Equal(t, 1, asked)
}

func TestTrailersLargerThanLimitsReadAreRefusedWith431(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: echo}, listener.Limits{Read: 1000})
	c.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("y", 1000) + "\r\n\r\n")
	require.Contains(t, c.received(), "HTTP/1.1 431 ")
	require.Equal(t, act.Done, c.verdict)
}

func TestARefusalBehindALongerTargetDoesNotPanic(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{})
	c.send("GET /" + strings.Repeat("x", 100) + " HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Contains(t, c.received(), "HTTP/1.1 200 ")
	c.send("GET / HTTP/1.1\r\n\r\n")
	require.Contains(t, c.received(), "HTTP/1.1 400 ")
	require.Equal(t, act.Done, c.verdict)
}

// What follows was found by readers.

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

// A proxy whose other side resets has failed; the service takes a reset for the end of its own connection.
func TestAResetOfABackendIsAFailureOfTheHandler(t *testing.T) {
	web := &httpd.Server{Handler: func(*httpd.Response, *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive { return t.Fail(fmt.Errorf("backend: %w", syscall.ECONNRESET)) })
	}}
	d := newDriver(t)
	c := d.dial(web, listener.Limits{}).send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Contains(t, c.received(), "HTTP/1.1 500 ")
	require.ErrorContains(t, c.err, "backend: ")
	require.NotErrorIs(t, c.err, syscall.ECONNRESET)
}

func TestRemoteAddrOfAClientThatHasGoneIsUnknown(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.WriteString(r.RemoteAddr().String())
		return nil
	}}
	d := newDriver(t)
	c := d.dialOver(web, listener.Limits{}, func(w *wire) monitor.Stream { return addressless{w} })
	require.True(t, strings.HasSuffix(c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").received(), "\r\n\r\nunknown"))
}

// nowhere is a wire whose remote address the system no longer knows.
type addressless struct{ *wire }

func (addressless) PeerAddr() net.Addr { return nil }

// OnResponse is called once for each request, also for those that were refused, cut off or never answered.
func TestOnResponseIsCalledOnceForEachRequest(t *testing.T) {
	var log []string
	web := &httpd.Server{
		Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			switch string(r.Path()) {
			case "/panic":
				panic("as it was told")
			case "/cut":
				w.SetLength(10)
				_ = w.Flush()
			case "/whole":
				w.SetBody(make([]byte, 5000))
			case "/missing":
				w.Error(404)
			default:
				_, _ = w.Write(r.Path())
			}
			return nil
		},
		OnResponse: func(w *httpd.Response, r *httpd.Request) {
			log = append(log, fmt.Sprintf("%s %s %d %d", r.Method(), r.Target(), w.Status(), w.Written()))
		},
	}
	d := newDriver(t)
	for _, path := range []string{"/a", "/whole", "/missing", "/cut", "/panic"} {
		d.dial(web, listener.Limits{}).send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n").endInput()
	}
	d.dial(web, listener.Limits{}).send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n\r\n").endInput()
	d.dial(web, listener.Limits{}).send("GET\r\n").endInput()
	d.dial(web, listener.Limits{}).send("\r\n").endInput()
	require.Equal(t, []string{"GET /a 200 2", "GET /whole 200 5000", "GET /missing 404 14", "GET /cut 200 0", "GET /panic 0 0",
		"HEAD /a 200 2", "GET /b 400 16", "  400 16"}, log)
}

// Found by the simulation.
func TestOnResponseIsCalledAfterAPanicBehindAnOffloadedFunction(t *testing.T) {
	told, back := 0, false
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
		OnResponse: func(*httpd.Response, *httpd.Request) { told++ },
	}
	d := newDriver(t)
	d.dial(web, listener.Limits{}).send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for end := time.Now().Add(servertest.Timeout); told == 0 && time.Now().Before(end); d.settle() {
		time.Sleep(100 * time.Microsecond)
	}
	require.Equal(t, 1, told)
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
