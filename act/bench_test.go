package act_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// cost is something that has a price: prepare makes the set-up, and what it returns does it n times.
type cost struct {
	name    string
	prepare func(tb testing.TB) func(n int)
	// most is the bound in nanoseconds, see price.Require.
	most float64
}

var costs = []cost{
	{"a yielding turn, alone", yieldingTurns(1), 15},
	{"a yielding turn, 64 ready", yieldingTurns(64), 10},
	{"a wake and a turn", wakesAndTurns, 20},
	{"a timer armed and cancelled", timersArmed, 30},
	{"spawn, run, done", spawns, 80},
}

func TestMeasureWhatThingsCost(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			price.Require(t, c.most, c.prepare(t))
		})
	}
}

func TestTheSteadyStateAllocatesNothing(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	for _, c := range costs {
		run := c.prepare(t)
		run(1000)
		require.Zero(t, testing.AllocsPerRun(100, func() { run(100) }), c.name)
	}
}

// yielder is an Action of the cheapest kind.
type yielder struct{ _ byte }

func (*yielder) Act(*act.Task) act.Directive { return act.Yield }

func step(tb testing.TB, s *act.Scheduler, n int) {
	taken, err := s.Step(n)
	if taken != n || err != nil {
		tb.Fatal(taken, err)
	}
}

func yieldingTurns(ready int) func(testing.TB) func(n int) {
	return func(tb testing.TB) func(n int) {
		s, _ := newScheduler(tb, act.Config{})
		for range ready {
			s.Spawn(new(yielder))
		}
		step(tb, s, 2*ready)
		return func(n int) { step(tb, s, n) }
	}
}

// partner wakes the other one and waits.
type partner struct {
	waker act.Waker
	other *partner
}

func (p *partner) Act(t *act.Task) act.Directive {
	p.waker = t.Waker()
	p.other.waker.Wake()
	return act.Wait
}

func wakesAndTurns(tb testing.TB) func(n int) {
	s, _ := newScheduler(tb, act.Config{})
	for range 32 {
		a := new(partner)
		a.other = &partner{other: a}
		s.Spawn(a)
		s.Spawn(a.other)
	}
	step(tb, s, 64+32)
	return func(n int) { step(tb, s, n) }
}

// inATurn gives a task whose turn does something n times.
func inATurn(tb testing.TB, f func(t *act.Task, n int)) func(n int) {
	s, _ := newScheduler(tb, act.Config{})
	rest := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		f(t, rest)
		return act.Yield
	}))
	return func(n int) {
		rest = n
		step(tb, s, 1)
	}
}

func timersArmed(tb testing.TB) func(n int) {
	timers := make([]act.Timer, 256) // as many as a busy server touches between two looks at its cache
	return inATurn(tb, func(t *act.Task, n int) {
		now := t.Scheduler().Now()
		for i := range n {
			tm := &timers[i%256]
			t.WakeAt(tm, now+time.Minute+time.Duration(i)*time.Microsecond)
			tm.Stop()
		}
	})
}

// successor spawns itself and ends.
type successor struct{ _ byte }

func (a *successor) Act(t *act.Task) act.Directive {
	t.Scheduler().Spawn(a)
	return act.Done
}

func spawns(tb testing.TB) func(n int) {
	s, _ := newScheduler(tb, act.Config{})
	s.Spawn(new(successor))
	step(tb, s, 100)
	return func(n int) { step(tb, s, n) }
}
