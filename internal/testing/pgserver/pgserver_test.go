//go:build linux

package pgserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
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
