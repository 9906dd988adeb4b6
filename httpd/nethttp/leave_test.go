package nethttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// host is a server of one test, on one scheduler.
type host struct {
	*scene
	adapter *nethttp.Adapter
	group   *act.Group
	order   context.CancelFunc
	over    chan error // what Run has returned
	turns   atomic.Int64
}

// serve starts a server whose orders have the given bound. At the end of the test it must have ended, or must do so in order.
func serve(t testing.TB, a *nethttp.Adapter, bound time.Duration, cfg *tls.Config) *host {
	t.Helper()
	h := &host{scene: &scene{TB: t, site: &site{name: t.Name()}}, adapter: a, over: make(chan error, 1)}
	var filters []listener.Filter
	if cfg != nil {
		roots := x509.NewCertPool()
		roots.AddCert(cfg.Certificates[0].Leaf)
		h.secure, h.trust = true, &tls.Config{RootCAs: roots, ServerName: "localhost"}
		filters = append(filters, secure.Server(cfg, nil))
	}
	inner := a.Handler
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.running.Add(1)
		defer h.running.Add(-1)
		inner.ServeHTTP(w, r)
	})
	web := &httpd.Server{Handler: a.Serve}
	tcp := &service.TCP{Address: "127.0.0.1:0", Filters: filters, Handler: web.Serve}
	var ctx context.Context
	ctx, h.order = context.WithCancel(context.Background())
	t.Cleanup(h.order)
	up := make(chan struct{})
	set := act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Time: bound, Drop: true},
		Trace:  &act.Trace{TurnStart: func(*act.Task) { h.turns.Add(1) }},
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&h.log), zapcore.InfoLevel))}
	go func() {
		h.over <- act.Run(ctx, set, tcp.Setup, func(s *act.Scheduler) error {
			h.group = s.Group()
			close(up)
			return nil
		})
	}()
	select {
	case <-up:
		h.address = tcp.Addr().String()
	case err := <-h.over:
		require.NoError(t, err)
	}
	return h
}

// end orders the end, and returns what Run has.
func (h *host) end() error {
	h.Helper()
	h.order()
	err, ok := await(h.over)
	require.True(h, ok, "Run goes on")
	return err
}

// descriptors returns how many are open in this process; always 0 on systems that do not show them.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// admits wants exactly n further handlers to be admitted at a time.
func (h *host) admits(n int) {
	h.Helper()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = h.dial()
		clients[i].send("GET /meet HTTP/1.1\nHost: a\n\n")
	}
	h.until("all are admitted", func() bool { return h.running.Load() == int32(n) })
	full := h.dial()
	full.send(get)
	a, err := full.answer("GET")
	require.NoError(h, err)
	require.Equal(h, 503, a.status)
	for _, c := range clients {
		_ = c.Close()
	}
	_ = full.Close()
	h.until("they have returned", func() bool { return h.running.Load() == 0 })
}

// A moment is a point of a request at which its client may leave.
type moment struct {
	name    string
	request string
	// handler calls there when it is at the point, and returns only because the client has left.
	handler func(w http.ResponseWriter, r *http.Request, there func())
	// talk is what the client receives before it leaves; nil: nothing.
	talk func(s *scene, c *client)
	but  string // ways to leave of which the handler does not learn
}

