//go:build linux

package program_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/upgrade"
)

const stuckFor = 2 * time.Second

func init() {
	mains["stuck"] = func() {
		program.Serve("127.0.0.1:0", func(c *listener.Conn) act.Action { // the second line holds up the scheduler
			lines := 0
			return act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(1)
				if err != nil {
					return c.Next(t, err)
				}
				if lines++; lines == 2 {
					time.Sleep(stuckFor)
				}
				n, err := c.Write(in)
				c.Discard(n)
				return c.Next(t, err)
			})
		})
	}
}

func init() {
	mains["reloading"] = func() {
		server := program.Server{Addr: "127.0.0.1:0"}
		lines := bufio.NewReader(os.Stdin)
		server.Reload = func() error { // takes as long as the test wants
			line, err := lines.ReadString('\n')
			if line != "good\n" {
				err = errors.New("nobody may read it")
			}
			return err
		}
		server.Parse()
		server.Run(server.Listen(server.Addr, echo))
	}
}

func init() {
	mains["replaceable"] = func() {
		server := program.Server{Addr: "127.0.0.1:0", Upgrade: &upgrade.Upgrade{Program: os.Getenv("DAIMON_NEW_PROGRAM")}}
		server.Parse()
		server.Run(server.Listen(server.Addr, echo))
	}
}

// withdrawing takes back the end of a program on a signal.
type withdrawing struct{ group *act.Group }

func (x *withdrawing) Setup(s *act.Scheduler) error {
	x.group = s.Group()
	return monitor.OnSignal(x, syscall.SIGWINCH)(s)
}

func (x *withdrawing) Signal(os.Signal) { x.group.Withdraw(x.group.Ending()) }

func init() {
	mains["withdrawing"] = func() {
		server := program.Server{Addr: "127.0.0.1:0"}
		server.Parse()
		server.Run(&withdrawing{}, server.Listen(server.Addr, echo))
	}
}

// supervisor is systemd as far as sd_notify(3) is concerned.
type supervisor struct {
	*testing.T
	conn *net.UnixConn
}

