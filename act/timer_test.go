package act_test

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
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

func TestTimersFireInOrderOfDeadlineAndOfArming(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var h history
	for _, x := range []struct {
		letter string
		at     time.Duration
	}{{"d", 30}, {"a", 10}, {"f", time.Hour}, {"b", 20}, {"c", 20}, {"e", 30}, {"0", -5}} {
		s.Spawn(h.sleeper(x.letter, x.at))
	}
	require.NoError(t, s.Run())
	require.Equal(t, "0abcdef", h.String())
	require.Equal(t, time.Hour, c.Monotonic(), "and not a moment later")
}

func TestATimerFiresNeverEarly(t *testing.T) {
	for seed := range int64(20) {
		rnd := rand.New(rand.NewSource(seed))
		s, c, _ := newVirtual(t, act.Config{})
		fired := 0
		for range 500 {
			var tm act.Timer
			s.Spawn(act.Func(func(task *act.Task) act.Directive {
				switch {
				case tm.When() == 0:
					d := time.Duration(1 + rnd.Int63n(1<<rnd.Intn(50)))
					task.WakeAt(&tm, s.Now()+d)
					return act.Wait
				case tm.Armed():
					return act.Wait
				}
				require.GreaterOrEqual(t, c.Monotonic(), tm.When())
				require.GreaterOrEqual(t, s.Now(), tm.When())
				fired++
				c.advance(time.Duration(rnd.Int63n(1000)))
				return act.Done
			}))
		}
		require.NoError(t, s.Run())
		require.Equal(t, 500, fired)
	}
}

func TestArmingAgainMoves(t *testing.T) {
	for _, row := range []struct {
		name      string
		then      time.Duration
		turns     string
		wantClock time.Duration
	}{
		{"later", 50, "AA", 50},
		{"earlier", 5, "AA", 5},
		{"to the same", 10, "AA", 10},
		{"into the past", -1, "AA", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c, _ := newVirtual(t, act.Config{})
			var h history
			var tm act.Timer
			s.Spawn(act.Func(func(task *act.Task) act.Directive {
				h.WriteString("A")
				if h.Len() > 1 {
					require.False(t, tm.Armed())
					return act.Done
				}
				task.WakeAt(&tm, 10)
				task.WakeAt(&tm, row.then)
				require.True(t, tm.Armed())
				require.Equal(t, max(0, row.then), tm.When())
				return act.Wait
			}))
			require.NoError(t, s.Run())
			require.Equal(t, row.turns, h.String())
			require.Equal(t, row.wantClock, c.Monotonic())
		})
	}
}

// A Timer wakes the task that armed it last.
func TestATimerMayChangeItsTask(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var h history
	var tm, other act.Timer
	begun := false
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if !begun {
			begun = true
			t.WakeAt(&tm, 10)
			t.WakeAt(&other, 30)
			return act.Wait
		}
		return h.note(fmt.Sprintf("A%d", c.Monotonic()), act.Done)
	}))
	taken := false
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if !taken {
			taken = true
			t.WakeAt(&tm, 20)
			return act.Wait
		}
		return h.note(fmt.Sprintf("B%d ", c.Monotonic()), act.Done)
	}))
	require.NoError(t, s.Run())
	require.Equal(t, "B20 A30", h.String())
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

func TestTheEndOfATaskCancelsItsTimers(t *testing.T) {
	for _, row := range []struct {
		name string
		end  act.Func
	}{
		{"done", func(*act.Task) act.Directive { return act.Done }},
		{"failed", func(*act.Task) act.Directive { return act.Failed }},
		{"panicked", func(*act.Task) act.Directive { return explode("boom") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c, _ := newVirtual(t, act.Config{})
			var timers [3]act.Timer
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				for i := range timers {
					t.WakeAt(&timers[i], time.Duration(10*(i+1)))
				}
				return row.end(t)
			}))
			require.NoError(t, s.Run())
			for i := range timers {
				require.False(t, timers[i].Armed())
			}
			_, armed := s.NextDeadline()
			require.False(t, armed)

			turns := 0
			s.Spawn(act.Func(func(t *act.Task) act.Directive { // in the same place
				turns++
				return stay(t)
			}))
			for range 5 {
				c.advance(10)
				_, err := s.Step(10)
				require.NoError(t, err)
			}
			require.Equal(t, 1, turns)
		})
	}
}

