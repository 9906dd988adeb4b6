package files_test

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// site is a server under test.
type site struct {
	t    *testing.T
	addr string
	logs *observer.ObservedLogs
	stop func() error
}

// begin serves with h until stop is called or the test ends.
func begin(t *testing.T, h httpd.Handler) *site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: h}).Serve}
	core, logs := observer.New(zap.WarnLevel)
	up, over := make(chan struct{}), make(chan error, 1)
	cfg := act.Config{Schedulers: 1, Logger: zap.New(core), Shutdown: shutdown.Policy{Time: 100 * time.Millisecond, Drop: true}}
	go func() {
		over <- act.Run(ctx, cfg, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	<-up
	s := &site{t, tcp.Addr().String(), logs, nil}
	s.stop = func() error {
		if ctx.Err() != nil {
			return nil
		}
		cancel()
		return <-over
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// serve serves an fs.FS below "/f/".
func serve(t *testing.T, fsys fs.FS) *site {
	t.Helper()
	var m httpd.Mux
	m.Handle("/f/{path...}", (&files.Server{FS: fsys}).Serve)
	return begin(t, m.Serve)
}

// reply is a response with all of its content, or as much as there was.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

// client is one connection.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (s *site) dial() *client {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(s.t, err)
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(servertest.Timeout)))
	require.NoError(s.t, conn.(*net.TCPConn).SetReadBuffer(64<<10))
	s.t.Cleanup(func() { _ = conn.Close() })
	return &client{s.t, conn, bufio.NewReader(conn)}
}

// say sends a request as it is written: "GET /f/a" and lines of fields.
func (c *client) say(request string, fields ...string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, request+" HTTP/1.1\r\nHost: a\r\n"+strings.Join(append(fields, "", ""), "\r\n"))
	require.NoError(c.t, err)
}

// hear reads the response to a request with that method.
func (c *client) hear(method string) reply {
	c.t.Helper()
	res, err := http.ReadResponse(c.in, &http.Request{Method: method})
	require.NoError(c.t, err)
	body, err := io.ReadAll(res.Body)
	return reply{res, string(body), err}
}

func (c *client) ask(request string, fields ...string) reply {
	c.t.Helper()
	c.say(request, fields...)
	method, _, _ := strings.Cut(request, " ")
	r := c.hear(method)
	require.NoError(c.t, r.err, "%s %q", request, fields)
	return r
}

// ask is one request on a connection of its own.
func (s *site) ask(request string, fields ...string) reply {
	s.t.Helper()
	c := s.dial()
	defer func() { _ = c.conn.Close() }()
	return c.ask(request, fields...)
}

func (s *site) get(path string, fields ...string) reply {
	s.t.Helper()
	return s.ask("GET "+path, fields...)
}

// quiet asserts that nothing was logged.
func (s *site) quiet() {
	s.t.Helper()
	require.Empty(s.t, s.logs.All())
}

// complains waits until the server logs an error, and returns it.
func (s *site) complains() string {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.logs.Len() > 0 }, servertest.Timeout, time.Millisecond)
	e := s.logs.All()[0]
	for _, f := range e.Context {
		if err, is := f.Interface.(error); is {
			return err.Error()
		}
	}
	return e.Message
}
