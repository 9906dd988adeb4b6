//go:build linux

package program

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// supervised is a notifier on two schedulers that the test steps, by a clock that it moves.
type supervised struct {
	*testing.T
	*notifier
	servertest.Clock
	socket *net.UnixConn // of the supervisor
}

// newSupervised returns a notifier whose supervisor wants a sign of life within 200 ms. A task waits on its first scheduler.
func newSupervised(t *testing.T) *supervised {
	path := filepath.Join(servertest.ShortDir(t), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "200000")
	x := &supervised{T: t, notifier: newNotifier(zap.NewNop()), socket: socket}
	x.Pass(time.Hour)
	g := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped, Clock: &x.Clock, Logger: zap.NewNop()})
	for _, s := range g.Schedulers() {
		require.NoError(t, x.setup(s))
	}
	g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		t.Waker()
		return act.Wait
	}))
	t.Cleanup(func() {
		_ = g.Close()
		x.close()
		_ = socket.Close()
	})
	return x
}

// hears steps these schedulers, and returns what the supervisor has heard since the last call, a word for each message.
func (x *supervised) hears(schedulers ...int) string {
	x.Helper()
	for range 3 {
		for _, i := range schedulers {
			_, err := x.group.Schedulers()[i].Step(100)
			require.NoError(x, err)
		}
	}
	raw, err := x.socket.SyscallConn()
	require.NoError(x, err)
	var all []string
	require.NoError(x, raw.Control(func(fd uintptr) {
		for b := make([]byte, 4096); ; {
			n, _, err := unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
			if err != nil {
				require.ErrorIs(x, err, unix.EAGAIN)
				return
			}
			all = append(all, strings.ReplaceAll(string(b[:n]), "\n", " "))
		}
	}))
	return strings.Join(all, "; ")
}

// after lets time pass first.
func (x *supervised) after(d time.Duration, schedulers ...int) string {
	x.Helper()
	x.Pass(d)
	return x.hears(schedulers...)
}

const fed = "WATCHDOG=1"

// With a turn that does not end there is no sign of life, although the other scheduler gives turns.
func TestTheWatchdogOfTheSupervisorIsFedWhileAllReactorsTurn(t *testing.T) {
	x := newSupervised(t)
	require.Regexp(t, `^READY=1 MAINPID=\d+ STATUS=serving; WATCHDOG=1$`, x.hears(0, 1))
	require.Empty(t, x.after(75*time.Millisecond, 0, 1))
	require.Equal(t, fed, x.after(25*time.Millisecond, 0, 1))
	require.Equal(t, fed, x.after(100*time.Millisecond, 0))
	for range 10 {
		require.Empty(t, x.after(100*time.Millisecond, 0), "the second is held up")
	}
	require.Equal(t, fed, x.after(25*time.Millisecond, 1, 0))
}

// What was broken: during a shutdown the sign of life came once a second, whatever the supervisor had asked for.
func TestTheWatchdogOfTheSupervisorIsFedDuringAnEnd(t *testing.T) {
	x := newSupervised(t)
	x.hears(0, 1)
	x.group.Shutdown(shutdown.Policy{Time: time.Minute})
	require.Regexp(t, `^STOPPING=1 EXTEND_TIMEOUT_USEC=10000000 STATUS=ending: drain, 1m0s`, x.hears(0, 1))
	for range 5 {
		require.Equal(t, fed, x.after(100*time.Millisecond, 0, 1))
	}
	x.notifier.reloading()
	x.notifier.reloaded()
	require.Empty(t, x.hears(0, 1), "one that is ending does not say that it is ready")
}

// An end that is taken back is over for the supervisor, too.
func TestTheSupervisorIsToldOfAWithdrawal(t *testing.T) {
	x := newSupervised(t)
	x.hears(0, 1)
	announced := shutdown.Policy{Time: time.Hour, Announce: time.Minute}
	x.group.Shutdown(announced)
	x.hears(0, 1)
	x.drain(shutdown.Drain{Cut: shutdown.Cut{Order: announced}})
	require.Regexp(t, `^EXTEND_TIMEOUT_USEC=10000000 STATUS=ending for `, x.hears(0, 1))
	require.True(t, x.group.Withdraw(announced))
	require.Regexp(t, `STATUS=serving`, x.after(time.Second, 0, 1))
	require.NotContains(t, x.after(time.Second, 0, 1), "STATUS")
}

// Systemd does not count a reload that has begun before the signal, by its clock.
func TestTheSupervisorIsToldOfAReload(t *testing.T) {
	x := newSupervised(t)
	x.hears(0, 1)
	x.notifier.reloading()
	require.Regexp(t, `^RELOADING=1 MONOTONIC_USEC=\d+ STATUS=reloading$`, x.hears(0, 1))
	x.notifier.reloaded()
	require.Equal(t, "READY=1 STATUS=serving", x.hears(0, 1))
}

// A program that was replaced names the new process, and says nothing more: no sign of life, and nothing of an end by a later
// signal.
func TestTheSupervisorIsToldOfAReplacementOnce(t *testing.T) {
	x := newSupervised(t)
	x.hears(0, 1)
	replaced := handover.Replaced{PID: 77, Terms: shutdown.Policy{Time: time.Hour}}
	x.group.Shutdown(replaced)
	require.Equal(t, "MAINPID=77", x.hears(0, 1))
	x.drain(shutdown.Drain{Cut: shutdown.Cut{Order: replaced}})
	x.group.Shutdown(shutdown.Policy{Time: time.Minute})
	x.notifier.reloading()
	require.Empty(t, x.after(10*time.Second, 0, 1))
}

// The variables of another process do not count, nor does a socket that is not there, as of the host of a container.
func TestASupervisorOfOthers(t *testing.T) {
	t.Setenv("WATCHDOG_PID", "1")
	require.Zero(t, newSupervised(t).watchdog)
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	n := newNotifier(zap.NewNop())
	require.Nil(t, n)
	n.drain(shutdown.Drain{})
}
