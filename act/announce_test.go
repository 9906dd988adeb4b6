package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// second is a task that has a turn a second, which it notes, and notes that it was told.
func (h *history) second(letter, toldLetter string) act.Action {
	var tick act.Timer
	return told{func(t *act.Task) act.Directive {
		if t.Scheduler().Now() >= tick.When() || !tick.Armed() {
			t.WakeAfter(&tick, time.Second)
		}
		return h.note(letter, act.Wait)
	}, func(*act.Task, shutdown.Order) { h.WriteString(toldLetter) }}
}

// at has f called at a point in time.
func at(s *act.Scheduler, when time.Duration, f func()) {
	s.CallAt(&act.Timer{}, when, expiry(f))
}

func TestThePhasesOfAnEnd(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy shutdown.Policy
		trace  string // t: a turn, a second; !: told; the turn after that is due to the order
		ends   time.Duration
	}{
		"none":                     {shutdown.Policy{Time: 3500 * ms}, "!tttt", 3500 * ms},
		"announced":                {shutdown.Policy{Time: 3500 * ms, Announce: 1500 * ms}, "tt!ttt", 3500 * ms},
		"announced for too long":   {shutdown.Policy{Time: 3 * time.Second, Announce: time.Hour}, "tt!tt", 3 * time.Second},
		"announced, then no turns": {shutdown.Policy{Kind: shutdown.Halt, Announce: 2500 * ms}, "ttt!", 2500 * ms},
		"announced, then suspended": {
			shutdown.Policy{Kind: shutdown.Suspend, Announce: 2500 * ms}, "ttt", 2500 * ms},
		"announced, then some turns": {shutdown.Policy{Turns: 2, Announce: 1500 * ms, Drop: true}, "tt!tt", 3 * time.Second},
		"some turns behind a window": {shutdown.Policy{Turns: 2, Announce: 1500 * ms, Spread: 2 * time.Second, Drop: true}, "tt!ttttt", 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, _ := newVirtual(t, act.Config{})
			var h history
			s.Spawn(h.second("t", "!"))
			o := c.policy
			s.Shutdown(o)
			require.Equal(t, o, s.Group().Order(), "announced or in force")
			cut := requireCut(t, s.Run())
			require.Equal(t, c.trace, h.String())
			require.Equal(t, c.ends, clock.Monotonic())
			require.Equal(t, 1, cut.Tasks)
			require.Equal(t, o, cut.Order)
			require.Nil(t, s.Group().Order(), "the order is spent")
		})
	}
}

func TestAnOrderThatCannotBeComparedIsNotWithdrawn(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Shutdown(uncomparable{"here"})
	require.PanicsWithValue(t, "act: Withdraw of an order that cannot be compared: give it as a pointer", func() {
		s.Group().Withdraw(uncomparable{})
	})
	require.False(t, s.Group().Withdraw(shutdown.Policy{Announce: time.Second}), "and it is no trouble to others")
	require.NoError(t, s.Run())
}

// uncomparable is an order that is a slice.
type uncomparable []string

func (uncomparable) Policy() shutdown.Policy { return shutdown.Policy{Announce: time.Second} }

func TestANewTaskHasASecondForItsFirstWork(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy shutdown.Policy
		age    time.Duration // of the task, when the order comes
		leave  time.Duration // after the order
	}{
		"for a while":            {shutdown.Policy{Time: time.Minute}, 300 * ms, 700 * ms},
		"half of the time":       {shutdown.Policy{Time: time.Second}, 0, 500 * ms},
		"half of the inactivity": {shutdown.Policy{Time: time.Minute, Inactivity: time.Second}, 0, 500 * ms},
		"not with turns":         {shutdown.Policy{Turns: 1, Time: time.Minute}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, _ := newVirtual(t, act.Config{})
			clock.Pass(5 * time.Second)
			since := clock.Monotonic() - c.age
			leave := time.Duration(-1)
			s.Spawn(told{func(t *act.Task) act.Directive {
				if t.Order() != nil {
					return act.Done
				}
				return idle(t)
			}, func(t *act.Task, _ shutdown.Order) { leave = t.Scheduler().Internals().FirstLeaveTime(t, since) }})
			s.Shutdown(c.policy)
			require.NoError(t, s.Run())
			require.Equal(t, c.leave, leave-clock.Monotonic())
		})
	}
}

// Otherwise they are told when the others have ended, which TestWorldEnds shows.
func TestAHaltTellsThoseThatEndLastToo(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	heard := 0
	s.Internals().InstallLast(&demon{act: idle, stop: func(*act.Task, shutdown.Order) { heard++ }})
	s.Spawn(act.Func(idle))
	_, err := s.Step(10)
	require.NoError(t, err)
	s.Shutdown(halt)
	requireCut(t, s.Run())
	require.Equal(t, 1, heard)
}

func TestATaskThatIsNotToKnowOfOrdersDoesNot(t *testing.T) {
	s, _, _ := newVirtual(t, act.Config{})
	a := &undisturbed{}
	s.Spawn(a)
	s.Shutdown(shutdown.Policy{Time: time.Second})
	requireCut(t, s.Run())
	require.Equal(t, 1, a.told)
	require.Nil(t, a.saw)
}

// undisturbed serves a connection.
type undisturbed struct {
	sleeper
	told int
	saw  shutdown.Order
}

func (a *undisturbed) Act(t *act.Task) act.Directive {
	if o := t.Order(); o != nil {
		a.saw = o
	}
	return idle(t)
}

func (a *undisturbed) Stop(*act.Task, shutdown.Order) { a.told++ }
func (*undisturbed) Undisturbed() bool                { return true }
