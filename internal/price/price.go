// Package price requires of operations, in tests, that they cost no more than so many nanoseconds.
package price

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
)

// The prices of a call through an interface and of a system call that does nothing, in nanoseconds, on the machine for
// which the bounds are set.
const (
	referenceCall = 1.9
	referenceTrap = 130.0
)

// layout is what a price may be above its bound: where the linker puts the code makes that difference, with not an
// instruction changed.
const layout = 1.1

// Require requires that each of n operations of run costs at most so many nanoseconds of the thread's processor time,
// or more in proportion where a bare call or a bare system call takes longer than on the machine of the bounds. Faster
// ones do not tighten the bound: they say nothing about memory. Other load only raises a price, so the lowest of several
// measurements counts. The caller has called runtime.LockOSThread. A test that calls Require is of the tier full and runs
// without the race detector.
func Require(t testing.TB, most float64, run func(n int)) {
	t.Helper()
	tier.Measure(t, "measures time")
	if testing.CoverMode() != "" {
		t.Skip("the counters of coverage have a price of their own")
	}
	n := enough(run)
	for tries := 1; ; tries++ {
		bound := layout * most * max(1, lowest(calls, 1_000_000)/referenceCall, lowest(traps, 10_000)/referenceTrap)
		if ns := lowest(run, n); ns <= bound || tries == 20 {
			t.Logf("%.1f ns, at most %.1f", ns, bound)
			require.LessOrEqual(t, ns, bound, "nanoseconds")
			return
		}
		time.Sleep(time.Duration(tries) * 50 * time.Millisecond) // until other load has gone: up to ten seconds
	}
}

// enough returns how many operations take five milliseconds: predictors and caches are warm for most of them.
func enough(run func(n int)) int {
	for n := 1000; ; n *= 2 {
		if Of(func() { run(n) }) >= 5e6 {
			return n
		}
	}
}

// lowest returns the lowest price of one of n operations in several runs.
func lowest(run func(n int), n int) float64 {
	best := Of(func() { run(n) })
	for range 8 {
		best = min(best, Of(func() { run(n) }))
	}
	return best / float64(n)
}

// Of returns the processor time that the calling thread spends in f, in nanoseconds: the caller has called
// runtime.LockOSThread.
func Of(f func()) float64 {
	began := threadTime()
	f()
	return float64(threadTime() - began)
}

// callee is called through an interface that is found in memory. The compiler makes a plain call of one that it sees
// through.
type callee interface{ call(*byte) int }

type one struct{ _ byte }

func (*one) call(*byte) int { return 1 }

var callees [64]callee

func init() {
	for i := range callees {
		callees[i] = new(one)
	}
}

func calls(n int) {
	for i := range n {
		if callees[i%len(callees)].call(nil) != 1 {
			panic("not one")
		}
	}
}

func traps(n int) {
	for range n {
		syscall.Getppid()
	}
}
