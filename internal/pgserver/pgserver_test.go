//go:build linux

package pgserver_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/pgserver"
	"github.com/daimon-go/daimon/internal/tier"
)

// orphan is set in a process that starts a server and ends without closing it.
const orphan = "DAIMON_PGSERVER_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphan) != "" {
		s, err := pgserver.Start(pgserver.Config{})
		if err != nil {
			panic(err)
		}
		s.Pause()
		os.Stdout.WriteString(filepath.Dir(s.Log()))
		panic("as a test that fails badly")
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T) *pgserver.Server {
	t.Helper()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	for _, name := range []string{"postgres", "pgbouncer"} {
		tier.Tool(t, name)
	}
	s, err := pgserver.Start(pgserver.Config{Settings: map[string]string{"fsync": "off", "max_connections": "17"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// ask executes SQL with psql over TCP.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "psql"), "-XAtq", "-d", url, "-c", sql).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func TestServer(t *testing.T) {
	s := start(t)
	url, err := s.Create("tasks")
	require.NoError(t, err)
	require.Equal(t, "17", ask(t, url, "SHOW max_connections"))
	require.Equal(t, "1", ask(t, s.Socket("tasks"), "SELECT 1"))
	require.Positive(t, s.CPU())

	for name, again := range map[string]func() error{
		"restarted": s.Restart,
		"killed": func() error {
			s.Kill()
			return s.Start()
		},
	} {
		ask(t, url, "DROP TABLE IF EXISTS kept")
		ask(t, url, "CREATE TABLE kept AS SELECT 5 AS n")
		require.NoError(t, again(), name)
		require.Equal(t, "5", ask(t, url, "SELECT n FROM kept"), name)
	}

	s.Pause()
	for _, pid := range s.Pids() {
		require.Contains(t, "TZ", state(t, pid), "stopped, or ended before that")
	}
	s.Continue()
	require.Equal(t, "5", ask(t, url, "SELECT n FROM kept"))

	name, value, _ := strings.Cut(s.Env(), "=")
	t.Setenv(name, value)
	same, err := pgserver.Shared()
	require.NoError(t, err)
	_, err = same.Create("another")
	require.NoError(t, err)
	require.NoError(t, same.Close())
	require.Equal(t, "1", ask(t, s.Socket("another"), "SELECT 1"), "it is not closed by those that share it")

	long := exec.Command(tier.Tool(t, "psql"), "-X", "-d", url, "-c", "SELECT pg_sleep(60)")
	require.NoError(t, long.Start())
	require.Eventually(t, func() bool {
		return ask(t, url, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
	}, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, s.Terminate())
	require.Error(t, long.Wait())
}

// state is the third field of proc_pid_stat(5).
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func TestBouncer(t *testing.T) {
	s := start(t)
	_, err := s.Create("tasks")
	require.NoError(t, err)
	b, err := s.Bounce(2)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	require.Equal(t, "1", ask(t, b.URL("tasks"), "SELECT 1"))
	require.NoError(t, b.Stop())
	require.NoError(t, b.Start())
	b.Kill() // PgBouncer has two threads: was broken if it still listened then
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port()))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, b.Start())
	require.Regexp(t, `(?m)^pool_mode\|transaction\|`, ask(t, b.URL("pgbouncer"), "SHOW CONFIG"))
}

func TestNothingIsLeft(t *testing.T) {
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "postgres")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), orphan+"=1")
	dir, err := cmd.Output()
	require.Error(t, err)
	require.NotEmpty(t, dir)
	gone := func() bool {
		_, err := os.Stat(string(dir))
		return os.IsNotExist(err)
	}
	require.Eventually(t, gone, 2*time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return !mentioned(t, string(dir)) }, 2*time.Minute, 10*time.Millisecond)
}

// mentioned reports whether a process was started with that text.
func mentioned(t *testing.T, text string) bool {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		if line, _ := os.ReadFile(path); strings.Contains(string(line), text) {
			return true
		}
	}
	return false
}
