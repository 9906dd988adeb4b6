package thread

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onThreads runs f on n threads that are all alive at the same time; they end with their goroutines, which stay locked.
func onThreads(n int, f func(i int)) {
	var all, ended sync.WaitGroup
	all.Add(n)
	for i := range n {
		ended.Go(func() {
			runtime.LockOSThread()
			f(i)
			all.Done()
			all.Wait()
		})
	}
	ended.Wait()
}

func TestCPUs(t *testing.T) {
	cpus := CPUs()
	require.NotEmpty(t, cpus)
	require.IsIncreasing(t, append([]int{-1}, cpus...))
	require.Len(t, cpus, runtime.NumCPU(), "both are the process' affinity when it started")

	cpus[0] = -1
	require.NotEqual(t, -1, CPUs()[0], "the caller's own")
}

func TestGoroutineNumbersDiffer(t *testing.T) {
	const n = 8
	var ids [n]uint64
	onThreads(n, func(i int) { ids[i] = goroutine() })
	slices.Sort(ids[:])
	require.Len(t, slices.Compact(ids[:]), n)
}

func TestNumber(t *testing.T) {
	for _, row := range []struct {
		name, trace string
		id          uint64
	}{
		{"one digit", "goroutine 1 [running]:", 1},
		{"many", "goroutine 18446744073709551615 [running]:\nmain.main()", 1<<64 - 1},
		{"what follows does not matter", "goroutine 77 gp=0xc000 m=3 [select]:", 77},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.id, number([]byte(row.trace))) })
	}
	for _, trace := range []string{"", "goroutine ", "goroutine x", "fiber 12 [running]:"} {
		require.PanicsWithValue(t, "thread: runtime.Stack no longer begins with the goroutine's number",
			func() { number([]byte(trace)) }, "%q", trace)
	}
}
