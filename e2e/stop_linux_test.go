package e2e

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

// refuses waits until connections are refused: the first sign from outside of an order.
func (s *server) refuses(t *testing.T) {
	t.Helper()
	exectest.Eventually(t, prompt, "new clients refused", func() bool {
		c, err := net.Dial(s.network, s.address)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
	})
}

// lasts wants the server to end in order between limit and promptly after it.
func (s *server) lasts(t *testing.T, since time.Time, limit time.Duration) {
	t.Helper()
	require.Zero(t, s.ExitWithin(t, limit+prompt))
	require.GreaterOrEqual(t, time.Since(since), limit, "cut before the limit")
}

func TestStop(t *testing.T) {
	plainly(t)
	t.Parallel()
	rows := []struct {
		name  string
		flags []string
		test  func(t *testing.T, s *server)
	}{
		{"without clients it ends at once on SIGTERM", nil, stopsAtOnce(unix.SIGTERM)},
		{"without clients it ends at once on SIGINT", nil, stopsAtOnce(unix.SIGINT)},
		{"an active client goes on, new ones are refused", nil, stopsAround},
		{"several active clients leave at different times", nil, stopsAfterTheLast},
		{"idle clients are cut at the limit and counted", []string{"-drain", "300ms"}, stopsCutting},
		{"without a drain clients are cut at once", []string{"-drain", "0"}, stopsWithoutDrain},
		{"without a drain and without clients it ends in order", []string{"-drain", "0"}, stopsAtOnce(unix.SIGTERM)},
		{"a client that never reads holds it to the limit", []string{"-drain", "500ms"}, stopsStuck},
		{"what came before the signal is echoed whole", nil, stopsWhole},
		{"a second SIGTERM cuts what is left", nil, stopsTwice(unix.SIGTERM, unix.SIGTERM)},
		{"a second SIGINT cuts what is left", nil, stopsTwice(unix.SIGINT, unix.SIGINT)},
		{"SIGINT after SIGTERM cuts what is left", nil, stopsTwice(unix.SIGTERM, unix.SIGINT)},
		{"clients that wait for a place do not hold it", []string{"-max-conns", "1"}, stopsBeforeWaiters},
	}
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) { row.test(t, e.start(t, idle.with(row.flags...)...)) })
		}
	})
}

func stopsAtOnce(sig syscall.Signal) func(*testing.T, *server) {
	return func(t *testing.T, s *server) {
		s.Signal(t, sig)
		require.Zero(t, s.ExitWithin(t, prompt))
		require.Contains(t, s.Said(), "ended in order")
	}
}

func stopsAround(t *testing.T, s *server) {
	c := s.dialed(t, 1)[0]
	s.Signal(t, unix.SIGTERM)
	s.refuses(t)
	require.NoError(t, ping(c, "still here"))
	require.False(t, s.Gone())
	require.NoError(t, leave(c))
	require.Zero(t, s.ExitWithin(t, prompt))
}

func stopsAfterTheLast(t *testing.T, s *server) {
	clients := s.dialed(t, 6)
	s.Signal(t, unix.SIGINT)
	s.refuses(t)
	for i, c := range clients {
		require.False(t, s.Gone())
		require.NoError(t, ping(c, "still here"))
		if i%2 == 0 {
			reset(c)
		} else {
			require.NoError(t, leave(c))
		}
	}
	require.Zero(t, s.ExitWithin(t, prompt))
}

func stopsCutting(t *testing.T, s *server) {
	clients := s.dialed(t, 7)
	before := time.Now()
	s.Signal(t, unix.SIGTERM)
	s.lasts(t, before, 300*time.Millisecond)
	require.Regexp(t, `\bcut at the drain limit of 300ms\b.* 7 tasks\b`, s.Said())
	for _, c := range clients {
		_, err := io.ReadAll(c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
	}
}

func stopsWithoutDrain(t *testing.T, s *server) {
	s.dialed(t, 1)
	s.Signal(t, unix.SIGTERM)
	require.Zero(t, s.ExitWithin(t, prompt))
	require.Regexp(t, `\bcut without a drain\b.* 1 task[^s]`, s.Said())
	require.NotContains(t, s.Said(), "limit")
}

func stopsStuck(t *testing.T, s *server) {
	stuck(t, s.greedy(t))
	before := time.Now()
	s.Signal(t, unix.SIGTERM)
	s.lasts(t, before, 500*time.Millisecond)
}

// stopsWhole leaves the half-close to the time after the signal, and the reading to the time after that.
func stopsWhole(t *testing.T, s *server) {
	c, data := s.dialed(t, 1)[0], content(1, 64<<10)
	_, err := c.Write(data)
	require.NoError(t, err)
	s.Signal(t, unix.SIGTERM)
	s.refuses(t)
	require.NoError(t, c.CloseWrite())
	heard, err := io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, same(data, heard))
	require.Zero(t, s.ExitWithin(t, prompt))
}

