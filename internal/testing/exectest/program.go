// Package exectest builds programs, runs them, and watches them from outside. It is for tests only.
package exectest

import (
	"bytes"
	"fmt"
	"hash/crc32"
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

// Patience is how long a test waits for something before it calls that stuck.
const Patience = 2 * time.Minute

// binaries is the directory of all that Path has built.
var binaries string

// Shared is an environment variable with a directory that all packages of a run share, so that each program is built once. The
// caller makes and removes it. Without it each package has its own.
const Shared = "DAIMON_BINARIES"

// Main is the TestMain of a package that builds programs. In the end it removes them, and fails if a goroutine is left.
func Main(m *testing.M) {
	if binaries = os.Getenv(Shared); binaries != "" {
		goleak.VerifyTestMain(m)
		return
	}
	var err error
	if binaries, err = os.MkdirTemp("", "daimon-"); err == nil {
		err = os.Chmod(binaries, 0o755) // another user may start them
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaries)
		os.Exit(code)
	}))
}

// A Build names a program: the directory of its package, and whether it has the race detector.
type Build struct {
	Dir  string
	Race bool
}

// builds has a function for each Build that builds it once.
var builds sync.Map

// Path returns the path of the program. The first call builds it.
func (b Build) Path(t testing.TB) string {
	t.Helper()
	build, _ := builds.LoadOrStore(b, sync.OnceValues(b.build))
	path, err := build.(func() (string, error))()
	require.NoError(t, err)
	return path
}

func (b Build) build() (string, error) {
	dir, err := filepath.Abs(b.Dir)
	if err != nil {
		return "", err
	}
	// Programs of other directories may have the same name, which is the one that they give themselves in messages.
	into, flags := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(dir))), []string{"build", "-buildvcs=false", "-ldflags=-s"}
	if b.Race {
		into, flags = into+"-race", append(flags, "-race")
	}
	into = filepath.Join(binaries, into)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(into, filepath.Base(dir))
	if _, err := os.Stat(path); err == nil {
		return path, nil // another package has built it
	}
	made := fmt.Sprint(path, "-", os.Getpid())
	cmd := exec.Command("go", append(flags, "-o", made, ".")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return path, os.Rename(made, path)
}

// Command returns the command that runs the program, not started yet. A program of folder examples has the Flags as well.
func (b Build) Command(t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	dir, err := filepath.Abs(b.Dir)
	require.NoError(t, err)
	if filepath.Base(filepath.Dir(dir)) == "examples" {
		arguments = append(Flags(), arguments...)
	}
	return exec.Command(b.Path(t), arguments...)
}

// Flags returns the flags that the environment sets for the programs of folder examples: DAIMON_ENGINE is their -engine.
func Flags() []string {
	if engine := os.Getenv("DAIMON_ENGINE"); engine != "" {
		return []string{"-engine", engine}
	}
	return nil
}

// A Program is a program that runs, or has run.
type Program struct {
	// Addr is where it listens, according to its log; empty before Listens.
	Addr string
	// Pid is its process.
	Pid int

	cmd       *exec.Cmd
	out, said Log
	ended     chan struct{}
}

// Start starts what cmd says: a program, or a command that runs one. Its output is kept, unless cmd sends it
// elsewhere. At the end of the test the program is killed if it still runs, and the test fails if the program has
// panicked or raced.
func Start(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	p := &Program{cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.said
	}
	// By default the race detector lets a program sleep for a second at its end.
	cmd.Env = append(cmd.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = 3 * time.Second // for a child that would keep standard error open
	dieTogether(cmd)
	require.NoError(t, cmd.Start())
	p.Pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		close(p.ended)
	}()
	t.Cleanup(func() { p.bury(t) })
	return p
}

func (p *Program) bury(t testing.TB) {
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

// Listens waits until the program has logged its address.
func (p *Program) Listens(t testing.TB, said func() string) {
	t.Helper()
	Eventually(t, Patience, "the line with the address", func() bool {
		return p.Gone() || listening.MatchString(said())
	})
	found := listening.FindStringSubmatch(said())
	require.NotNil(t, found, "it ended before it listened: %s", said())
	p.Addr = found[1]
}

// Signal sends sig.
func (p *Program) Signal(t testing.TB, sig syscall.Signal) {
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

// Gone reports whether the program has ended.
func (p *Program) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Exit waits for the end of the program and returns its exit status.
func (p *Program) Exit(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		require.FailNow(t, "the program goes on", "%v after it should have ended", Patience)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Exited(), "killed by %v", status.Signal())
	return status.ExitStatus()
}

// Stop shuts a server down gracefully, and waits for its end.
func (p *Program) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGINT)
	require.Zero(t, p.Exit(t))
	require.Contains(t, p.Said(), "ended in order")
}

// Out returns its standard output so far.
func (p *Program) Out() string { return p.out.String() }

// Said returns its standard error so far.
func (p *Program) Said() string { return p.said.String() }

// Lines returns the lines of Out.
func (p *Program) Lines() []string { return strings.Split(strings.TrimSuffix(p.Out(), "\n"), "\n") }

// Eventually waits until f returns true.
func Eventually(t testing.TB, within time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !f(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited %v in vain for %s", within, what)
	}
}

// Log is a buffer that several goroutines may use. The zero value is empty.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
