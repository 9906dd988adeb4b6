package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// Ten thousand connections that were used are what a server is for: each costs a small record, or a small stack, and
// over TLS what crypto/tls keeps.
func TestMeasureConnectionsAtRest(t *testing.T) {
	tier.Measure(t, "memory")
	const n = 10_000
	exectest.AllowDescriptors(t, n+200) // the test's own; the server inherits the limit as its child
	for _, row := range []struct {
		program, flag string
		most          float64
	}{
		{"echo", "", 3 << 10},
		{"echo-coro", "", 6 << 10},
		{"echo", "-tls-self", 20 << 10},
	} {
		price.AtMost(t, "resident bytes of a connection of "+row.program+row.flag, row.most, func() float64 {
			s := startEcho(t, example(row.program).Command(t, append([]string{"-addr", "127.0.0.1:0"}, strings.Fields(row.flag)...)...))
			require.NoError(t, whole(s.dial(t), content(1, 1000), 100))
			before := s.Resident(t)
			for range n {
				c, err := s.connect()
				require.NoError(t, err)
				defer reset(c)
				require.NoError(t, ping(c, "hello"))
			}
			return float64(s.Resident(t)-before) / n
		})
	}
}

// No thread that is bound to a CPU, which is a scheduler's, gets up to see that nothing has happened.
func TestMeasureWakeUpsOfAnIdleServer(t *testing.T) {
	tier.Measure(t, "wake-ups")
	s := startEcho(t, example("echo").Command(t, "-addr", "127.0.0.1:0", "-idle", "interrupt", "-reactors", "2", "-cpus", "auto"))
	c := s.dial(t)
	require.NoError(t, ping(c, "hello"))
	price.AtMost(t, "wake-ups in 5 s", 0, func() float64 {
		time.Sleep(time.Second) // the scheduler goes to rest
		before := s.switches(t)
		time.Sleep(5 * time.Second)
		return float64(s.switches(t) - before)
	})
	require.NoError(t, ping(c, "awake"))
}

// switches returns how often the schedulers have given up their CPUs to wait: proc_pid_status(5).
func (s *server) switches(t *testing.T) (n int) {
	t.Helper()
	tasks, err := filepath.Glob(s.Proc("task/*/status"))
	require.NoError(t, err)
	bound := 0
	for _, task := range tasks {
		status, _ := os.ReadFile(task) // the thread may have ended
		found := allowed.FindSubmatch(status)
		if found == nil || strings.ContainsAny(string(found[1]), ",-") {
			continue
		}
		bound++
		n += voluntary(t, string(status))
	}
	require.Equal(t, 2, bound, "where there are two CPUs or more")
	return n
}

func voluntary(t *testing.T, status string) (n int) {
	t.Helper()
	_, rest, found := strings.Cut(status, "\nvoluntary_ctxt_switches:")
	require.True(t, found)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	return n
}
