package nethttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
)

// server is what programs call of an http.Server, and of a Server. The tests here play a scene on each.
type server interface {
	ListenAndServe() error
	ListenAndServeTLS(certFile, keyFile string) error
	Serve(l net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(ctx context.Context) error
	Close() error
	RegisterOnShutdown(f func())
	SetKeepAlivesEnabled(v bool)
}

// house is a scene with a server of its own.
type house struct {
	*scene
	server
	over chan error // what has Serve returned

	mu     sync.Mutex
	conns  []net.Conn // in the order in which they came
	states map[net.Conn][]string
}

// state is a ConnState.
func (h *house) state(c net.Conn, s http.ConnState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.conns, c) {
		h.conns = append(h.conns, c)
	}
	h.states[c] = append(h.states[c], s.String())
}

// noteStates notes what the connections have gone through, when all have ended, and what handlers have said.
func (h *house) noteStates() {
	h.until("they have ended", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return !slices.ContainsFunc(h.conns, func(c net.Conn) bool {
			all := h.states[c]
			return all[len(all)-1] != "closed" && all[len(all)-1] != "hijacked"
		})
	})
	var all []string
	for _, c := range h.conns {
		all = append(all, strings.Join(h.states[c], " "))
	}
	slices.Sort(all)
	slices.Sort(h.said)
	h.note("%s", strings.Join(append(all, h.said...), "\n"))
}

// ends notes that c is at its end, and closes it.
func (h *house) ends(c *client) {
	h.hear(c, "GET")
	_ = c.Close()
}

type key string

// openHouse opens a house of net/http or of this package, in one of the ways to do so.
func openHouse(t *testing.T, theirs bool, way string, handler http.HandlerFunc) *house {
	servertest.CheckDescriptors(t)
	h := &house{scene: &scene{TB: t, site: &site{name: "nethttp"}}, over: make(chan error, 1), states: map[net.Conn][]string{}}
	h.part("")
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	h.secure, h.trust = strings.HasSuffix(way, "TLS"), &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{"http/1.1"}}
	listens := make(chan string, 1)
	base := func(l net.Listener) context.Context {
		listens <- l.Addr().String()
		return context.WithValue(context.Background(), key("base"), "yes")
	}
	of := func(ctx context.Context, c net.Conn) context.Context {
		_, is := ctx.Value(http.ServerContextKey).(*http.Server)
		kind := 0
		if c, ok := c.(syscall.Conn); ok {
			raw, _ := c.SyscallConn()
			_ = raw.Control(func(fd uintptr) { kind, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE) })
		}
		h.say("of %v: base %v, server %t, of type %d", c.LocalAddr().Network(), ctx.Value(key("base")), is, kind)
		return context.WithValue(ctx, key("conn"), c)
	}
	config, lines := &tls.Config{Certificates: []tls.Certificate{cert}}, log.New(&h.log, "", 0)
	if way == "ListenAndServeTLS" { // the certificate is in files
		config.Certificates = nil
	}
	if theirs {
		h.server = &http.Server{Addr: "127.0.0.1:0", Handler: handler, TLSConfig: config, ErrorLog: lines, ConnState: h.state,
			BaseContext: base, ConnContext: of}
	} else {
		h.server = &nethttp.Server{Addr: "127.0.0.1:0", Handler: handler, TLSConfig: config, ErrorLog: lines, ConnState: h.state,
			BaseContext: base, ConnContext: of}
	}
	dir := servertest.ShortDir(t)
	go func() { h.over <- ways[way](h.server, cert, dir) }()
	h.address, _ = await(listens)
	return h
}

// ways are those in which a program serves.
var ways = map[string]func(v server, cert tls.Certificate, dir string) error{
	"ListenAndServe": func(v server, _ tls.Certificate, _ string) error { return v.ListenAndServe() },
	"ListenAndServeTLS": func(v server, cert tls.Certificate, dir string) error {
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
		both := filepath.Join(dir, "pem")
		if err := errors.Join(err, os.WriteFile(both, text, 0o600)); err != nil {
			return err
		}
		return v.ListenAndServeTLS(both, both)
	},
	"Serve": func(v server, _ tls.Certificate, _ string) error { return v.Serve(listen("tcp", "127.0.0.1:0")) },
	"ServeTLS": func(v server, _ tls.Certificate, _ string) error {
		return v.ServeTLS(listen("tcp", "127.0.0.1:0"), "", "")
	},
	"Unix": func(v server, _ tls.Certificate, dir string) error {
		return v.Serve(listen("unix", filepath.Join(dir, "s")))
	},
	"Unix, with a file that stays": func(v server, _ tls.Certificate, dir string) error {
		l := listen("unix", filepath.Join(dir, "s"))
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return v.Serve(l)
	},
}

