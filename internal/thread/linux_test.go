//go:build linux

package thread

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestBindBindsTheCallingThreadToOneCPU(t *testing.T) {
	before := CPUs()
	masks := make([][]int, len(before))
	errs := make([]error, len(before))
	onThreads(len(before), func(i int) {
		errs[i] = Bind(before[i])
		masks[i] = affinity()
	})
	for i, cpu := range before {
		require.NoError(t, errs[i])
		require.Equal(t, []int{cpu}, masks[i])
	}
	require.Equal(t, before, CPUs(), "what the process may use, not what a thread was bound to")
}

func TestBindToNoSuchCPU(t *testing.T) {
	for _, cpu := range []int{-1, 1 << 20} {
		var err error
		var mask []int
		onThreads(1, func(int) { err, mask = Bind(cpu), affinity() })
		require.ErrorIs(t, err, unix.EINVAL)
		require.ErrorContains(t, err, "thread: bind to CPU")
		require.Equal(t, CPUs(), mask, "as before")
	}
}

func TestMembers(t *testing.T) {
	for _, row := range []struct {
		name string
		cpus []int
	}{
		{"none", []int{}},
		{"a gap", []int{0, 3}},
		{"beyond one word", []int{5, 64, 127}},
		{"the last", []int{1023}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var set unix.CPUSet
			for _, cpu := range row.cpus {
				set.Set(cpu)
			}
			require.Equal(t, row.cpus, members(&set))
		})
	}
}
