//go:build !race

package monitor_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// layout is what a price may be above its bound: where the linker puts the code moves a turn by as much,
// with not an instruction changed.
const layout = 1.1

// A turn pays its share of a look at the kernel, one in 64 turns: at most eight bare calls in all. The
// calls are measured in the same moment, both in the time of this thread's own; neighbours in the caches
// only make things dearer, so the lowest of some medians counts.
func TestAYieldingTurnWithTheEngineCostsAtMostEightCalls(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ratio, ns := yieldingTurn(t)
	for tries := 1; ratio > 8*layout && tries < 40; tries++ {
		time.Sleep(50 * time.Millisecond) // until the neighbours have gone
		ratio, ns = yieldingTurn(t)
	}
	t.Logf("%.1f ns, %.1f bare calls", ns, ratio)
	require.LessOrEqual(t, ratio, 8*layout)
}

func BenchmarkYieldingTurnWithTheEngine(b *testing.B) {
	s := yielding(b)
	b.ReportAllocs()
	for taken := 0; taken < b.N; {
		n, err := s.Step(b.N - taken)
		require.NoError(b, err)
		taken += n
	}
}

func yieldingTurn(t *testing.T) (ratio, ns float64) {
	const pairs, n = 21, 50_000
	s := yielding(t)
	var ratios, times []float64
	for range pairs {
		began := threadTime(t)
		bareCalls(10 * n)
		bare := float64(threadTime(t)-began) / (10 * n)
		began = threadTime(t)
		_, err := s.Step(n)
		took := float64(threadTime(t)-began) / n
		require.NoError(t, err)
		ratios, times = append(ratios, took/bare), append(times, took)
	}
	slices.Sort(ratios)
	slices.Sort(times)
	return ratios[pairs/2], times[pairs/2]
}

func threadTime(t *testing.T) int64 {
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts))
	return ts.Nano()
}

// yielding returns a scheduler with its engine and one task that never stops yielding.
func yielding(t testing.TB) *act.Scheduler {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() }) // a Cut: the task is still there
	_, err := monitor.Engine(s)
	require.NoError(t, err)
	s.Spawn(endless{})
	return s
}

type endless struct{}

func (endless) Act(*act.Task) act.Directive { return act.Yield }

type caller interface{ call(*int) }

type bare struct{}

//go:noinline
func (bare) call(n *int) { *n++ }

func bareCalls(n int) (calls int) {
	var callee caller = bare{}
	for range n {
		callee.call(&calls)
	}
	return calls
}