func listen(network, address string) net.Listener {
	l, err := net.Listen(network, address)
	if err != nil {
		panic(err)
	}
	return l
}

// A program that has an http.Server moves by naming another type: what it sets and calls means the same.
func TestServersMeanTheSame(t *testing.T) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			var scripts [2]string
			for i := range scripts {
				begun, release, told := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
				var h *house
				h = openHouse(t, i == 0, way, func(w http.ResponseWriter, r *http.Request) {
					ctx := r.Context()
					c, is := ctx.Value(key("conn")).(net.Conn)
					h.say("%s: base %v, conn %t", r.URL.Path, ctx.Value(key("base")), is && c.RemoteAddr().String() == r.RemoteAddr)
					switch r.URL.Path {
					case "/last":
						ctx.Value(http.ServerContextKey).(*http.Server).RegisterOnShutdown(func() { told <- struct{}{} })
					case "/wait":
						close(begun)
						await(release)
					case "/take":
						c, _, _ := http.NewResponseController(w).Hijack()
						_ = c.Close()
					}
				})
				to := func(path string) string { return "GET " + path + " HTTP/1.1\nHost: a\n\n" }
				h.RegisterOnShutdown(func() { told <- struct{}{} })
				h.SetKeepAlivesEnabled(false)
				c := h.dial()
				c.send(to("/last"))
				h.hear(c, "GET")
				h.ends(c)
				h.SetKeepAlivesEnabled(true)
				c, idle, taken := h.dial(), h.dial(), h.dial()
				c.send(to("/"))
				h.hear(c, "GET")
				idle.send(to("/idle"))
				h.hear(idle, "GET")
				taken.send(to("/take"))
				h.ends(taken)
				c.send(to("/wait"))
				await(begun)
				ended := make(chan error, 1)
				go func() { ended <- h.Shutdown(context.Background()) }()
				for range 2 {
					_, ok := await(told)
					h.note("told %t", ok)
				}
				err, _ := await(h.over)
				h.note("Serve: %v", err)
				h.ends(idle)
				close(release)
				h.hear(c, "GET")
				h.ends(c)
				err, _ = await(ended)
				h.note("Shutdown: %v", err)
				l := listen("tcp", "127.0.0.1:0")
				h.note("again: %v, ", h.Serve(l))
				_, err = l.Accept()
				h.note("closed: %t", errors.Is(err, net.ErrClosed))
				_, err = os.Stat(h.address)
				h.note("a file: %t", err == nil)
				h.noteStates()
				scripts[i] = script(h.parts)
			}
			require.Equal(t, scripts[0], scripts[1])
		})
	}
}

// Shutdown gives up with its context, and what is left goes on until Close.
func TestShutdownAndClose(t *testing.T) {
	var scripts [2]string
	for i := range scripts {
		begun, release := make(chan struct{}), make(chan struct{})
		h := openHouse(t, i == 0, "Serve", func(_ http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			await(release)
		})
		c, cut := h.dial(), h.dial()
		for _, c := range []*client{c, cut} {
			c.send(get)
			<-begun
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		h.note("Shutdown: %v", h.Shutdown(ctx))
		release <- struct{}{}
		heard := make(chan *client)
		for _, c := range []*client{c, cut} {
			go func() {
				if a, err := c.answer("GET"); err == nil && a.status == 200 {
					heard <- c
				} else {
					heard <- nil
				}
			}()
		}
		first, _ := await(heard)
		h.note("one is answered: %t", first != nil)
		h.note("Close: %v", h.Close())
		second, _ := await(heard)
		h.note("the other one is cut: %t, by Close: %v", second == nil, <-h.over)
		close(release)
		scripts[i] = script(h.parts)
	}
	require.Equal(t, scripts[0], scripts[1])
}

// What a ConnContext can do with a connection.
func TestConnectionsOfAServer(t *testing.T) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			h := openHouse(t, false, way, func(http.ResponseWriter, *http.Request) {})
			c := h.dial()
			c.send(get)
			h.hear(c, "GET")
			h.until("it is known", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.conns) == 1 })
			conn := h.conns[0]
			_, err := conn.Read(nil)
			require.ErrorIs(t, err, errors.ErrUnsupported)
			state, is := conn.(interface{ ConnectionState() tls.ConnectionState })
			require.Equal(t, h.secure, is && state.ConnectionState().NegotiatedProtocol == "http/1.1")
			_, is = conn.(syscall.Conn)
			require.Equal(t, !h.secure, is)
			require.NoError(t, conn.Close())
			_, err = c.answer("GET")
			require.Equal(t, io.EOF, err)
			_ = c.Close()
			require.NoError(t, h.Shutdown(context.Background()))
		})
	}
}