func newSupervisor(t *testing.T) supervisor {
	path := filepath.Join(servertest.ShortDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return supervisor{t, conn}
}

// hear returns the next message.
func (s supervisor) hear() string {
	s.Helper()
	b := make([]byte, 4096)
	require.NoError(s, s.conn.SetReadDeadline(time.Now().Add(servertest.Timeout)))
	n, err := s.conn.Read(b)
	require.NoError(s, err)
	return string(b[:n])
}

func TestTheSupervisorIsTold(t *testing.T) {
	s := newSupervisor(t)
	r := start(t, "echo", "-reactors", "2")
	c := talk(t, r.listens(t))
	require.Equal(t, "READY=1\nMAINPID="+strconv.Itoa(r.Process.Pid)+"\nSTATUS=serving", s.hear())
	r.signal(t, syscall.SIGTERM)
	first, second := s.hear(), s.hear()
	const more = "EXTEND_TIMEOUT_USEC=10000000\nSTATUS=ending"
	require.Equal(t, "STOPPING=1\n"+more+": drain, 30s, then drop", first)
	require.Regexp(t, more+` for \d(\.\d)?s, finishing, for 2\ds more at most: 1 task .*, peer `+c.LocalAddr().String()+", still for", second)
	require.NoError(t, c.Close())
	require.Zero(t, r.exit(t))
}

// An end that is taken back is over for the supervisor, too.
func TestTheSupervisorIsToldOfAWithdrawal(t *testing.T) {
	s := newSupervisor(t)
	r := start(t, "withdrawing", "-announce", "20s", "-drain", "1m")
	r.listens(t)
	require.Regexp(t, "^READY=1", s.hear())
	r.signal(t, syscall.SIGTERM)
	require.Regexp(t, `STATUS=ending for \d(\.\d)?s, announced`, s.hear())
	r.signal(t, syscall.SIGWINCH)
	said := s.hear()
	for strings.Contains(said, ", announced") { // on its way
		said = s.hear()
	}
	require.Equal(t, "STATUS=serving", said)
	r.signal(t, syscall.SIGKILL)
}

const ready = "READY=1\nSTATUS=serving"

// reloads sends SIGHUP, and returns when the supervisor has heard that a reload begins: after the signal, by systemd's clock.
func (s supervisor) reloads(r *running) {
	s.Helper()
	var before unix.Timespec
	require.NoError(s, unix.ClockGettime(unix.CLOCK_MONOTONIC, &before))
	r.signal(s.T, syscall.SIGHUP)
	said := s.hear()
	for said == "WATCHDOG=1" { // on its way
		said = s.hear()
	}
	var at int64
	n, err := fmt.Sscanf(said, "RELOADING=1\nMONOTONIC_USEC=%d\nSTATUS=reloading", &at)
	require.NoError(s, err)
	require.Equal(s, 1, n)
	require.GreaterOrEqual(s, at, before.Nano()/1000)
	require.Less(s, at, before.Nano()/1000+servertest.Timeout.Microseconds())
}

func TestTheSupervisorIsToldOfAReload(t *testing.T) {
	s := newSupervisor(t)
	t.Setenv("WATCHDOG_USEC", "200000")
	r := prepare(t, "reloading")
	in, err := r.StdinPipe()
	require.NoError(t, err)
	r.start(t)
	addr := r.listens(t)
	require.True(t, strings.HasPrefix(s.hear(), "READY=1"))
	require.Equal(t, "WATCHDOG=1", s.hear())
	for _, row := range [][2]string{{"good", "reloaded"}, {"bad", "nobody may read it"}, {"good", "reloaded"}} {
		s.reloads(r)
		for range 3 {
			require.Equal(t, "WATCHDOG=1", s.hear(), "while Reload blocks, the program serves")
		}
		talk(t, addr)
		_, err := fmt.Fprintln(in, row[0])
		require.NoError(t, err)
		r.logs(t, row[1])
		said, deadline := s.hear(), time.Now().Add(servertest.Timeout)
		for said == "WATCHDOG=1" && time.Now().Before(deadline) {
			said = s.hear()
		}
		require.Equal(t, ready, said)
	}
	require.Equal(t, 1, strings.Count(r.said.String(), "nobody may read it"))
}

// Under a supervisor SIGHUP is a reload, also of a program with nothing to read again: without an answer "systemctl reload" fails.
// One that is ending does not say that it is ready.
func TestTheSupervisorIsToldOfAReloadOfNothing(t *testing.T) {
	s := newSupervisor(t)
	r := start(t, "echo")
	c := talk(t, r.listens(t))
	require.True(t, strings.HasPrefix(s.hear(), "READY=1"))
	s.reloads(r)
	require.Equal(t, ready, s.hear())
	r.signal(t, syscall.SIGTERM)
	require.True(t, strings.HasPrefix(s.hear(), "STOPPING=1"))
	r.signal(t, syscall.SIGHUP)
	for range 2 {
		require.True(t, strings.HasPrefix(s.hear(), "EXTEND_TIMEOUT_USEC="))
	}
	require.NoError(t, c.Close())
	require.Zero(t, r.exit(t))
}

// A program that was replaced names the new process, and says nothing more: no sign of life, and nothing of an end by a later signal.
// The new one here is a script that says nothing itself.
func TestTheSupervisorIsToldOfAReplacementOnce(t *testing.T) {
	s := newSupervisor(t)
	t.Setenv("WATCHDOG_USEC", "200000")
	script := filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nread -r message <&3; echo ready >&4; read -r word <&3; echo serving >&4\n"), 0o755))
	t.Setenv("DAIMON_NEW_PROGRAM", script)
	r := start(t, "replaceable")
	c := talk(t, r.listens(t))
	require.True(t, strings.HasPrefix(s.hear(), "READY=1"))
	require.Equal(t, "WATCHDOG=1", s.hear())
	r.signal(t, syscall.SIGUSR2)
	said := s.hear()
	for said == "WATCHDOG=1" { // on its way
		said = s.hear()
	}
	var pid int
	_, err := fmt.Sscanf(said, "MAINPID=%d", &pid)
	require.NoError(t, err, said)
	require.NotEqual(t, r.Process.Pid, pid)
	r.signal(t, syscall.SIGTERM)
	time.Sleep(1200 * time.Millisecond) // in which there would be six signs of life, and one word on the end
	require.NoError(t, c.Close())
	require.Zero(t, r.exit(t))
	require.Contains(t, r.said.String(), fmt.Sprintf(`{"by process": %d}`, pid))
	require.NoError(t, s.conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	n, err := s.conn.Read(make([]byte, 4096))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%d bytes", n)
}

// With a turn that does not end there is no sign of life, although the other reactor gives turns.
func TestTheWatchdogOfTheSupervisorIsFedWhileAllReactorsTurn(t *testing.T) {
	s := newSupervisor(t)
	t.Setenv("WATCHDOG_USEC", "200000")
	r := start(t, "stuck", "-reactors", "2")
	c := talk(t, r.listens(t))
	require.True(t, strings.HasPrefix(s.hear(), "READY=1"))
	for range 5 {
		require.Equal(t, "WATCHDOG=1", s.hear())
	}
	servertest.Send(t, c, "x")
	last, longest := time.Now(), time.Duration(0)
	for longest < stuckFor/2 {
		require.Equal(t, "WATCHDOG=1", s.hear())
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	servertest.Expect(t, c, "x")
	require.Equal(t, "WATCHDOG=1", s.hear(), "it turns again")
	require.NoError(t, c.Close())
	r.signal(t, syscall.SIGTERM)
	require.Zero(t, r.exit(t))
}

// What was broken: during an end the sign of life came once a second, whatever the supervisor had asked for.
func TestTheWatchdogOfTheSupervisorIsFedDuringAnEnd(t *testing.T) {
	s := newSupervisor(t)
	t.Setenv("WATCHDOG_USEC", "200000")
	r := start(t, "echo")
	c := talk(t, r.listens(t))
	r.signal(t, syscall.SIGTERM)
	for !strings.HasPrefix(s.hear(), "STOPPING=1") {
	}
	fed := 0
	for s.hear() == "WATCHDOG=1" { // until the next word on the end, a second later
		fed++
	}
	require.Greater(t, fed, 2)
	require.NoError(t, c.Close())
	require.Zero(t, r.exit(t))
}

// The variables of another process do not count.
func TestTheWatchdogOfAnotherProcessIsNotFed(t *testing.T) {
	s := newSupervisor(t)
	t.Setenv("WATCHDOG_USEC", "1000")
	t.Setenv("WATCHDOG_PID", "1")
	r := start(t, "echo")
	c := talk(t, r.listens(t))
	require.True(t, strings.HasPrefix(s.hear(), "READY=1"))
	r.signal(t, syscall.SIGTERM)
	require.True(t, strings.HasPrefix(s.hear(), "STOPPING=1"))
	require.NoError(t, c.Close())
	require.Zero(t, r.exit(t))
}

// As in a container with a variable of its host.
func TestASupervisorThatIsNotThereIsNotTold(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(servertest.ShortDir(t), "nobody"))
	r := start(t, "echo")
	r.listens(t)
	r.signal(t, syscall.SIGTERM)
	require.Zero(t, r.exit(t))
	require.Contains(t, r.said.String(), "there is no supervisor at NOTIFY_SOCKET")
}
