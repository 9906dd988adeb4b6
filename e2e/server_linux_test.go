package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

// An echo is a program that echoes.
type echo struct {
	name string
	idle int // bytes of resident memory that an idle connection may take, once it was used
	tls  bool
}

var (
	actions    = echo{name: "echo", idle: 3 << 10}
	coroutines = echo{name: "echo-coro", idle: 6 << 10} // it has a stack for each
	encrypted  = echo{name: "echo", tls: true}
)

// eachEcho runs test with either program under each idle strategy. The echo with coroutines and the one over TLS differ only
// above the scheduler, so below the Long tier they run under one strategy.
func eachEcho(t *testing.T, test func(t *testing.T, e echo, idle idle)) {
	t.Helper()
	t.Run(actions.name, func(t *testing.T) {
		underEachIdle(t, func(t *testing.T, idle idle) { test(t, actions, idle) })
	})
	for name, e := range map[string]echo{coroutines.name: coroutines, "echo over TLS": encrypted} {
		t.Run(name, func(t *testing.T) {
			for _, idle := range idles[:tier.Choose(0, 1, len(idles))] {
				t.Run(idle[1], func(t *testing.T) { test(t, e, idle) })
			}
		})
	}
}

// fewEchoes is eachEcho for a test that takes seconds: below the Long tier each program has one strategy. It measures, which
// bench/tls does over TLS.
func fewEchoes(t *testing.T, test func(t *testing.T, e echo, idle idle)) {
	t.Helper()
	few := map[string]string{actions.name: "interrupt", coroutines.name: "busy"}
	for _, e := range []echo{actions, coroutines} {
		t.Run(e.name, func(t *testing.T) {
			for _, idle := range idles {
				t.Run(idle[1], func(t *testing.T) {
					if idle[1] != few[e.name] {
						tier.Need(t, tier.Long, "takes seconds under each idle strategy")
					}
					test(t, e, idle)
				})
			}
		})
	}
}

// A launch says how an echo is started. The zero values are the build without the race detector, a free port of the
// loopback, and every flag at its default.
type launch struct {
	echo
	race  bool
	addr  string
	flags []string
	// under is a command that runs the one in its last arguments.
	under []string
	// change is the last word on the command before it starts.
	change func(*exec.Cmd)
}

// A server is one running echo.
type server struct {
	*exectest.Program
	network, address string // for its clients
	tls              bool
}

// start runs the program with these flags and returns when it listens.
func (e echo) start(t *testing.T, flags ...string) *server {
	t.Helper()
	return launch{echo: e, flags: flags}.start(t)
}

func (l launch) start(t *testing.T) *server {
	t.Helper()
	s := l.run(t)
	s.Listens(t, s.Said)
	s.at(s.Addr)
	return s
}

// run starts the program; it need not become a server.
func (l launch) run(t *testing.T) *server {
	t.Helper()
	return &server{Program: exectest.Start(t, l.command(t)), tls: l.tls}
}

func (l launch) command(t *testing.T) *exec.Cmd {
	t.Helper()
	build := plain(l.name)
	build.Race = l.race
	addr := l.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	line := slices.Concat(l.under, []string{build.Path(t), "-addr", addr}, l.flags)
	if l.tls {
		line = append(line, "-tls-self")
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
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
	exectest.Eventually(t, patience, what, func() bool {
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
	dir, err := os.MkdirTemp("", "e2e")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
