//go:build unix

package upgrade_test

import (
	"context"
	"errors"
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
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/upgrade"
)

// noPath is a name that is not in PATH.
const noPath = "upgrade-test-no-path"

func TestMain(m *testing.M) {
	if os.Args[0] == noPath { // TestAProgramWhoseNameIsNotInPATHIsStarted has started this one
		fmt.Fprintln(os.NewFile(4, ""), "no: it is started")
		os.Exit(0)
	}
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
	v := &service.Listener{Address: "127.0.0.1:0", Handler: func(*listener.Conn) act.Action { return nil }}
	o.upgrade = &upgrade.Upgrade{Services: append(more, v), Program: script}
	require.NoError(t, o.upgrade.Inherit(), "nothing")
	o.Running = servertest.Start(t, act.Config{Schedulers: 1}, v.Setup, o.upgrade.Setup)
	return o
}

// ends shuts the server down gracefully.
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

// gone requires that the new process has ended, and that it is not a zombie.
func (o *old) gone() {
	require.Equal(o.T, syscall.ESRCH, syscall.Kill(o.pid(), 0))
}

func TestAProgramThatHangsIsEnded(t *testing.T) {
	servertest.CheckDescriptors(t)
	o := newOld(t, "exec sleep 60")
	o.upgrade.Timeout = 50 * time.Millisecond
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
	o.upgrade.Terms = servertest.Drain
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
	announced := shutdown.Policy{Time: time.Hour, Announce: time.Minute}
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
		{"a descriptor", `{"Sockets":[{"Address":"127.0.0.1:0","FDs":[65535]}]}`, "no: descriptor 65535 is not a socket"},
		{"a message", "Dear", "no: what the older program has passed on: invalid character"},
		{"a state", "{}\n" + `go [{"Name":"other","Size":2},{"Name":"a state","Size":3}]` + "\nxxbad", `no: the state "a state" was not loaded: bad`},
		{"a state with an order to end", "{}\n" + `go [{"Name":"a state","Size":3}]` + "\nend", "no: this program is ending"},
		{"a large state", "{}\n" + `go [{"Name":"a state","Size":67108864},{"Name":"b","Size":1}]`, `no: no word from the older program, process 0: ` +
			`the states of the services have too many bytes: "a state" has 67108864, "b" has 1, and at most 67108864 are possible together`},
	} {
		t.Run(row.name, func(t *testing.T) {
			servertest.CheckDescriptors(t)
			said := parent(t, row.message)
			v := &service.Listener{Address: "127.0.0.1:0", Handler: func(*listener.Conn) act.Action { return nil }}
			k := &keeper{}
			u := &upgrade.Upgrade{Services: []any{k, v}}
			err := u.Inherit()
			if err == nil {
				err = act.Run(t.Context(), act.Config{Schedulers: 2, Logger: zap.NewNop()}, k.Setup, v.Setup, u.Setup)
				u.Close(err)
			}
			require.ErrorContains(t, err, strings.TrimPrefix(row.says, "no: "))
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
	v := &service.Listener{Name: "web", Address: l.Addr().String(), Handler: func(*listener.Conn) act.Action { return nil }}
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

// keeper has a state. It is told of the outcome.
type keeper struct {
	group   *act.Group
	save    func(context.Context) ([]byte, error)
	settled chan error
}

func (k *keeper) Setup(s *act.Scheduler) error {
	k.group = s.Group()
	return nil
}

func (k *keeper) StateName() string                             { return "a state" }
func (k *keeper) SaveState(ctx context.Context) ([]byte, error) { return k.save(ctx) }
func (k *keeper) Settle(err error)                              { k.settled <- err }

func (k *keeper) LoadState(s []byte) error {
	if string(s) != "end" {
		return errors.New(string(s))
	}
	k.group.Shutdown(servertest.Drain)
	return nil
}

// second has another one.
type second struct{ keeper }

func (*second) StateName() string { return "another" }

// What the new program gets is in the pipe before it runs: it takes over even if this process is killed in the next moment.
func TestTheMessageIsWrittenBeforeTheStart(t *testing.T) {
	o := newOld(t, `read -r message <&3; echo "no: $message" >&4; exec sleep 60`)
	err := o.upgrade.Start()
	require.ErrorContains(t, err, `"PID":`+strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, `"Address":"127.0.0.1:0","FDs":[5],"Lent":false`)
	o.ends()
}

// The services are asked for their states when the new program is ready, and told how it went.
func TestStates(t *testing.T) {
	const takes = "read -r message <&3; echo ready >&4; read -r word <&3; head -c 67108864 <&3 | tail -c 3 >$0.tail; echo serving >&4"
	some := func(n int) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return append(make([]byte, n-3), "end"...), nil }
	}
	for _, row := range []struct {
		name, script string
		bound        time.Duration // of an end
		save         func(context.Context) ([]byte, error)
		says         string
	}{
		{"as large as possible", takes, servertest.Timeout, some(64<<20 - 3), ""},
		{"too large", takes, servertest.Timeout, some(64<<20 - 2), `bytes: "a state" has 67108862, "another" has 3, and at most 67108864 are possible`},
		{"an error", takes, servertest.Timeout, func(context.Context) ([]byte, error) { return nil, io.ErrNoProgress },
			`the state "a state" was not saved: ` + io.ErrNoProgress.Error()},
		{"the bound of an end", takes, 50 * time.Millisecond, func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, `the state "a state" was not saved: not in time: an end has 50ms`},
		{"refused", "read -r message <&3; echo ready >&4; echo no: not today >&4; exec sleep 60", servertest.Timeout, some(3), "not today"},
	} {
		t.Run(row.name, func(t *testing.T) {
			servertest.CheckDescriptors(t)
			k, l := &keeper{settled: make(chan error, 1)}, &second{keeper{save: some(3), settled: make(chan error, 1)}}
			o := newOld(t, row.script, k, l)
			k.save = func(ctx context.Context) ([]byte, error) {
				require.FileExists(t, o.number, "the new program runs")
				return row.save(ctx)
			}
			o.upgrade.Terms.Time = row.bound
			err := o.upgrade.Start()
			if row.says == "" {
				require.NoError(t, err)
				text, err := os.ReadFile(o.upgrade.Program + ".tail")
				require.NoError(t, err)
				require.Equal(t, "end", string(text))
				require.NoError(t, <-k.settled)
				require.NoError(t, <-l.settled)
				require.NoError(t, o.End())
				return
			}
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, <-k.settled, row.says)
			o.gone()
			o.ends()
		})
	}
}

