// Package price requires of operations, in tests, that they cost no more than so many nanoseconds.
package price

import (
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// A reference is a loop whose price shows how fast the machine is at this moment.
type reference struct {
	run func(n int)
	n   int     // operations that take a fraction of a millisecond
	ns  float64 // of one on the machine for which the bounds are set
}

// references are the loops that a price is compared with: calls through an interface, turns of a bare queue, system calls that
// do nothing, and the system's.
var references = append([]reference{{calls, 100_000, 1.9}, {turns, 50_000, 2.0}, {traps, 2000, 130}}, system...)

// layout is what a price may be above its bound: where the linker puts the code makes that difference, with not an
// instruction changed.
const layout = 1.1

// Require requires that each of n operations of run costs at most so many nanoseconds of the thread's processor time,
// or more in proportion where a reference takes longer than on the machine of the bounds. Faster ones do not tighten the
// bound: they say nothing about memory. The references are measured twice, as the control: the test fails only outside of
// three times what the two differ by. The caller has called runtime.LockOSThread. A test that calls Require is of the tier
// measure.
func Require(t testing.TB, most float64, run func(n int)) {
	t.Helper()
	tier.Measure(t, "measures time")
	ns, slow, spread := lowest(run, enough(run))
	bound := layout * most * max(1, slow) * (1 + 3*spread)
	t.Logf("%.1f ns, at most %.1f, control %.3f", ns, bound, 1+spread)
	require.LessOrEqual(t, ns, bound, "nanoseconds")
}

// AtMost requires of a value that varies from one measurement to the next, such as the bytes of a connection, that it is at
// most so much. It measures five times. The spread of the five says how well the machine can tell: the test fails only if the
// lowest value exceeds the bound by more than three times the spread.
func AtMost(t testing.TB, what string, most float64, measure func() float64) {
	t.Helper()
	tier.Measure(t, what)
	var all [5]float64
	for i := range all {
		all[i] = measure()
	}
	slices.Sort(all[:])
	lowest, median, spread := all[0], all[2], all[4]-all[0]
	t.Logf("%s: %.4g (%.4g to %.4g), at most %.4g", what, median, lowest, all[4], most)
	require.LessOrEqual(t, lowest, most+3*spread, what)
}

// enough returns how many operations take a millisecond: predictors and caches are warm for most of them.
func enough(run func(n int)) int {
	for n := 256; ; n *= 2 {
		if Of(func() { run(n) }) >= 1e6 {
			return n
		}
	}
}

// lowest returns the lowest price of one of n operations, how many times as long as on the machine of the bounds the slowest
// reference takes, and by which part two measurements of a reference differ at most. Other load only raises a price, so of
// many runs the lowest counts. They are short, to fit between two moments of other load, and alternate with the lowest
// counts of the references, so that both have the same moments.
func lowest(run func(n int), n int) (ns, slow, spread float64) {
	ns = math.Inf(1)
	times := slices.Repeat([][2]float64{{ns, ns}}, len(references))
	for round := range 80 {
		ns = min(ns, Of(func() { run(n) })/float64(n))
		for i, r := range references {
			t := &times[i][round%2]
			*t = min(*t, Of(func() { r.run(r.n) })/float64(r.n)/r.ns)
		}
	}
	for _, t := range times {
		slow = max(slow, t[0], t[1])
		spread = max(spread, math.Abs(t[0]-t[1])/min(t[0], t[1]))
	}
	return ns, slow, spread
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

// A turn is what a queue of tasks has at least: a link, and something to call.
type turn struct {
	next *turn
	call callee
}

func turns(n int) {
	all := make([]turn, len(callees))
	for i := range all {
		all[i] = turn{&all[(i+1)%len(all)], callees[i]}
	}
	first, last := &all[0], &all[len(all)-1]
	last.next = nil
	for range n {
		t := first
		first, t.next = t.next, nil
		if t.call.call(nil) != 1 {
			panic("not one")
		}
		last.next = t
		last = t
	}
}

func traps(n int) {
	for range n {
		syscall.Getppid()
	}
}
