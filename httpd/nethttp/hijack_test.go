package nethttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/service"
)

// take takes the connection over.
func (s *scene) take(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, bool) {
	c, b, err := w.(http.Hijacker).Hijack()
	if err != nil {
		s.say("Hijack: %v", named(err))
	}
	return c, b, err == nil
}

// rest is all of what the client receives up to the end. The fields of a head are sorted.
func (s *scene) rest(c *client) {
	s.Helper()
	text, err := io.ReadAll(c.in)
	require.True(s, err == nil || gone(err), "%v", err)
	head, rest, _ := strings.Cut(string(text), "\r\n\r\n")
	lines := strings.Split(drawn.ReplaceAllString(head, "${1}drawn"), "\r\n")
	slices.Sort(lines[1:])
	s.note("received %q %s, reset: %t", lines, digest([]byte(rest)), errors.Is(err, syscall.ECONNRESET))
}

// A deadline of the connection before Hijack is taken back by it.
func TestDeadlinesOfAHijackedConnection(t *testing.T) {
	compare(t, func(s *scene) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(past)
			_ = control.SetWriteDeadline(past)
			c, b, ok := s.take(w)
			if !ok {
				return
			}
			defer c.Close()
			line, err := b.ReadString('\n')
			s.say("%q %v", line, named(err))
			s.say("%v", c.SetReadDeadline(past))
			_, err = b.ReadString('\n')
			s.say("%v", named(err))
			s.say("%v", c.SetDeadline(past))
			_, err = c.Write([]byte("hello"))
			s.say("%v", named(err))
		})
		c := s.dial()
		c.send(get)
		_, _ = io.WriteString(c.Conn, "line\n")
		s.rest(c)
	})
}

// pausing is an executor whose functions say that they wait for the task.
type pausing struct {
	once  sync.Once
	waits chan struct{}
}

func (x *pausing) Execute(f func()) { go f() }

func (x *pausing) Wait(until func() bool) {
	x.once.Do(func() { close(x.waits) })
	for !until() {
		time.Sleep(time.Millisecond)
	}
}

// slow is a clock whose first time of day, for the Date of a head, says that it was asked for, and waits.
type slow struct {
	begun time.Time
	once  sync.Once
	asked chan struct{}
	until <-chan struct{}
}

func (x *slow) Monotonic() time.Duration { return time.Since(x.begun) }

func (x *slow) Wall() time.Time {
	x.once.Do(func() {
		close(x.asked)
		_, _ = await(x.until)
	})
	return time.Now()
}

// The handler writes and hijacks while a turn begins the answer: that turn has found nothing else to send.
func TestHijackLosesNothingThatIsWrittenWhileTheHeadIsMade(t *testing.T) {
	executor := &pausing{waits: make(chan struct{})}
	clock := &slow{begun: time.Now(), asked: make(chan struct{}), until: executor.waits}
	adapter := &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = await(clock.asked)
		_, _ = io.WriteString(w, "hello")
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_, _ = io.WriteString(c, "world")
			_ = c.Close()
		}
	})}
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: adapter.Serve}).Serve}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- act.Run(ctx, act.Config{Schedulers: 1, Executor: executor, Clock: clock, Logger: zap.NewNop()}, tcp.Setup,
			func(*act.Scheduler) error { close(up); return nil })
	}()
	_, _ = await(up)
	c := (&scene{TB: t, site: &site{address: tcp.Addr().String()}}).dial()
	c.send(get)
	_, err := c.lines()
	require.NoError(t, err)
	text, err := io.ReadAll(c.in)
	require.NoError(t, err)
	require.Equal(t, raw("5\nhello\n")+"world", string(text))
	_ = c.Close()
	cancel()
	require.NoError(t, <-over)
}

// takes returns a handler that does some steps, takes the connection over, and closes it when f returns.
func takes(steps string, f func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter)) handler {
	return func(s *scene, w http.ResponseWriter, r *http.Request) {
		does(steps)(s, w, r)
		if c, b, ok := s.take(w); ok {
			defer c.Close()
			f(s, r, c, b)
		}
	}
}

// hijacks are scenes of handlers that take the connection over.
func hijacks() []row {
	hello := func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) { _, _ = io.WriteString(c, "hello") }
	kind := func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) { s.say("%T", c) }
	return []row{
		{name: "type", raw: true, handler: takes("", kind), differs: []but{{"", "*net.TCPConn", "*listener.blocking", "neither a *net.TCPConn"}}},
		{name: "type with TLS", raw: true, secure: true, handler: takes("", kind),
			differs: []but{{"", "*tls.Conn", "*listener.blocking", "nor a *tls.Conn"}}},
		{name: "addresses", raw: true, handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) {
			s.say("%t %t", c.LocalAddr().String() == s.address, c.RemoteAddr().String() == r.RemoteAddr)
			s.say("%T %s", c.RemoteAddr(), c.LocalAddr().Network())
		})},
		{name: "what has come already, much", raw: true, request: get + strings.Repeat("0123456789", 2000),
			handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) { s.read(b, 20000) })},
		{name: "what has come already is Buffered", raw: true, request: get + "hello",
			handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) {
				s.say("%d", b.Reader.Buffered())
				s.read(b, 5)
			}), differs: []but{{"", "handler: 5\n", "handler: 0\n", "are not Buffered after Hijack"}}},
		{name: "behind 101", raw: true, handler: takes("set Upgrade: x; set Connection: Upgrade; status 101", hello),
			differs: []but{{"", ` "Date: drawn"`, "", "The head of 101 has no Date"}}},
		{name: "behind a status", raw: true, handler: takes("status 404", hello)},
		{name: "errors after it", raw: true, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			c, _, ok := s.take(w)
			if !ok {
				return
			}
			defer c.Close()
			for _, text := range []string{"hello", ""} {
				n, err := io.WriteString(w, text)
				s.say("%d %v", n, named(err))
			}
			w.WriteHeader(404)
			w.Header().Set("A", "b")
			_, _, err := w.(http.Hijacker).Hijack()
			s.say("%v", named(err))
		}},
		{name: "Inline", request: get, handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}), inline: []but{{"", "Content-Length: 0\nclosed\n", "Date: drawn\nlasts\nhandler: Hijack: ErrNotSupported\n", unsupported}}},
		{name: "an unread body in chunks", raw: true, request: framed(50)["chunks"] + "and more",
			handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) { s.read(b, 4+50+2+5+8) })},
		{name: "the body after it", raw: true, request: framed(5)["length"],
			handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) {
				_, err := r.Body.Read(make([]byte, 5))
				s.say("an error: %t", err != nil)
			})},
		{name: "the writer's buffer", raw: true, handler: takes("", func(s *scene, r *http.Request, c net.Conn, b *bufio.ReadWriter) {
			_, _ = b.WriteString("hello")
			_ = b.Flush()
			_, _ = b.WriteString("lost")
		})},
	}
}
