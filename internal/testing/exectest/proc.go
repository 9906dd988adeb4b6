package exectest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proc returns the path of a file of the process in proc(5), of Linux.
func (p *Program) Proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.Pid, name) }

// Resident returns the bytes of memory that the program has in use: VmRSS of proc_pid_status(5).
func (p *Program) Resident(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(p.Proc("status"))
	require.NoError(t, err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kib << 10
}

// Files returns what the open descriptors of the program refer to, by number.
func (p *Program) Files(t testing.TB) map[string]string {
	t.Helper()
	open, err := os.ReadDir(p.Proc("fd"))
	require.NoError(t, err)
	files := map[string]string{}
	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join(p.Proc("fd"), fd.Name())); err == nil {
			files[fd.Name()] = to
		}
	}
	return files
}

// Descriptors counts the open descriptors that clients can cost. Pollers and what interrupts them are not counted:
// the Go runtime opens its own at any moment, when one of its goroutines first sleeps for a time.
func (p *Program) Descriptors(t testing.TB) (n int) {
	t.Helper()
	for _, to := range p.Files(t) {
		if !strings.Contains(to, "[eventpoll]") && !strings.Contains(to, "[eventfd]") {
			n++
		}
	}
	return n
}
