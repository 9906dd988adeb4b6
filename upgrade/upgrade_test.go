//go:build unix

package upgrade_test

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/upgrade"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// old is a server that is to be replaced by a script, which writes its process number.
type old struct {
	*servertest.Running
	upgrade *upgrade.Upgrade
	number  string
}

func newOld(t *testing.T, lines string, more ...any) *old {
	t.Helper()
	dir := t.TempDir()
	o := &old{number: filepath.Join(dir, "number")}
	script := filepath.Join(dir, "new")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho $$ >"+o.number+"~; mv "+o.number+"~ "+o.number+"\n"+lines+"\n"), 0o755))
	v := &service.TCP{Address: "127.0.0.1:0", Handler: func(*listener.Conn) act.Action { return nil }}
	o.upgrade = &upgrade.Upgrade{Services: append(more, v), Program: script}
	require.NoError(t, o.upgrade.Inherit(), "nothing")
	o.Running = servertest.Start(t, act.Config{Schedulers: 1}, v.Setup, o.upgrade.Setup)
	return o
}

// ends ends the server in order.
func (o *old) ends() {
	o.Group.Shutdown(servertest.Drain)
	require.NoError(o.T, o.End())
	o.upgrade.Close(nil)
}

// pid waits for the number of the new process.
func (o *old) pid() (n int) {
	require.Eventually(o.T, func() bool {
		text, err := os.ReadFile(o.number)
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	}, servertest.Timeout, time.Millisecond)
	return n
}

// gone requires that the new process has ended, and that it is no zombie.
func (o *old) gone() {
	require.Equal(o.T, syscall.ESRCH, syscall.Kill(o.pid(), 0))
}

func TestAProgramThatHangsIsEnded(t *testing.T) {
	servertest.CheckDescriptors(t)
	o := newOld(t, "exec sleep 60")
	o.upgrade.Within = 50 * time.Millisecond
	err := o.upgrade.Start()
	require.ErrorContains(t, err, "it was not ready in 50ms; process "+strconv.Itoa(os.Getpid())+" goes on")
	var pid int // which the script may have had no time to write
	_, failed := fmt.Sscanf(err.Error(), "upgrade: the new program, process %d", &pid)
	require.NoError(t, failed)
	require.Equal(t, syscall.ESRCH, syscall.Kill(pid, 0))
	o.ends()
}

func TestThereIsOneUpgradeAtATime(t *testing.T) {
	servertest.CheckDescriptors(t)
	o := newOld(t, "echo no: not today >&4; exec sleep 60")
	o.upgrade.Program += " " // a name without a file
	require.ErrorContains(t, o.upgrade.Start(), "no such file")
	o.upgrade.Program = strings.TrimSpace(o.upgrade.Program)
	require.ErrorContains(t, o.upgrade.Start(), "not today")
	o.gone()

	require.NoError(t, os.Remove(o.number))
	require.NoError(t, os.WriteFile(o.upgrade.Program, []byte("#!/bin/sh\necho $$ >"+o.number+"\nexec sleep 60\n"), 0o755))
	first := make(chan error)
	go func() { first <- o.upgrade.Start() }()
	o.pid()
	require.EqualError(t, o.upgrade.Start(), "upgrade: one is under way")
	o.ends()
	require.ErrorContains(t, servertest.Receive(t, first), "this program is ending")
	o.gone()
	require.EqualError(t, o.upgrade.Start(), "upgrade: this program is ending")
}

// While this process drains, the end of the one that has replaced it leaves no zombie.
func TestTheEndOfTheNewProgramIsNoted(t *testing.T) {
	o := newOld(t, "read -r message <&3; echo ready >&4; read -r word <&3; [ $word = go ] && echo serving >&4; read -r word <&3; exit 7")
	o.upgrade.Terms = servertest.Drain.Terms
	release := make(chan struct{})
	o.On(0, func(s *act.Scheduler) {
		begun := false
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if begun {
				return act.Done
			}
			begun = true
			return t.Offload(func() { <-release })
		}))
	})
	require.NoError(t, o.upgrade.Start())
	pid := o.pid()
	require.Eventually(t, func() bool {
		return o.Logs.FilterField(zap.Int("process", pid)).FilterMessage("the program that has replaced this one has ended").Len() == 1
	}, servertest.Timeout, time.Millisecond)
	o.gone()
	close(release)
	require.NoError(t, o.End())
	o.upgrade.Close(nil)
}