// Handshakes that fail and requests that are refused leave a line in the ErrorLog.
func TestLinesOfAServer(t *testing.T) {
	h := openHouse(t, false, "ServeTLS", nil)
	for _, secure := range []bool{false, true} {
		h.secure = secure
		for range 2 {
			c := h.dial()
			c.send("GET\n\n")
			h.hear(c, "GET")
			h.ends(c)
		}
	}
	require.NoError(t, h.Shutdown(context.Background()))
	text := h.log.take()
	for _, line := range []string{"TLS handshakes have failed", "requests were refused or cut off"} {
		require.Equal(t, 1, strings.Count(text, line), text)
	}
	require.Equal(t, 2, strings.Count(text, `"in a second": 2`), text)
}

func TestListenersThatHaveNoSocket(t *testing.T) {
	servertest.CheckDescriptors(t)
	if packets, err := net.Listen("unixpacket", filepath.Join(servertest.ShortDir(t), "s")); err == nil { // not on all systems
		require.ErrorContains(t, (&nethttp.Server{}).Serve(packets), "not a socket that listens for streams")
	}
	l := listen("tcp", "127.0.0.1:0")
	v := &nethttp.Server{}
	require.ErrorContains(t, v.Serve(struct{ net.Listener }{l}), "cannot serve a struct")
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, v.Close(), "there is nothing to end")
}

// An end that comes before the server has begun, with a client that waits to be accepted.
func TestAServerThatEndsBeforeItHasBegun(t *testing.T) {
	l, v := listen("tcp", "127.0.0.1:0"), &nethttp.Server{ConnState: func(net.Conn, http.ConnState) { t.Error("it was accepted") }}
	v.BaseContext = func(net.Listener) context.Context {
		servertest.Dial(t, l.Addr())
		require.NoError(t, v.Close())
		return context.Background()
	}
	require.Equal(t, http.ErrServerClosed, v.Serve(l))
	other := listen("tcp", "127.0.0.1:0")
	defer other.Close()
	v.Addr = other.Addr().String()
	require.Equal(t, http.ErrServerClosed, v.ListenAndServe(), "it does not even try")
}

func TestTimeoutsOfAServer(t *testing.T) {
	require.Zero(t, nethttp.TimeoutsOf(&nethttp.Server{}))
	require.Equal(t, httpd.Timeouts{Head: 1, Idle: 1, Body: 1}, nethttp.TimeoutsOf(&nethttp.Server{ReadTimeout: 1}))
	require.Equal(t, httpd.Timeouts{Head: 1, Idle: 2, Body: 3, Write: 4},
		nethttp.TimeoutsOf(&nethttp.Server{ReadHeaderTimeout: 1, IdleTimeout: 2, ReadTimeout: 3, WriteTimeout: 4}))
}

// With MaxHeaderBytes heads are as large as in an http.Server by default, and CONNECT comes to the handler.
func TestHeadsOfAServer(t *testing.T) {
	l, v := listen("tcp", "127.0.0.1:0"), &nethttp.Server{Handler: http.NotFoundHandler(), MaxHeaderBytes: http.DefaultMaxHeaderBytes}
	over := make(chan error, 1)
	go func() { over <- v.Serve(l) }()
	c := (&scene{TB: t, site: &site{address: l.Addr().String()}}).dial()
	for _, request := range []string{with(strings.Repeat("A: b\n", 10_000) + "B: " + strings.Repeat("b", 800_000)), "CONNECT / HTTP/1.0\n\n"} {
		c.send(request)
		a, err := c.answer("GET")
		require.NoError(t, err)
		require.Equal(t, 404, a.status)
	}
	_ = c.Close()
	require.NoError(t, v.Close())
	require.Equal(t, http.ErrServerClosed, <-over)
}

// A connection that has ended is the collector's, and its context too.
func TestAServerForgetsConnections(t *testing.T) {
	var freed atomic.Int32
	l, v := listen("tcp", "127.0.0.1:0"), &nethttp.Server{Handler: http.NotFoundHandler()}
	v.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		value := new([64]byte)
		runtime.AddCleanup(value, func(int) { freed.Add(1) }, 0)
		return context.WithValue(ctx, key("value"), value)
	}
	go func() { _ = v.Serve(l) }()
	s := &scene{TB: t, site: &site{address: l.Addr().String()}}
	const n = 10
	for range n {
		c := s.dial()
		c.send(get)
		_, err := c.answer("GET")
		require.NoError(t, err)
		_ = c.Close()
	}
	s.until("they are the collector's", func() bool {
		runtime.GC()
		return freed.Load() >= n-2 // one may be in a register or a pool
	})
	require.NoError(t, v.Shutdown(context.Background()))
}
