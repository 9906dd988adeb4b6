package readiness_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/tier"
)

// layout is what a price may be above its bound: where the linker puts the code moves a turn by as much,
// with not an instruction changed.
const layout = 1.1

// A turn pays its share of a look at the kernel, one in 64 turns: eight bare calls in all.
func TestAYieldingTurnWithTheEngineCostsAtMostFifteenNanoseconds(t *testing.T) {
	tier.Measure(t, "measures time")
	requirePrice(t, 15, func() float64 { return turns(t, yielding(t)) })
}

// turns is what a turn of s costs, in nanoseconds of this thread's own time.
func turns(t *testing.T, s *act.Scheduler) float64 {
	const n = 50_000
	return median(func() float64 {
		began := threadTime(t)
		_, err := s.Step(n)
		require.NoError(t, err)
		return float64(threadTime(t)-began) / n
	})
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

func threadTime(t *testing.T) int64 {
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts))
	return ts.Nano()
}

// yielding returns a scheduler with its engine and one task that never stops yielding.
func yielding(t testing.TB) *act.Scheduler {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() }) // a Cut: the task is still there
	err := readiness.Of(s).Open()
	require.NoError(t, err)
	s.Spawn(endless{})
	return s
}

type endless struct{}

func (endless) Act(*act.Task) act.Directive { return act.Yield }