// The new program would not know of the end, which then never came.
func TestNoUpgradeWhileAnEndIsAnnounced(t *testing.T) {
	o := newOld(t, "read -r message <&3; until [ -e $0.go ]; do sleep 0.01; done; echo ready >&4; read -r word <&3; echo serving >&4")
	announced := shutdown.Now{Terms: shutdown.Policy{Time: time.Hour, Announce: time.Minute}}
	o.Group.Shutdown(announced)
	require.EqualError(t, o.upgrade.Start(), "upgrade: this program is ending")
	require.NoFileExists(t, o.number)
	require.True(t, o.Group.Withdraw(announced))

	first := make(chan error)
	go func() { first <- o.upgrade.Start() }()
	o.pid()
	o.Group.Shutdown(announced)
	require.NoError(t, os.WriteFile(o.upgrade.Program+".go", nil, 0o600))
	require.EqualError(t, servertest.Receive(t, first), "upgrade: this program is ending")
	o.gone()
	require.True(t, o.Group.Withdraw(announced))
	o.ends()
}

// parent has the test play the older program, with a message and nothing after it. said returns what the newer one says to it.
func parent(t *testing.T, message string) (said func() string) {
	t.Helper()
	read, to, err := os.Pipe()
	require.NoError(t, err)
	from, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = from.Close() })
	var there [2]int // descriptors of the newer one's own, as it closes them
	for i, f := range []*os.File{read, write} {
		there[i], err = syscall.Dup(int(f.Fd()))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	t.Setenv("DAIMON_UPGRADE", fmt.Sprint(there[0], there[1]))
	_, err = io.WriteString(to, message+"\n")
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return func() string {
		require.NoError(t, from.SetReadDeadline(time.Now().Add(servertest.Timeout)))
		text, err := io.ReadAll(from)
		require.NoError(t, err)
		return string(text)
	}
}

func TestWhatCannotBeInheritedIsToldToTheOlderProgram(t *testing.T) {
	for _, row := range []struct{ name, message, says string }{
		{"a state", `{"States":{"a state":"MQ=="}}`, "no: of no use: 1\n"},
		{"a descriptor", `{"Sockets":[{"Address":"127.0.0.1:0","FDs":[65535]}]}`, "no: descriptor 65535 is not a socket"},
		{"a message", "Dear", "no: what the older program has passed on: invalid character"},
	} {
		t.Run(row.name, func(t *testing.T) {
			servertest.CheckDescriptors(t)
			said := parent(t, row.message)
			u := &upgrade.Upgrade{Services: []any{keeper{}, &service.TCP{Address: "127.0.0.1:0"}}}
			require.ErrorContains(t, u.Inherit(), strings.TrimPrefix(strings.TrimSpace(row.says), "no: "))
			require.Contains(t, said(), row.says)
		})
	}
}

// A signal during the set-up ends the new program, so the older one must go on.
func TestAProgramThatIsEndingDoesNotTakeOver(t *testing.T) {
	servertest.CheckDescriptors(t)
	said := parent(t, "{}\nno: it was not asked")
	u := &upgrade.Upgrade{}
	require.NoError(t, u.Inherit())
	err := act.Run(t.Context(), act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Group().Shutdown(servertest.Drain)
		return nil
	}, u.Setup)
	require.EqualError(t, err, "upgrade: this program is ending")
	u.Close(err)
	require.Equal(t, "no: this program is ending\n", said())
}

// An older program that says no more, and lives, goes on accepting.
func TestAProgramDoesNotTakeOverFromOneThatLives(t *testing.T) {
	defer upgrade.LookOnce()()
	servertest.CheckDescriptors(t)
	said := parent(t, fmt.Sprintf(`{"PID":%d}`, os.Getppid()))
	u := &upgrade.Upgrade{}
	require.NoError(t, u.Inherit())
	err := act.Run(t.Context(), act.Config{Schedulers: 1}, u.Setup)
	require.EqualError(t, err, fmt.Sprintf("upgrade: no word from the older program, process %d: EOF", os.Getppid()))
	u.Close(err)
	require.Equal(t, "ready\nno: "+strings.TrimPrefix(err.Error(), "upgrade: ")+"\n", said())
}

