package service_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// suspend stops a server and keeps everything.
var suspend = shutdown.Policy{Kind: shutdown.Suspend}

// world is a Group that runs while the test goes on.
type world struct{ *servertest.Running }

// begin runs setup and returns when the Group takes turns.
func begin(t *testing.T, cfg act.Config, setup ...func(*act.Scheduler) error) *world {
	t.Helper()
	return &world{servertest.Start(t, cfg, setup...)}
}

// order gives o and returns what Run does.
func (w *world) order(o shutdown.Order) error {
	w.T.Helper()
	w.Group.Shutdown(o)
	return w.End()
}

// failures are the tasks that were reported, by what they failed with.
func (w *world) failures() (errors []string) {
	for _, entry := range w.Logs.FilterMessage("a task failed").All() {
		text, _ := entry.ContextMap()["error"].(string)
		errors = append(errors, text)
	}
	return errors
}

// eventually waits for f to be true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, servertest.Timeout, 2*time.Millisecond, what)
}

// setUp is the error of a Group whose set-up fails, and leaves nothing.
func setUp(t *testing.T, schedulers int, setup ...func(*act.Scheduler) error) error {
	t.Helper()
	servertest.CheckDescriptors(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one that succeeds does not stay
	return act.Run(ctx, act.Config{Schedulers: schedulers, Logger: zap.NewNop()}, setup...)
}

// hearReset requires the connection to have been aborted.
func hearReset(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.ReadAll(c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
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