func TestWhatACloserArmsIsCancelledToo(t *testing.T) {
	s, _, _ := newVirtual(t, act.Config{})
	var tm act.Timer
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		t.Own(&closer{func() error {
			t.WakeAt(&tm, 10)
			return nil
		}})
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.False(t, tm.Armed())
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
			c.advance(start)
			var tm act.Timer
			s.Spawn(act.Func(func(task *act.Task) act.Directive {
				c.advance(stale)
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
	c.advance(time.Second)
	s.Spawn(h.sleeper("A", time.Millisecond))
	s.Spawn(h.script("B", 4, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "B|BA|BB|", h.String(), "not in the turn that arms it, and not at once")
}

// A pass takes its time too: a sleep that began with the pass's reading of the clock would be too long.
func TestASleepIsShorterByWhatThePassHasTaken(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	i := &dreamer{clock: c}
	s.SetIdler(i)
	var h history
	s.Spawn(h.sleeper("A", 50))
	s.Post(func(*act.Scheduler) { c.advance(40) })
	require.NoError(t, s.Run())
	require.Equal(t, []time.Duration{10}, i.sleeps)
	require.Equal(t, time.Duration(50), c.Monotonic())

	s.Spawn(h.sleeper("B", 100))
	s.Post(func(*act.Scheduler) { c.advance(60) })
	require.NoError(t, s.Run())
	require.Equal(t, []time.Duration{10}, i.sleeps, "due before the pass has ended: no sleep")
	require.Equal(t, time.Duration(110), c.Monotonic())
}

// Turns that follow a sleep come before the next pass, and must not take the time before it for now.
func TestNowIsFreshAfterASleep(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var waker act.Waker
	s.SetIdler(idlerOf(func(atMost time.Duration) {
		if atMost != 0 {
			c.advance(time.Hour)
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

func TestATimerFindsItsTaskInWhateverTurn(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var tm act.Timer
	var woken []time.Duration
	s.Spawn(act.Func(func(task *act.Task) act.Directive {
		woken = append(woken, c.Monotonic())
		switch len(woken) {
		case 1:
			task.WakeAt(&tm, 10)
			task.Waker().Wake()
			return act.Wait // turn 2 comes at once, and the timer stays
		case 2, 3, 4:
			require.True(t, tm.Armed())
			if len(woken) == 4 {
				return act.Wait
			}
			return act.Yield
		}
		require.False(t, tm.Armed())
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []time.Duration{0, 0, 0, 0, 10}, woken)
}

func TestCallAtCallsBackOnTime(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var tm act.Timer
	var called []time.Duration
	var tick expiry
	tick = func() {
		called = append(called, c.Monotonic())
		if len(called) < 3 {
			s.CallAt(&tm, tm.When()+10, tick)
		}
	}
	s.CallAt(&tm, 10, tick)
	require.NoError(t, s.Run())
	require.Empty(t, called, "it does not keep Run from returning")
	var h history
	s.Spawn(h.sleeper("A", 100))
	require.NoError(t, s.Run())
	require.Equal(t, []time.Duration{10, 20, 30}, called)
}

func TestAPanicInExpireEndsRunWithAnError(t *testing.T) {
	s, _, _ := newVirtual(t, act.Config{})
	var h history
	var tm act.Timer
	s.CallAt(&tm, 10, expiry(func() { panic("lost count") }))
	s.Spawn(h.sleeper("A", 100))
	require.ErrorContains(t, s.Run(), "act: the scheduler broke down: panic: lost count")
}

// What is due beyond the bound of a pass keeps the thread awake and comes in the next.
func TestAPassFiresAtMost1024Timers(t *testing.T) {
	const n = 2*act.TimersAPass + 100
	var passes []int
	fired := 0
	s, c, _ := newVirtual(t, act.Config{Trace: &act.Trace{
		Pass: func(*act.Scheduler) { passes = append(passes, fired) },
	}})
	s.SetIdler(&dreamer{clock: c, insomniac: true})
	timers := make([]act.Timer, n)
	for i := range timers {
		s.CallAt(&timers[i], 10, expiry(func() {
			if fired++; fired == n {
				s.Hold(-1)
			}
		}))
	}
	c.advance(10)
	s.Hold(1)
	require.NoError(t, s.Run())
	require.Equal(t, []int{0, act.TimersAPass, 2 * act.TimersAPass}, passes)
}

// A callback that arms itself for now is called no more often than the bound of a pass allows.
func TestATimerThatIsAlwaysDueStarvesNothing(t *testing.T) {
	s, _, _ := newVirtual(t, act.Config{})
	var tm act.Timer
	calls := 0
	var again expiry
	again = func() {
		calls++
		s.CallAt(&tm, 0, again)
	}
	s.CallAt(&tm, 0, again)
	var h history
	s.Spawn(h.script("A", 1000, act.Yield))
	s.Install(&demon{act: h.script("d", 5, act.Yield)})
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.LessOrEqual(t, calls, 20*act.TimersAPass)
}

func TestNextDeadlineIsNotLaterThanTheEarliest(t *testing.T) {
	for seed := range int64(20) {
		rnd := rand.New(rand.NewSource(seed))
		s, c, _ := newVirtual(t, act.Config{})
		s.Hold(1)
		timers := make([]act.Timer, 100)
		fired := 0
		for i := range timers {
			s.CallAt(&timers[i], time.Duration(1+rnd.Int63n(1<<rnd.Intn(40))), expiry(func() { fired++ }))
		}
		for looks := 0; fired < len(timers); looks++ {
			require.Less(t, looks, 15*len(timers), "only a few looks for nothing")
			_, err := s.Step(1)
			require.NoError(t, err)
			armed := slices.DeleteFunc(slices.Clone(deadlines(timers)), func(d time.Duration) bool { return d == 0 })
			when, ok := s.NextDeadline()
			require.Equal(t, len(armed) > 0, ok)
			if ok {
				require.LessOrEqual(t, when, slices.Min(armed))
				require.Greater(t, when, c.Monotonic(), "a step has fired what was due")
				c.advance(when - c.Monotonic())
			}
		}
	}
}

// deadlines returns those of the timers that are armed, 0 for the others.
func deadlines(timers []act.Timer) (all []time.Duration) {
	for i := range timers {
		when := time.Duration(0)
		if timers[i].Armed() {
			when = timers[i].When()
		}
		all = append(all, when)
	}
	return all
}

func TestAThreadLooksOnceAPassAndDoesNotSpinInASleep(t *testing.T) {
	var looks int
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Idle: func(*act.Scheduler, time.Duration) { looks++ }}})
	s.Spawn(yields(1000))
	s.Spawn(sleep(100 * time.Millisecond))
	require.NoError(t, s.Run())
	require.Less(t, looks, 1000/64+20, "one look a pass, and hardly any during the sleep")
}

func TestADeadlineInThePastFiresBehindWhatIsDue(t *testing.T) {
	c := &clock{}
	c.advance(time.Hour)
	s, _ := newScheduler(t, act.Config{Clock: c})
	var h history
	s.Hold(1)
	var due, past act.Timer
	s.CallAt(&due, time.Hour, expiry(func() { h.WriteString("d") }))
	s.CallAt(&past, time.Minute, expiry(func() { h.WriteString("p") }))
	_, err := s.Step(1)
	require.NoError(t, err)
	require.Equal(t, "dp", h.String())
}