// What was broken would stop a whole scheduler: a socket that blocks, as (*os.File).Fd makes it, holds its thread in accept(2).
func TestInheritedSocketsDoNotBlock(t *testing.T) {
	servertest.CheckDescriptors(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	fd, err := syscall.Dup(int(f.Fd())) // without FD_CLOEXEC
	require.NoError(t, err)
	require.NoError(t, f.Close())
	flags := func() (blocks, stays bool) {
		status, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		require.NoError(t, err)
		own, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		return status&unix.O_NONBLOCK == 0, own&unix.FD_CLOEXEC == 0
	}
	blocks, stays := flags()
	require.True(t, blocks && stays, "as the older program could have left it")
	parent(t, fmt.Sprintf(`{"Sockets":[{"Name":"web","FDs":[%d]}]}`, fd))
	v := &service.TCP{Name: "web", Address: l.Addr().String(), Handler: func(*listener.Conn) act.Action { return nil }}
	u := &upgrade.Upgrade{Services: []any{v}}
	require.NoError(t, u.Inherit())
	blocks, stays = flags()
	require.False(t, blocks)
	require.False(t, stays, "in a child of this process")
	r := servertest.Start(t, act.Config{Schedulers: 1}, v.Setup) // which closes it at the end
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	u.Close(nil)
}

// keeper has a state.
type keeper struct{ state []byte }

func (k keeper) StateName() string          { return "a state" }
func (k keeper) SaveState() ([]byte, error) { return k.state, nil }
func (k keeper) LoadState(s []byte) error   { return fmt.Errorf("of no use: %s", s) }

// What the new program gets is in the pipe before it runs: it takes over even if this process is killed in the next moment.
func TestTheMessageIsWrittenBeforeTheStart(t *testing.T) {
	o := newOld(t, `read -r message <&3; echo "no: $message" >&4; exec sleep 60`, keeper{[]byte("secret")})
	err := o.upgrade.Start()
	require.ErrorContains(t, err, `"PID":`+strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, `"Address":"127.0.0.1:0","FDs":[5],"Lent":false`)
	require.ErrorContains(t, err, `"States":{"a state":"c2VjcmV0"}`)
	o.ends()
}

// The path by which this program was started is that of the new one, also if the file of this one was moved from there.
func TestAProgramThatWasMovedAwayIsNotStartedAgain(t *testing.T) {
	o := newOld(t, "")
	o.upgrade.Program = ""
	was := os.Args[0]
	defer func() { os.Args[0] = was }()
	os.Args[0] = filepath.Join(t.TempDir(), "web")
	err := o.upgrade.Start()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "cannot start")
	o.ends()
}

func TestAStateThatIsTooLargeIsAnError(t *testing.T) {
	servertest.CheckDescriptors(t)
	o := newOld(t, "", keeper{make([]byte, 20_000)})
	require.ErrorContains(t, o.upgrade.Start(), "at most 16384 are possible")
	require.NoFileExists(t, o.number)
	o.ends()
}

// The variables of systemd that are for another process do not count, and nobody inherits them further.
func TestVariablesForAnotherProcess(t *testing.T) {
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "3")
	require.NoError(t, (&upgrade.Upgrade{}).Inherit())
	_, ok := os.LookupEnv("LISTEN_FDS")
	require.False(t, ok)
}

func TestSocketActivationThatIsWrongIsAnError(t *testing.T) {
	for _, row := range []struct{ fds, names, says string }{
		{"many", "", `LISTEN_FDS="many"`},
		{"-1", "", `LISTEN_FDS="-1"`},
		{"2", "one", `LISTEN_FDNAMES="one" has not as many names as LISTEN_FDS=2`},
		{"65536", "", "LISTEN_FDS: descriptor"},
	} {
		t.Run(row.fds, func(t *testing.T) {
			t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
			t.Setenv("LISTEN_FDS", row.fds)
			t.Setenv("LISTEN_FDNAMES", row.names)
			require.ErrorContains(t, (&upgrade.Upgrade{}).Inherit(), row.says)
		})
	}
}
