// Package main_test holds the echo server to its promises from outside. It builds the program, starts
// it as its user would, talks to it over sockets, sends it signals, and reads /proc for what it costs.
// It imports nothing of the server, so all of it would hold for any other program with the same flags.
//
// The server runs as a process of its own, its clients run in the test. CPU time is the kernel's count
// for that process, so a busy machine does not falsify it; latency is compared with that of the same
// server left in peace, because there is no absolute figure that a shared machine keeps.
package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const (
	patience = 20 * time.Second // what a client or a test waits for before it calls the server stuck
	prompt   = 3 * time.Second  // "at once", on a machine that does other things; a lingering close takes 5 s
)

var binaries string // the folder of what was built

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "echo"); err == nil {
		err = os.Chmod(binaries, 0o755) // a user without rights starts the server, too
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

// The two builds of the server, each made on first use.
var (
	plain = sync.OnceValues(func() (string, error) { return build("echo") })
	raced = sync.OnceValues(func() (string, error) { return build("echo-race", "-race") })
)

func build(name string, flags ...string) (string, error) {
	path := filepath.Join(binaries, name)
	arguments := slices.Concat([]string{"build", "-o", path}, flags, []string{"."})
	out, err := exec.Command("go", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return path, nil
}

// An idling is the flags that choose an idle strategy.
type idling []string

func (i idling) with(flags ...string) []string { return slices.Concat(i, flags) }

// rests tells whether a server without work blocks, rather than looks now and then or all the time.
func (i idling) rests() bool { return i[1] == "interrupt" || i[1] == "hybrid" }

// underEach runs test once under each idle strategy. Busy reactors never let go of their CPU, so it has
// only one.
func underEach(t *testing.T, test func(t *testing.T, idle idling)) {
	for _, idle := range []idling{
		{"-idle", "interrupt"},
		{"-idle", "poll"},
		{"-idle", "hybrid"},
		{"-idle", "busy", "-reactors", "1"},
	} {
		t.Run(idle[1], func(t *testing.T) { test(t, idle) })
	}
}

// A launch says how a server is started. Its zero value is the plain build on a free port of the
// loopback, with every flag at its default.
type launch struct {
	build func() (string, error)
	addr  string
	flags []string
	// under is a command that runs the one in its last arguments.
	under []string
	// change is the last word on the command before it starts.
	change func(*exec.Cmd)
}

// A server is one running echo.
type server struct {
	// pid is the server's, also where cmd is something that runs it.
	pid     int
	cmd     *exec.Cmd
	log     *book
	network string
	address string
	ended   chan struct{}
}

var listening = regexp.MustCompile(`listening on ([^\s",]+)`)

// start runs the server with these flags and returns when it listens.
func start(t *testing.T, flags ...string) *server {
	return launch{flags: flags}.start(t)
}

func (l launch) start(t *testing.T) *server {
	t.Helper()
	s := l.run(t)
	eventually(t, patience, "the line that tells the address", func() bool {
		return s.gone() || listening.MatchString(s.log.String())
	})
	found := listening.FindStringSubmatch(s.log.String())
	require.NotNil(t, found, "ended before it listened")
	s.at(found[1])
	return s
}

// run starts the program and sees to its end; it need not become a server.
func (l launch) run(t *testing.T) *server {
	t.Helper()
	cmd := l.command(t)
	s := &server{cmd: cmd, log: &book{}, ended: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = s.log
	}
	require.NoError(t, cmd.Start())
	s.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // the verdict is read from ProcessState
		close(s.ended)
	}()
	t.Cleanup(func() { s.bury(t) })
	return s
}

func (l launch) command(t *testing.T) *exec.Cmd {
	t.Helper()
	built := l.build
	if built == nil {
		built = plain
	}
	binary, err := built()
	require.NoError(t, err)
	addr := l.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	line := slices.Concat(l.under, []string{binary, "-addr", addr}, l.flags)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.WaitDelay = prompt                                          // for a child that would hold standard error open
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} // a test that times out leaves no server
	if l.change != nil {
		l.change(cmd)
	}
	return cmd
}

// limited is a command that runs another with at most n descriptors.
func limited(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, n), "sh"}
}

// bury ends what is left of the server. No server of these tests, whatever it went through, may have
// panicked or raced, and none may be left behind.
func (s *server) bury(t *testing.T) {
	if !s.gone() {
		_ = unix.Kill(s.pid, unix.SIGKILL)
		_ = s.cmd.Process.Kill()
	}
	<-s.ended
	require.ErrorIs(t, unix.Kill(s.pid, 0), unix.ESRCH, "the server is still there")
	if t.Failed() {
		t.Logf("%s said:\n%s", strings.Join(s.cmd.Args, " "), s.log)
	}
	require.NotRegexp(t, `(?i)\bpanic|fatal error|DATA RACE|goroutine \d+ \[`, s.log.String())
}

// at sets the address that clients dial from the one that the server has logged.
func (s *server) at(logged string) {
	s.network, s.address = "tcp", logged
	if path, ok := strings.CutPrefix(logged, "unix:"); ok {
		s.network, s.address = "unix", path
	}
}

func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, unix.Kill(s.pid, sig))
}

// exit waits for the end of the server and returns its exit status.
func (s *server) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(within):
		require.FailNow(t, "the server goes on", "%v after it should have ended", within)
	}
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Exited(), "killed by %v", status.Signal())
	return status.ExitStatus()
}

// stop ends a server without clients in an orderly way.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.signal(t, unix.SIGTERM)
	require.Zero(t, s.exit(t, patience))
}

// A book keeps what a process writes to standard error.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *book) lines() int { return strings.Count(b.String(), "\n") }

// eventually polls until a condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited %v in vain for %s", within, what)
	}
}

// steady polls until a value has been the same for a while, and returns it.
func steady(t *testing.T, while time.Duration, what string, value func() int64) int64 {
	t.Helper()
	last, since := value(), time.Now()
	eventually(t, patience, what, func() bool {
		if now := value(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= while
	})
	return last
}

// folder returns a new folder whose path is short enough for a Unix socket address of 108 bytes, which
// t.TempDir's, with the name of the test in it, is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "echo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
