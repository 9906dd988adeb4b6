// Package smoke uses an example as its user would: as a program of its own. It is for tests only.
package smoke

import (
	"bytes"
	"net"
	"os"
	"os/exec"
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
	// Addr is where it listens, if it was started by Serve.
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
	self, err := os.Executable()
	require.NoError(t, err)
	p := &Program{cmd: exec.Command(self, arguments...), ended: make(chan struct{})}
	// By default the race detector lets a program sleep for a second at its end.
	p.cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	if in != nil {
		p.cmd.Stdin = in
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.said
	require.NoError(t, p.cmd.Start())
	p.Pid = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // ProcessState has the verdict
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		require.NotContains(t, p.Said(), "DATA RACE")
		if t.Failed() {
			t.Logf("the program said:\n%s", p.Said())
		}
	})
	return p
}

var listening = regexp.MustCompile(`listening on (\S+)`)

// Serve starts the program on a free port of the loopback, and returns when it listens.
func Serve(t *testing.T, arguments ...string) *Program {
	t.Helper()
	p := Start(t, nil, append([]string{"-addr", "127.0.0.1:0"}, arguments...)...)
	Eventually(t, "it listens", func() bool { return listening.MatchString(p.Said()) })
	p.Addr = listening.FindStringSubmatch(p.Said())[1]
	return p
}

// Signal sends sig.
func (p *Program) Signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
}

// Exit waits for the end of the program and returns its exit code.
func (p *Program) Exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		require.FailNow(t, "the program does not end")
	}
	return p.cmd.ProcessState.ExitCode()
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

// Eventually waits for f to be true.
func Eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, Patience, time.Millisecond, what)
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