func stopsTwice(first, second syscall.Signal) func(*testing.T, *server) {
	return func(t *testing.T, s *server) {
		s.dialed(t, 1)
		s.Signal(t, first)
		exectest.Eventually(t, patience, "the first order", func() bool { return strings.Contains(s.Said(), "ending") })
		require.False(t, s.Gone())
		s.Signal(t, second)
		require.Zero(t, s.ExitWithin(t, prompt))
		require.Contains(t, s.Said(), "cut without a drain")
		require.Contains(t, s.Said(), "dropped 1 task")
	}
}

func stopsBeforeWaiters(t *testing.T, s *server) {
	served := s.dialed(t, 1)[0]
	var waiting []client
	for range 5 {
		waiting = append(waiting, s.dial(t))
	}
	s.Signal(t, unix.SIGTERM)
	s.refuses(t)
	require.NoError(t, ping(served, "still here"))
	require.NoError(t, leave(served))
	require.Zero(t, s.ExitWithin(t, prompt))
	for _, c := range waiting {
		_, err := io.ReadAll(c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
	}
}

func TestStopUnderLoad(t *testing.T) {
	plainly(t)
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Run("clients that finish lose nothing", func(t *testing.T) {
			s := e.start(t, idle...)
			all := s.talkers(t, 100)
			s.Signal(t, unix.SIGTERM)
			s.refuses(t)
			require.NoError(t, finish(all))
			require.Zero(t, s.ExitWithin(t, prompt))
		})
		t.Run("clients that go on are cut, and no byte is wrong", func(t *testing.T) {
			s := e.start(t, idle.with("-drain", "300ms")...)
			all := s.talkers(t, 100)
			before := time.Now()
			s.Signal(t, unix.SIGTERM)
			s.lasts(t, before, 300*time.Millisecond)
			for _, k := range all {
				require.NotErrorIs(t, <-k.done, errGarbled)
				require.LessOrEqual(t, k.heard.Load(), k.sent)
			}
		})
	})
}

func TestStopWithDescriptorsExhausted(t *testing.T) {
	plainly(t)
	t.Parallel()
	underEachIdle(t, func(t *testing.T, idle idle) {
		t.Parallel()
		s := launch{echo: actions, under: limited(64), flags: idle.with("-drain", "300ms")}.start(t)
		_, waiting := s.crowd(t, 100)
		require.NotEmpty(t, waiting)
		before := time.Now()
		s.Signal(t, unix.SIGTERM)
		s.lasts(t, before, 300*time.Millisecond)
	})
}

// Each start finds what the one before has left. Not beside other tests, whose clients could be given
// the port between an end and the next start.
func TestStartsAndStopsLeaveNothing(t *testing.T) {
	plainly(t)
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		dir, tcp := folder(t), e.start(t, idle...)
		tcp.Stop(t)
		for _, addr := range []string{"unix:" + dir + "/echo.sock", tcp.address} {
			t.Run(addr, func(t *testing.T) {
				for range tier.Choose(0, 4, 20) {
					s := launch{echo: e, addr: addr, flags: idle}.start(t)
					require.NoError(t, whole(s.dial(t), content(1, 1000), 100))
					s.Stop(t)
					left, err := os.ReadDir(dir)
					require.NoError(t, err)
					require.Empty(t, left)
				}
			})
		}
	})
}

// What a service manager that is restarted leaves of the standard streams. A write to a broken pipe on
// descriptor 1 or 2 kills a Go program that does not see to SIGPIPE (os/signal, "SIGPIPE").
func TestBrokenStandardStreams(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		path := folder(t) + "/echo.sock" // no log shows a port
		s := launch{
			echo:   e,
			addr:   "unix:" + path,
			flags:  idle.with("-drain", "300ms"),
			under:  []string{"sh", "-c", `exec "$@" <&-`, "sh"},
			change: breakPipes(t),
		}.run(t)
		s.at("unix:" + path)
		exectest.Eventually(t, patience, "the server to listen", func() bool { return s.Gone() || s.answers() })
		leaves, stays := s.dial(t), s.dial(t)
		require.NoError(t, whole(leaves, content(1, 1<<20), 1<<10))
		require.NoError(t, ping(stays, "to be cut, which is worth a line in the log"))
		before := time.Now()
		s.Signal(t, unix.SIGTERM)
		s.lasts(t, before, 300*time.Millisecond)
	})
}

func (s *server) answers() bool {
	c, err := net.Dial(s.network, s.address)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// breakPipes makes standard output and standard error a pipe without a reader.
func breakPipes(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	t.Cleanup(func() { _ = write.Close() })
	return func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = write, write }
}
