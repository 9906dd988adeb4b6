package coro_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest/observer"
)

var networks = []string{"tcp", "unix"}

// server is a service that runs a coroutine for each connection.
type server struct {
	*servertest.Running
	socket *service.Listener
}

// serve starts a server with two schedulers.
func serve(t testing.TB, body func(*coro.Conn) error) *server {
	t.Helper()
	x := &service.Listener{Address: "127.0.0.1:0", Handler: coro.Serve(body)}
	return &server{servertest.Start(t, act.Config{Schedulers: 2}, x.Setup), x}
}

// address returns an address for coro.Dial.
func (v *server) address() string { return v.socket.Addr().String() }

func (v *server) dial() net.Conn { return servertest.Dial(v.T, v.socket.Addr()) }

// failures returns the reported tasks, by their errors.
func (v *server) failures() []string { return failures(v.Logs.FilterMessage("a task failed").All()) }

// drain requires that all tasks end, none has failed, and no coroutine is left.
func (v *server) drain() {
	v.T.Helper()
	v.Group.Shutdown(servertest.Drain)
	require.NoError(v.T, v.End())
	require.Empty(v.T, v.failures())
	require.Zero(v.T, v.socket.Conns())
}

// steppedScheduler is newScheduler for a test that steps on its own thread.
func steppedScheduler(t *testing.T) (*act.Scheduler, *observer.ObservedLogs) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread) // after the scheduler's Close
	return newScheduler(t, act.Config{})
}

// bench is a Stepped whose scheduler is stepped on a thread of the test's own, as coroutines want it.
func bench(t *testing.T) *servertest.Stepped { return timed(t, nil) }

// timed is bench with a clock.
func timed(t *testing.T, clock act.Clock) *servertest.Stepped {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	l := servertest.New(t, act.Config{Clock: clock})
	t.Cleanup(func() {
		for _, e := range l.Logs.FilterMessage("a task failed").All() {
			t.Errorf("a task failed: %v", e.ContextMap())
		}
	})
	return l
}

// played is a body that a bench runs. It makes its requirements of a panicking.
type played struct {
	l    *servertest.Stepped
	over bool
	err  error
}

// play spawns a body.
func play(l *servertest.Stepped, body func(co *coro.Co) error) *played {
	p := &played{l: l}
	l.S.Spawn(p.action(body))
	return p
}

// action returns the body as an action that records its end.
func (p *played) action(body func(co *coro.Co) error) act.Action {
	return coro.New(func(co *coro.Co) error {
		p.err = errors.New("a panic or Goexit")
		defer func() {
			p.over = true
			if v := recover(); v != nil {
				p.err = fmt.Errorf("panic: %v", v)
			}
		}()
		p.err = body(co)
		return nil
	})
}

// end steps until the body has ended and returns its error.
func (p *played) end() error {
	p.l.T.Helper()
	p.l.Until("the body ends", func() bool { return p.over })
	return p.err
}

// converse runs a body on one end of a connection; the test has the other.
func converse(l *servertest.Stepped, network string, limits listener.Limits, body func(c *coro.Conn) error) (*played, net.Conn) {
	under, peer := l.Conn(network, limits)
	return play(l, func(co *coro.Co) error {
		c := co.Conn(under)
		defer func() { _ = c.Close() }()
		return body(c)
	}), peer
}

// both runs two bodies side by side in the task of co.
func both(co *coro.Co, a, b func(co *coro.Co) error) error {
	return co.Do(act.All(coro.New(a), coro.New(b)))
}

// noise returns random bytes.
func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p)
	return p
}

// echoed sends data to an echo server, closes its side, requires the same bytes back, and closes.
func echoed(c net.Conn, data []byte) error {
	defer func() { _ = c.Close() }()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		sent <- errors.Join(err, c.(interface{ CloseWrite() error }).CloseWrite())
	}()
	got, err := io.ReadAll(c)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(data, got) {
		return fmt.Errorf("%d bytes came back as %d others", len(data), len(got))
	}
	return nil
}

// trace records a history as a string.
type trace struct{ strings.Builder }

func (x *trace) add(format string, args ...any) {
	if x.Len() > 0 {
		x.WriteString(" ")
	}
	fmt.Fprintf(x, format, args...)
}

func failures(logged []observer.LoggedEntry) (errs []string) {
	for _, e := range logged {
		errs = append(errs, fmt.Sprint(e.ContextMap()["error"]))
	}
	return errs
}

// quiet is a Stream without a socket: one message arrives, is answered, and then nothing happens.
type quiet struct {
	monitor.Stream
	in   []byte
	wake act.Waker
}

func (q *quiet) Lend(int) ([]byte, error) {
	if in := q.in; in != nil {
		q.in = nil
		return in, nil
	}
	return nil, monitor.ErrWouldBlock
}
func (q *quiet) Send(head, p []byte, _ int) (int, error) { return len(p), nil }
func (q *quiet) Queued() (int, error)                    { return 0, nil }
func (q *quiet) AwaitInput(w act.Waker)                  { q.wake = w }
func (q *quiet) PeerAddr() net.Addr                      { return nil }
func (q *quiet) Abort()                                  {}

// crashing, in the environment, has the test binary crash instead of running tests.
const crashing = "DAIMON_CORO_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashing) != "" {
		s := act.New(act.Config{Crash: true})
		s.Spawn(coro.New(func(co *coro.Co) error {
			_ = co.Yield()
			boom()
			return nil
		}))
		_ = s.Run()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestUnderCrashAPanicOfABodyEndsTheProcessAndShowsWhere(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashing+"=1")
	said, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "panic: boom")
	require.Contains(t, string(said), "coro_test.boom")
}
