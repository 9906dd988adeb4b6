package service_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// suspend stops a server and keeps everything.
var suspend = shutdown.Now{Terms: shutdown.Suspend}

// A world is a Group that runs while the test goes on.
type world struct {
	t     *testing.T
	group *act.Group
	logs  *observer.ObservedLogs
	ended chan error // of the present Run
	over  bool
}

// begin runs setup and returns when the Group takes turns. Descriptors are counted: at the end of the
// test there must be those that there were.
func begin(t *testing.T, cfg act.Config, setup ...func(*act.Scheduler) error) *world {
	t.Helper()
	balanced(t)
	core, logs := observer.New(zapcore.DebugLevel)
	cfg.Logger = zap.New(core)
	w := &world{t: t, group: act.NewGroup(cfg), logs: logs, over: true}
	t.Cleanup(w.close)
	w.run(setup...)
	return w
}

// run runs the Group (again) and returns when it takes turns.
func (w *world) run(setup ...func(*act.Scheduler) error) {
	w.t.Helper()
	begun := make(chan struct{}, len(w.group.Schedulers()))
	setup = append(slices.Clone(setup), func(s *act.Scheduler) error {
		s.Post(func(*act.Scheduler) { begun <- struct{}{} })
		return nil
	})
	w.ended, w.over = make(chan error, 1), false
	go func() { w.ended <- w.group.Run(context.Background(), setup...) }()
	for range w.group.Schedulers() {
		select {
		case <-begun:
		case err := <-w.ended:
			w.over = true
			require.FailNow(w.t, "the Group did not begin", "%v", err)
		case <-time.After(servertest.Timeout):
			require.FailNow(w.t, "the Group does not begin")
		}
	}
}

// order gives o and returns what Run does.
func (w *world) order(o shutdown.Order) error {
	w.t.Helper()
	w.group.Shutdown(o)
	return w.end()
}

// end waits for the end of Run.
func (w *world) end() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.over = true
		return err
	case <-time.After(servertest.Timeout):
		require.FailNow(w.t, "Run does not end")
		return nil
	}
}

func (w *world) close() {
	if !w.over {
		w.group.Shutdown(servertest.Cut)
		<-w.ended
	}
	_ = w.group.Close() // a Cut is the business of the tests that cut
}

// on calls f on the scheduler's thread and waits for it.
func (w *world) on(index int, f func(*act.Scheduler)) {
	w.t.Helper()
	done := make(chan struct{})
	require.True(w.t, w.group.Schedulers()[index].Post(func(s *act.Scheduler) {
		defer close(done)
		f(s)
	}))
	within(w.t, done, "a posted function")
}

// failures are the tasks that were reported, by what they failed with.
func (w *world) failures() (errors []string) {
	for _, entry := range w.logs.FilterMessage("a task failed").All() {
		text, _ := entry.ContextMap()["error"].(string)
		errors = append(errors, text)
	}
	return errors
}

// within waits for done to be closed or sent to.
func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(servertest.Timeout):
		require.FailNow(t, "it did not happen: "+what)
	}
}

// eventually waits for f to be true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, servertest.Timeout, 2*time.Millisecond, what)
}

// descriptors lists those that are open, of the first 1024.
func descriptors() (open []int) {
	for fd := range 1024 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			open = append(open, fd)
		}
	}
	return open
}

// balanced fails the test if it does not leave the descriptors as it found them. It comes first in a
// test, so that it judges last.
func balanced(t *testing.T) {
	before := descriptors()
	t.Cleanup(func() { require.Equal(t, before, descriptors(), "descriptors after and before") })
}

// setUp is the error of a Group whose set-up fails, and leaves nothing.
func setUp(t *testing.T, schedulers int, setup ...func(*act.Scheduler) error) error {
	t.Helper()
	before := descriptors()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one that succeeds does not stay
	err := act.Run(ctx, act.Config{Schedulers: schedulers, Logger: zap.NewNop()}, setup...)
	require.Equal(t, before, descriptors(), "descriptors after and before")
	return err
}

// dial connects for the length of the test.
func dial(t *testing.T, a net.Addr) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(a.Network(), a.String(), servertest.Timeout)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hearReset requires the connection to have been aborted.
func hearReset(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.ReadAll(c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// echo sends back what it receives.
func echo(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			return listener.Next(t, err)
		}
		n, err := c.Write(in)
		c.Discard(n)
		return listener.Next(t, err)
	})
}

// answers is a handler that says one thing and is done.
func answers(text string) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			_, err := c.WriteString(text)
			if err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})
	}
}

// shares counts what each scheduler got.
type shares []atomic.Int64

func newShares(n int) shares { return make(shares, n) }

// of wraps a handler.
func (x shares) of(handler func(*listener.Conn) act.Action) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		x[c.Scheduler().Index()].Add(1)
		return handler(c)
	}
}

func (x shares) sum() (n int64) {
	for i := range x {
		n += x[i].Load()
	}
	return n
}

// sentence requires err to be one sentence that names all of these.
func sentence(t *testing.T, err error, named ...string) {
	t.Helper()
	require.Error(t, err)
	for _, name := range append(named, "cannot listen on ") {
		require.Contains(t, err.Error(), name)
	}
	require.NotContains(t, strings.TrimSpace(err.Error()), "\n")
}
