package act_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
)

// layout is what a price may be above its bound: where the linker puts the code moves a turn by as much,
// with not an instruction changed.
const layout = 1.1

// Prices are asserted as multiples of a bare interface call that is measured in the same moment, so that
// they hold on a machine of another speed, and in the time of this thread's own, so that they hold on a
// busy one. Neighbours in the caches only make things dearer, so the lowest of some medians counts. The
// race detector changes all prices, each in its own way.
func TestWhatThingsCost(t *testing.T) {
	tier.Measure(t, "measures time")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calibrate := bareCalls(t)
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			run := c.prepare(t)
			most := layout * c.most / bareCall
			if testing.CoverMode() != "" {
				most *= 10 // each block counts itself
			}
			ratio, ns := medianRatio(run, calibrate)
			for tries := 1; ratio > most && tries < 10; tries++ {
				time.Sleep(20 * time.Millisecond) // until the neighbours have gone
				ratio, ns = medianRatio(run, calibrate)
			}
			t.Logf("%.1f ns, %.1f bare calls, at most %.1f", ns, ratio, most)
			require.LessOrEqual(t, ratio, most, "bare calls")
		})
	}
}

// medianRatio returns how many times as long as calibrate run takes, for one of each: the median of interleaved pairs.
func medianRatio(run, calibrate func(n int)) (ratio, ns float64) {
	const pairs, n = 31, 20_000
	run(n)
	var ratios, times []float64
	for range pairs {
		bare := timed(func() { calibrate(10 * n) }) / (10 * n)
		took := timed(func() { run(n) }) / n
		ratios, times = append(ratios, took/bare), append(times, took)
	}
	slices.Sort(ratios)
	slices.Sort(times)
	return ratios[pairs/2], times[pairs/2]
}

// timed returns the time that this thread has spent in f, in nanoseconds.
func timed(f func()) float64 {
	began := threadTime()
	f()
	return float64(threadTime() - began)
}
