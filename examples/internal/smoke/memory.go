package smoke

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Resident is the memory that the program has in use, in bytes, and Peak the most it ever had: VmRSS and VmHWM of
// proc_pid_status(5). Linux only.
func (p *Program) Resident(t *testing.T) int { return p.memory(t, "VmRSS") }

// Peak is the most of Resident so far.
func (p *Program) Peak(t *testing.T) int { return p.memory(t, "VmHWM") }

func (p *Program) memory(t *testing.T, line string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	require.NoError(t, err)
	found := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kib << 10
}

// Descriptors counts the open ones that clients can cost: pollers and what interrupts them are not counted, since the Go
// runtime makes its own at any moment, when one of its goroutines first sleeps for a time. Linux only.
func (p *Program) Descriptors(t *testing.T) (n int) {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid))
	require.NoError(t, err)
	for _, fd := range open {
		what, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.Pid, fd.Name()))
		if err == nil && !strings.Contains(what, "[eventpoll]") && !strings.Contains(what, "[eventfd]") {
			n++
		}
	}
	return n
}
