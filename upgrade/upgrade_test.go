//go:build unix

package upgrade_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
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
	o.upgrade.Within = 100 * time.Millisecond
	require.ErrorContains(t, o.upgrade.Start(), "it was not ready in 100ms; process "+strconv.Itoa(os.Getpid())+" goes on")
	o.gone()
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

// keeper has a state.
type keeper struct{ state []byte }

func (k keeper) StateName() string          { return "a state" }
func (k keeper) SaveState() ([]byte, error) { return k.state, nil }
func (k keeper) LoadState([]byte) error     { return nil }

// What the new program gets is in the pipe before it runs: it takes over even if this process is killed in the next moment.
func TestTheLetterToTheNewProgram(t *testing.T) {
	o := newOld(t, `read -r letter <&3; echo "no: $letter" >&4; exec sleep 60`, keeper{[]byte("secret")})
	err := o.upgrade.Start()
	require.ErrorContains(t, err, `"PID":`+strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, `"Address":"127.0.0.1:0","FDs":[5],"Lent":false`)
	require.ErrorContains(t, err, `"States":{"a state":"c2VjcmV0"}`)
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
