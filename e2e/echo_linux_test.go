package e2e

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// The echo server goes through what only a process can: the kernel's buffers, signals, and an end under load. It does so
// under each idle strategy, and over each transport, as an action and as a coroutine.
func TestEcho(t *testing.T) {
	outside(t)
	t.Parallel()
	unixSocket := "unix:" + folder(t) + "/echo.sock"
	for _, row := range []struct {
		name, program, addr string
		flags               []string
	}{
		{"interrupt", "echo", "127.0.0.1:0", []string{"-idle", "interrupt"}},
		{"poll", "echo", "127.0.0.1:0", []string{"-idle", "poll"}},
		{"hybrid", "echo", "127.0.0.1:0", []string{"-idle", "hybrid"}},
		{"busy", "echo", "127.0.0.1:0", []string{"-idle", "busy", "-reactors", "1"}}, // its clients need the other CPUs
		{"more reactors than CPUs", "echo", "127.0.0.1:0", []string{"-reactors", "5"}},
		{"Unix", "echo", unixSocket, nil},
		{"TLS", "echo", "127.0.0.1:0", []string{"-tls-self"}},
		{"coroutines", "echo-coro", "127.0.0.1:0", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := startEcho(t, example(row.program).Command(t, append([]string{"-addr", row.addr}, row.flags...)...))
			t.Run("all comes back", func(t *testing.T) { echoesWhole(t, s) })
			t.Run("signals lose nothing", func(t *testing.T) { bearsSignals(t, s) })
			t.Run("an end under load loses nothing", func(t *testing.T) { endsUnderLoad(t, s) })
		})
	}
}

// A server is an echo that runs.
type server struct {
	*exectest.Program
	network, address string // for its clients
	tls              bool
}

func startEcho(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{Program: listen(t, cmd), network: "tcp"}
	s.address, s.tls = s.Addr, strings.Contains(cmd.String(), "-tls-self")
	if path, ok := strings.CutPrefix(s.Addr, "unix:"); ok {
		s.network, s.address = "unix", path
	}
	return s
}

func echoesWhole(t *testing.T, s *server) {
	for _, row := range []struct {
		name        string
		size, piece int
	}{
		{"nothing but a half-close", 0, 1},
		{"a byte at a time", 4096, 1},
		{"pieces that fit nowhere", 1 << 20, 4093},
		{"10 MiB written, then half-closed", 10 << 20, 10 << 20},
	} {
		require.NoError(t, whole(s.dial(t), content(uint64(row.size), row.size), row.piece), row.name)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	require.NoError(t, together(100, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		c, err := s.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		return whole(c, content(random.Uint64(), random.IntN(100<<10)), 1+random.IntN(16<<10))
	}))
}

// A stopped process is one that the machine was suspended under, or that a debugger looked at: a wait for events ends with EINTR.
// SIGURG is what the Go runtime preempts goroutines with: it comes at any moment, in any system call.
func bearsSignals(t *testing.T, s *server) {
	all := s.talkers(t, 10)
	for range tier.Choose(0, 3, 10) {
		s.stopped(t, func() {})
		heard := all[0].heard.Load()
		exectest.Eventually(t, patience, "traffic", func() bool { return all[0].heard.Load() > heard })
	}
	for range tier.Choose(0, 200, 10_000) {
		s.Signal(t, unix.SIGURG)
	}
	require.NoError(t, finish(all))
}

// state returns the letter of the process state in proc_pid_stat(5): S sleeping, T stopped.
func (s *server) state(t *testing.T) string {
	t.Helper()
	stat, err := os.ReadFile(s.Proc("stat"))
	require.NoError(t, err)
	text := string(stat)
	return strings.Fields(text[strings.LastIndex(text, ")")+1:])[0]
}

// With SIGTERM no new client is accepted, while active clients go on until they have finished.
func endsUnderLoad(t *testing.T, s *server) {
	all := s.talkers(t, 50)
	s.Signal(t, unix.SIGTERM)
	exectest.Eventually(t, patience, "new clients refused", func() bool {
		c, err := s.connect()
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
	})
	require.False(t, s.Gone())
	require.NoError(t, finish(all))
	require.Zero(t, s.Exit(t))
	require.Contains(t, s.Said(), "ended in order")
}

// What a service manager that is restarted leaves of the standard streams. A write to a broken pipe on
// descriptor 1 or 2 kills a Go program that does not see to SIGPIPE (os/signal, "SIGPIPE").
func TestBrokenStandardStreams(t *testing.T) {
	outside(t)
	t.Parallel()
	path := folder(t) + "/echo.sock" // no log shows a port
	cmd := exec.Command("sh", "-c", `exec "$@" <&-`, "sh", example("echo").Path(t), "-addr", "unix:"+path, "-drain", "100ms")
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	defer write.Close()
	cmd.Stdout, cmd.Stderr = write, write
	s := &server{Program: exectest.Start(t, cmd), network: "unix", address: path}
	exectest.Eventually(t, patience, "the server to listen", func() bool {
		c, err := s.connect()
		if err == nil {
			_ = c.Close()
		}
		return err == nil || s.Gone()
	})
	stays := s.dial(t)
	require.NoError(t, ping(stays, "to be cut, which is worth a line in the log"))
	s.Signal(t, unix.SIGTERM)
	require.Zero(t, s.Exit(t))
	_, err = io.ReadAll(stays)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}
