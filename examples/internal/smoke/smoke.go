// Package smoke uses an example as its user would: as a program of its own, watched from outside. It is for
// tests only.
package smoke

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Patience is what is waited for something before it is called stuck.
const Patience = 20 * time.Second

// variable tells a test binary to be the program that it tests.
const variable = "DAIMON_EXAMPLE"

// Main is for the TestMain of an example. In the processes that Start makes it calls the example's main
// function; so the program is built as its tests are: with the race detector, if they are.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A Program is an example that runs.
type Program struct {
	// Addr is where it listens, as it has said; empty before it has.
	Addr string
	// Pid is its process.
	Pid int

	cmd       *exec.Cmd
	out, said log
	ended     chan struct{}
}

// Start starts the program with the given standard input, nil for none, and kills it at the end of the test
// if it still runs.
func Start(t *testing.T, in *os.File, arguments ...string) *Program {
	t.Helper()
	cmd := Command(t, arguments...)
	if in != nil {
		cmd.Stdin = in
	}
	return Run(t, cmd)
}

// Command is the program, not started yet: for Run, by who has more to say about it than Start asks for.
func Command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, arguments...)
	cmd.Args[0] = strings.TrimSuffix(filepath.Base(self), ".test") // the name that it gives itself in messages
	// By default the race detector lets a program sleep for a second at its end.
	cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Run is Start for a program that cmd starts, by itself or under another. What it writes is kept, unless cmd
// has somewhere else for it.
//
// No program, whatever it went through, may have panicked or raced, and none is left behind.
func Run(t *testing.T, cmd *exec.Cmd) *Program {
	t.Helper()
	p := &Program{cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.said
	}
	require.NoError(t, cmd.Start())
	p.Pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // ProcessState has the verdict
		close(p.ended)
	}()
	t.Cleanup(func() { p.bury(t) })
	return p
}

func (p *Program) bury(t *testing.T) {
	if !p.Gone() {
		_ = p.send(syscall.SIGKILL)
		_ = p.cmd.Process.Kill() // what it runs under, if that is another
	}
	<-p.ended
	require.ErrorIs(t, p.send(0), os.ErrProcessDone, "the program is still there")
	if t.Failed() {
		t.Logf("%s said:\n%s", strings.Join(p.cmd.Args, " "), p.Said())
	}
	require.NotRegexp(t, `(?i)\bpanic|fatal error|DATA RACE|goroutine \d+ \[`, p.Said())
}

var listening = regexp.MustCompile(`listening on (\S+)`)

// Serve starts the program on a free port of the loopback, and returns when it listens.
func Serve(t *testing.T, arguments ...string) *Program {
	t.Helper()
	p := Start(t, nil, append([]string{"-addr", "127.0.0.1:0"}, arguments...)...)
	p.Listens(t, p.Said)
	return p
}

// Listens waits until what the program has said tells its address.
func (p *Program) Listens(t *testing.T, said func() string) {
	t.Helper()
	Eventually(t, Patience, "the line that tells the address", func() bool {
		return p.Gone() || listening.MatchString(said())
	})
	found := listening.FindStringSubmatch(said())
	require.NotNil(t, found, "it ended before it listened")
	p.Addr = found[1]
}

// Signal sends sig.
func (p *Program) Signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.send(sig))
}

func (p *Program) send(sig syscall.Signal) error {
	process, err := os.FindProcess(p.Pid) // not that of cmd, which may be what the program runs under
	if err != nil {
		return err
	}
	defer process.Release()
	return process.Signal(sig)
}

// Gone tells whether the program has ended.
func (p *Program) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Exit waits for the end of the program and returns its exit code.
func (p *Program) Exit(t *testing.T) int {
	t.Helper()
	return p.ExitWithin(t, Patience)
}

// ExitWithin is Exit with less patience, or more.
func (p *Program) ExitWithin(t *testing.T, d time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(d):
		require.FailNow(t, "the program goes on", "%v after it should have ended", d)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Exited(), "killed by %v", status.Signal())
	return status.ExitStatus()
}

// Stop has a server end in an orderly way.
func (p *Program) Stop(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGINT)
	require.Zero(t, p.Exit(t))
	require.Contains(t, p.Said(), "ended in order")
}

// Out is what it has written to standard output so far.
func (p *Program) Out() string { return p.out.String() }

// Said is what it has written to standard error so far.
func (p *Program) Said() string { return p.said.String() }

// Lines are those of Out.
func (p *Program) Lines() []string { return strings.Split(strings.TrimSuffix(p.Out(), "\n"), "\n") }

// Eventually waits until f holds.
func Eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !f(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited %v in vain for %s", within, what)
	}
}

// Dial connects to addr for the length of the test, with Patience for everything that is done there.
func Dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, Patience)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(Patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// log is a buffer for two goroutines.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
