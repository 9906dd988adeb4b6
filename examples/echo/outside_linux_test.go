// Package main_test holds the echo server to its promises from outside. It builds the program, starts
// it as its user would, talks to it over sockets, sends it signals, and reads /proc for what it costs.
// It imports nothing of the server's, so all of it holds for any other program with the same flags: see variable.
//
// The server runs as a process of its own, its clients run in the test. CPU time is the kernel's count
// for that process, so a busy machine does not falsify it; latency is compared with that of the same
// server left in peace, because there is no absolute figure that a shared machine keeps.
package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/examples/internal/smoke"
)

const (
	patience = smoke.Patience  // what a client or a test waits for before it calls the server stuck
	prompt   = 3 * time.Second // "at once", on a machine that does other things; a lingering close takes 5 s
)

// variable names the folder of another program to be held to the same: examples/echo-coro's test does so.
const variable = "DAIMON_ECHO"

// A program is what is tested.
type program struct {
	folder string
	name   string // what it says of itself
	idle   int    // bytes of resident memory that an idle connection may take, once it was used
}

var subject = func() program {
	if other := os.Getenv(variable); other != "" {
		return program{folder: other, name: filepath.Base(other), idle: 6 << 10} // it has a stack for each
	}
	return program{folder: ".", name: "echo", idle: 3 << 10}
}()

// defaultReactors is how many there are where nobody says: not one for each CPU if GOMAXPROCS or a quota, which
// the server has from us, allows fewer at a time. It is read before go test -cpu changes it for the test alone.
var defaultReactors = min(runtime.NumCPU(), runtime.GOMAXPROCS(0))

var binaries string // the folder of what was built

func TestMain(m *testing.M) {
	// Also with GOMAXPROCS=1, which the server is to have: what is measured at the clients is not how these wait
	// for each other.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
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
	arguments := slices.Concat([]string{"build", "-o", path}, flags, []string{subject.folder})
	out, err := exec.Command("go", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return path, nil
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
	*smoke.Program
	network, address string // for its clients
}

// start runs the server with these flags and returns when it listens.
func start(t *testing.T, flags ...string) *server {
	return launch{flags: flags}.start(t)
}

func (l launch) start(t *testing.T) *server {
	t.Helper()
	s := l.run(t)
	s.listens(t, s.Said)
	return s
}

// listens waits until said tells where the server listens.
func (s *server) listens(t *testing.T, said func() string) {
	t.Helper()
	s.Listens(t, said)
	s.at(s.Addr)
}

// run starts the program and sees to its end; it need not become a server.
func (l launch) run(t *testing.T) *server {
	t.Helper()
	return &server{Program: smoke.Run(t, l.command(t))}
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

// at sets the address that clients dial from the one that the server has logged.
func (s *server) at(logged string) {
	s.network, s.address = "tcp", logged
	if path, ok := strings.CutPrefix(logged, "unix:"); ok {
		s.network, s.address = "unix", path
	}
}

// steady polls until a value has been the same for a while, and returns it.
func steady(t *testing.T, while time.Duration, what string, value func() int64) int64 {
	t.Helper()
	last, since := value(), time.Now()
	smoke.Eventually(t, patience, what, func() bool {
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