// readAll reads until there is an error, which there has to be.
func readAll(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// writeAll writes until there is an error.
func writeAll(w io.Writer, there func()) {
	for p := make([]byte, 1<<14); ; there() {
		if _, err := w.Write(p); err != nil {
			return
		}
	}
}

func moments() []moment {
	waits := func(_ http.ResponseWriter, r *http.Request, there func()) {
		there()
		<-r.Context().Done()
	}
	reads := func(_ http.ResponseWriter, r *http.Request, there func()) {
		_, _ = io.ReadFull(r.Body, make([]byte, 2))
		there()
		_ = readAll(r.Body)
	}
	hears := func(text string) func(s *scene, c *client) {
		return func(s *scene, c *client) {
			got := make([]byte, len(text))
			_, err := io.ReadFull(c.in, got)
			require.NoError(s, err)
			require.Equal(s, text, string(got))
		}
	}
	return []moment{
		{name: "the handler waits for its context", request: get, handler: waits},
		{name: "it reads a body with a length", request: post("Content-Length: 5", "he"), handler: reads},
		{name: "it reads chunks", request: post("Transfer-Encoding: chunked", "5\nhe"), handler: reads},
		{name: "it reads between two chunks", request: post("Transfer-Encoding: chunked", "2\nhe\n"), handler: reads},
		{name: "it reads the trailers", request: post("Transfer-Encoding: chunked", "2\nhe\n0\nA: b"), handler: reads},
		{name: "it waits for a body that waits for 100", request: post("Content-Length: 5\nExpect: 100-continue", ""),
			handler: func(_ http.ResponseWriter, r *http.Request, there func()) {
				there()
				_ = readAll(r.Body)
			}, talk: hears("HTTP/1.1 100 Continue\r\n\r\n")},
		{name: "it does not read the body", request: post("Content-Length: 100000", strings.Repeat("x", 70000)), handler: waits,
			but: "FIN half"}, // the end is behind bytes that nobody wants yet
		{name: "the answer is not read", request: get, handler: func(w http.ResponseWriter, _ *http.Request, there func()) {
			writeAll(w, there)
		}},
		{name: "it flushes from time to time", request: get, handler: func(w http.ResponseWriter, r *http.Request, there func()) {
			_, _ = io.WriteString(w, "hello")
			w.(http.Flusher).Flush()
			waits(w, r, there)
		}, talk: func(s *scene, c *client) {
			_, err := c.line()
			require.NoError(s, err)
			_, err = c.lines()
			require.NoError(s, err)
			hears("5\r\nhello\r\n")(s, c)
		}},
		{name: "it reads and writes", request: post("Transfer-Encoding: chunked", "2\nhe\n"),
			handler: func(w http.ResponseWriter, r *http.Request, there func()) {
				other := make(chan struct{})
				go func() {
					defer close(other)
					_ = readAll(r.Body)
				}()
				writeAll(w, there)
				<-other
			}},
		{name: "an interim response is sent", request: get, handler: func(w http.ResponseWriter, r *http.Request, there func()) {
			w.WriteHeader(103)
			waits(w, r, there)
		}, talk: hears("HTTP/1.1 103 Early Hints\r\n\r\n")},
		{name: "the second of three requests is handled", request: get + "GET /part HTTP/1.1\nHost: a\n\n" + get,
			handler: func(w http.ResponseWriter, r *http.Request, there func()) {
				if r.URL.Path == "/part" {
					waits(w, r, there)
				}
			}, talk: func(s *scene, c *client) {
				_, err := c.answer("GET")
				require.NoError(s, err)
			}},
		{name: "a hijacked connection is read", request: get + "hello", handler: hijacked(func(c io.ReadWriter, there func()) {
			_, _ = io.ReadFull(c, make([]byte, 5))
			there()
			_ = readAll(c)
		})},
		{name: "a hijacked connection is not read by its client", request: get, handler: hijacked(func(c io.ReadWriter, there func()) {
			writeAll(c, there)
		})},
		{name: "the handler has left a hijacked connection to another goroutine", request: get,
			handler: func(w http.ResponseWriter, _ *http.Request, there func()) {
				if c, b, err := w.(http.Hijacker).Hijack(); err == nil {
					go func() {
						defer c.Close()
						_, _ = io.WriteString(c, "hello")
						_ = readAll(b)
					}()
				}
				there()
			}, talk: hears("hello")},
	}
}

func hijacked(use func(c io.ReadWriter, there func())) func(http.ResponseWriter, *http.Request, func()) {
	return func(w http.ResponseWriter, _ *http.Request, there func()) {
		c, b, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		use(struct {
			*bufio.Reader
			io.Writer
		}{b.Reader, c}, there)
	}
}

// Wherever a client leaves, its handler returns, and nothing is left: no goroutine, no descriptor, no place of the
// Adapter's.
func TestClientsThatLeave(t *testing.T) {
	t.Run("plain", func(t *testing.T) { leave(t, nil) })
	t.Run("TLS", func(t *testing.T) {
		tier.Need(t, tier.Full, "takes seconds")
		cert, err := secure.SelfSigned()
		require.NoError(t, err)
		leave(t, &tls.Config{Certificates: []tls.Certificate{cert}, CurvePreferences: []tls.CurveID{tls.X25519}})
	})
}

func leave(t *testing.T, cfg *tls.Config) {
	const most = 3
	var now atomic.Pointer[moment]
	var seen atomic.Int64 // when the handler was last known to be there
	a := &nethttp.Adapter{Most: most, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/meet" {
			<-r.Context().Done()
			return
		}
		now.Load().handler(w, r, func() { seen.Store(time.Now().UnixNano()) })
	})}
	h := serve(t, a, patience, cfg)
	h.admits(most) // what is opened at the first use stays open
	open, goroutines := descriptors(), runtime.NumGoroutine()
	for _, m := range moments() {
		now.Store(&m)
		for _, way := range []string{"FIN", "RST", "half"} {
			if strings.Contains(m.but, way) {
				continue
			}
			t.Run(m.name+", "+way, func(t *testing.T) {
				h.TB = t
				for range tier.Choose(most+1, most+2, 40) { // more than there are places
					seen.Store(0)
					c := h.dial()
					c.send(m.request)
					if m.talk != nil {
						m.talk(h.scene, c)
					}
					// One that writes is there again and again, until there is no room.
					h.until("the handler is there", func() bool {
						at := seen.Load()
						return at != 0 && time.Since(time.Unix(0, at)) > 2*time.Millisecond
					})
					switch way {
					case "FIN":
						_ = c.tcp.Close()
					case "RST":
						c.reset()
					case "half":
						_ = c.tcp.CloseWrite()
						go func() { // and reads, but not for ever
							_, _ = io.CopyN(io.Discard, c.tcp, 1<<20)
							c.reset()
						}()
					}
					h.until("the handler has returned", func() bool { return h.running.Load() == 0 })
				}
			})
		}
	}
	h.TB = t
	h.admits(most)
	h.until("as many descriptors as before", func() bool { return descriptors() <= open })
	h.until("as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	require.NoError(t, h.end())
	require.NotContains(t, h.log.take(), "panic")
}
