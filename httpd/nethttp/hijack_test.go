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

// all of what the client receives up to the end.
func (s *scene) rest(c *client) {
	s.Helper()
	text, err := io.ReadAll(c.in)
	require.True(s, err == nil || gone(err), "%v", err)
	s.note("received %s, reset: %t", digest(text), errors.Is(err, syscall.ECONNRESET))
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
	tcp := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: adapter.Serve}).Serve}
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

func TestHijack(t *testing.T) {
	for _, row := range []struct {
		name    string
		request string
		handler func(s *scene, w http.ResponseWriter, r *http.Request)
		talk    func(s *scene, c *client) // nil: rest
	}{
		{name: "addresses", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			if c, _, ok := s.take(w); ok {
				s.say("%t %t", c.LocalAddr().String() == s.address, c.RemoteAddr().String() == r.RemoteAddr)
				_, is := c.RemoteAddr().(*net.TCPAddr)
				s.say("%t %s", is, c.LocalAddr().Network())
				_ = c.Close()
			}
		}},
		{name: "what has come already, much",
			request: get + strings.Repeat("0123456789", 2000), handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				if c, b, ok := s.take(w); ok {
					s.read(b, 20000)
					_ = c.Close()
				}
			}},
		{name: "behind 101", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Upgrade", "x")
			w.Header().Set("Connection", "Upgrade")
			w.Header()["Date"] = nil
			w.WriteHeader(101)
			if c, _, ok := s.take(w); ok {
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}
		}},
		{name: "behind a status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			if c, _, ok := s.take(w); ok {
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}
		}, talk: func(s *scene, c *client) {
			head, err := c.lines()
			require.NoError(s, err)
			s.note("%q", slices.DeleteFunc(head, func(line string) bool { return strings.HasPrefix(line, "Date: ") }))
			s.rest(c)
		}},
		{name: "errors after it", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
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
		{name: "an unread body in chunks",
			request: framed(50)["chunks"] + "and more", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				if c, b, ok := s.take(w); ok {
					s.read(b, 4+50+2+5+8)
					_ = c.Close()
				}
			}},
		{name: "the body after it", request: framed(5)["length"], handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			if c, _, ok := s.take(w); ok {
				_, err := r.Body.Read(make([]byte, 5))
				s.say("an error: %t", err != nil)
				_ = c.Close()
			}
		}},
		{name: "the writer's buffer", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			if c, b, ok := s.take(w); ok {
				_, _ = b.WriteString("hello")
				_ = b.Flush()
				_, _ = b.WriteString("lost")
				_ = c.Close()
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
				c := s.dial()
				if row.request == "" {
					row.request = get
				}
				c.send(row.request)
				if row.talk != nil {
					row.talk(s, c)
				} else {
					s.rest(c)
				}
			})
		})
	}
}