// What was broken: a shutdown waited for a SaveState, and the log said that the program went on.
func TestAnEndWaitsForNoState(t *testing.T) {
	for _, late := range []bool{true, false} { // else the new program does not read it
		asked, release := make(chan struct{}), make(chan struct{})
		k := &keeper{settled: make(chan error, 1), save: func(context.Context) ([]byte, error) {
			close(asked)
			if late {
				<-release
			}
			return make([]byte, 1<<20), nil
		}}
		o := newOld(t, "read -r message <&3; echo ready >&4; exec sleep 60", k)
		first := make(chan error)
		go func() { first <- o.upgrade.Start() }()
		servertest.Receive(t, asked)
		o.ends()
		require.EqualError(t, servertest.Receive(t, first), "upgrade: this program is ending")
		o.gone()
		if late {
			require.Len(t, o.Logs.FilterMessage("SaveState has not returned, and is left behind").All(), 1)
			require.EqualError(t, o.upgrade.Start(), "upgrade: one is under way", "of which the service is to hear")
			require.Empty(t, k.settled)
		}
		close(release)
		require.ErrorContains(t, servertest.Receive(t, k.settled), "this program is ending")
	}
}

// The path by which this program was started is the path of the new one, even if the file of this one was moved from
// there.
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

// As with exec -a, or systemd's ExecStart=@.
func TestAProgramWhoseNameIsNotInPATHIsStarted(t *testing.T) {
	o := newOld(t, "")
	o.upgrade.Program = ""
	was := os.Args[0]
	defer func() { os.Args[0] = was }()
	os.Args[0] = noPath
	require.ErrorContains(t, o.upgrade.Start(), "it is started")
	o.ends()
}

// Such states would be lost, or taken for one another.
func TestStatesThatCannotBeKeptAreErrors(t *testing.T) {
	require.EqualError(t, (&upgrade.Upgrade{Services: []any{&keeper{}, &keeper{}}}).Inherit(), `upgrade: two services have a state of the name "a state"`)
	require.ErrorContains(t, (&upgrade.Upgrade{Services: []any{named{}}}).Inherit(), "has a StateName, but not the other methods of a Keeper")
}

type named struct{}

func (named) StateName() string { return "a state" }

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
