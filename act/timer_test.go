package act_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// sleeper is a task that waits for a Timer and notes its letter when that has come.
func (h *history) sleeper(letter string, at time.Duration) act.Action {
	var tm act.Timer
	armed := false
	return act.Func(func(t *act.Task) act.Directive {
		if !armed {
			armed = true
			t.WakeAt(&tm, at)
		}
		if tm.Armed() {
			return act.Wait
		}
		return h.note(letter, act.Done)
	})
}

func TestATimerOfAnotherSchedulerPanics(t *testing.T) {
	a, _, _ := newVirtual(t, act.Config{})
	b, _, _ := newVirtual(t, act.Config{})
	var tm act.Timer
	a.CallAt(&tm, 10, expiry(func() {}))
	require.PanicsWithValue(t, "act: a Timer armed on one scheduler was armed on another",
		func() { b.CallAt(&tm, 10, expiry(func() {})) })
	require.True(t, tm.Stop())
	b.CallAt(&tm, 10, expiry(func() {}))
	require.True(t, tm.Armed())
}

func TestStopDisarms(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var never act.Timer
	require.False(t, never.Stop(), "the zero Timer is not armed")
	require.False(t, never.Armed())
	var timers [3]act.Timer
	turns := 0
	s.Spawn(act.Func(func(task *act.Task) act.Directive {
		if turns++; turns > 1 {
			return act.Done
		}
		for i := range timers {
			task.WakeAt(&timers[i], time.Duration(10*(i+1)))
		}
		require.True(t, timers[1].Stop()) // the middle, the first, and what is left
		require.False(t, timers[1].Stop())
		require.True(t, timers[0].Stop())
		return act.Wait
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 2, turns)
	require.Equal(t, time.Duration(30), c.Monotonic())
}

func TestWakeAfterReadsTheClockAfresh(t *testing.T) {
	const start = time.Hour
	const stale = 3 * time.Millisecond // what the turn has taken since the pass read the clock
	for _, row := range []struct {
		name  string
		delay time.Duration
		want  time.Duration
	}{
		{"short", time.Millisecond, start + stale + time.Millisecond},
		{"long", time.Hour, start + stale + time.Hour},
		{"none", 0, start + stale},
		{"longer than time: never", math.MaxInt64, math.MaxInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c, _ := newVirtual(t, act.Config{})
			c.Pass(start)
			var tm act.Timer
			s.Spawn(act.Func(func(task *act.Task) act.Directive {
				c.Pass(stale)
				require.Equal(t, start, s.Now(), "stands still during a turn")
				task.WakeAfter(&tm, row.delay)
				require.Equal(t, row.want, tm.When())
				return act.Done
			}))
			require.NoError(t, s.Run())
		})
	}
}

func TestADeadlineInThePastIsDueInTheNextPass(t *testing.T) {
	var h history
	s, c, _ := newVirtual(t, act.Config{TurnsPerPass: 2, Trace: &act.Trace{
		Pass: func(*act.Scheduler) { h.WriteString("|") },
	}})
	c.Pass(time.Second)
	s.Spawn(h.sleeper("A", time.Millisecond))
	s.Spawn(h.script("B", 4, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "B|BA|BB|", h.String(), "not in the turn that arms it, and not at once")
}

func TestLateTimersKeepTheirDeadlinesAndTheirOrder(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	c.Pass(time.Second)
	s.Internals().KeepRunning(1)
	_, err := s.Step(1) // reads the clock
	require.NoError(t, err)
	var timers [4]act.Timer
	var fired []time.Duration
	for i, at := range []time.Duration{30, 10, 20, 10} {
		s.CallAt(&timers[i], at, expiry(func() {
			require.Equal(t, at, timers[i].When())
			fired = append(fired, at+time.Duration(i))
			if i == 1 {
				s.CallAt(&timers[i], timers[i].When()+5, expiry(func() { fired = append(fired, 15) }))
			}
		}))
	}
	_, err = s.Step(1)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{11, 13, 22, 30}, fired)
	_, err = s.Step(1)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{11, 13, 22, 30, 15}, fired, "what was armed meanwhile comes later, whatever its deadline")
}

// Turns that follow a sleep come before the next pass, and must not take the time before it for now.
func TestNowIsFreshAfterASleep(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var waker act.Waker
	s.Internals().SetIdler(idlerOf(func(atMost time.Duration) {
		if atMost != 0 {
			c.Pass(time.Hour)
			waker.Wake()
		}
	}))
	turns := 0
	s.Spawn(act.Func(func(task *act.Task) act.Directive {
		if turns++; turns > 1 {
			require.Equal(t, time.Hour, s.Now())
			return act.Done
		}
		waker = task.Waker()
		return act.Wait
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 2, turns)
}

// What is due beyond the bound of a pass keeps the thread awake and comes in the next.
func TestAPassFiresAtMost1024Timers(t *testing.T) {
	const n = 2*act.TimersAPass + 100
	var passes []int
	fired := 0
	s, c, _ := newVirtual(t, act.Config{Trace: &act.Trace{
		Pass: func(*act.Scheduler) { passes = append(passes, fired) },
	}})
	s.Internals().SetIdler(&dreamer{clock: c, insomniac: true})
	timers := make([]act.Timer, n)
	for i := range timers {
		s.CallAt(&timers[i], 10, expiry(func() {
			if fired++; fired == n {
				s.Internals().KeepRunning(-1)
			}
		}))
	}
	c.Pass(10)
	s.Internals().KeepRunning(1)
	require.NoError(t, s.Run())
	require.Equal(t, []int{0, act.TimersAPass, 2 * act.TimersAPass}, passes)
}
