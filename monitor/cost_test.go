//go:build !race

package monitor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// A turn pays its share of a look at the kernel, one in 64 turns. The bound is a multiple of a bare
// interface call measured in the same moment, and neighbours only make things dearer: the lowest of some
// medians counts.
func TestAYieldingTurnWithTheEngineCostsAtMostEightCalls(t *testing.T) {
	const most = 8
	ratio, ns := 0.0, 0.0
	for range 10 {
		if ratio, ns = yieldingTurn(t); ratio <= most {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%.1f ns, %.1f bare calls", ns, ratio)
	require.LessOrEqual(t, ratio, float64(most))
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
		began := time.Now()
		bareCalls(10 * n)
		bare := float64(time.Since(began)) / (10 * n)
		began = time.Now()
		_, err := s.Step(n)
		took := float64(time.Since(began)) / n
		require.NoError(t, err)
		ratios, times = append(ratios, took/bare), append(times, took)
	}
	slices.Sort(ratios)
	slices.Sort(times)
	return ratios[pairs/2], times[pairs/2]
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
