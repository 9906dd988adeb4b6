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
		trace  string // t: a turn, a second; !: told; the turn behind that is due to the order
		ends   time.Duration
	}{
		"none":                     {shutdown.Policy{Time: 3500 * ms}, "!tttt", 3500 * ms},
		"announced":                {shutdown.Policy{Time: 3500 * ms, Announce: 1500 * ms}, "tt!ttt", 3500 * ms},
		"announced for too long":   {shutdown.Policy{Time: 3 * time.Second, Announce: time.Hour}, "tt!tt", 3 * time.Second},
		"announced, then no turns": {shutdown.Policy{Kind: shutdown.Halting, Announce: 2500 * ms}, "ttt!", 2500 * ms},
		"announced, then suspended": {
			shutdown.Policy{Kind: shutdown.Suspending, Announce: 2500 * ms}, "ttt", 2500 * ms},
		"announced, then some turns": {shutdown.Policy{Turns: 2, Announce: 1500 * ms, Drop: true}, "tt!tt", 3 * time.Second},
		"some turns behind a window": {shutdown.Policy{Turns: 2, Announce: 1500 * ms, Spread: 2 * time.Second, Drop: true}, "tt!ttttt", 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, _ := newVirtual(t, act.Config{})
			var h history
			s.Spawn(h.second("t", "!"))
			o := plain(c.policy)
			s.Shutdown(o)
			require.Equal(t, o, s.Group().Ending(), "announced or in force")
			cut := requireCut(t, s.Run())
			require.Equal(t, c.trace, h.String())
			require.Equal(t, c.ends, clock.Monotonic())
			require.Equal(t, 1, cut.Tasks)
			require.Equal(t, o, cut.Order)
			require.Nil(t, s.Group().Ending(), "the order is spent")
		})
	}
}

func TestAnOrderAtOnceBringsWhatIsAnnouncedIntoForce(t *testing.T) {
	s, clock, _ := newVirtual(t, act.Config{})
	var h history
	s.Spawn(h.second("t", "!"))
	announced := plain(shutdown.Policy{Time: 5 * time.Second, Announce: 2500 * time.Millisecond})
	s.Shutdown(announced)
	at(s, 1500*time.Millisecond, func() { s.Shutdown(plain(shutdown.Unbounded)) })
	at(s, 1600*time.Millisecond, func() {
		require.False(t, s.Group().Withdraw(announced))
		s.Shutdown(plain(shutdown.Policy{Time: time.Second, Announce: time.Hour})) // no order is only announced any more
	})
	requireCut(t, s.Run())
	require.Equal(t, "tt!t!tt", h.String(), "the announced order is stricter than the other; then comes the third")
	require.Equal(t, 2600*time.Millisecond, clock.Monotonic())
}

func TestAnOrderThatCannotBeComparedIsNotWithdrawn(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Shutdown(uncomparable{"here"})
	require.PanicsWithValue(t, "act: Withdraw of an order that cannot be compared: give it as a pointer", func() {
		s.Group().Withdraw(uncomparable{})
	})
	require.False(t, s.Group().Withdraw(plain(shutdown.Policy{Announce: time.Second})), "and it is no trouble to others")
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
		"just spawned":              {shutdown.Policy{Time: time.Minute}, 0, time.Second},
		"for a while":               {shutdown.Policy{Time: time.Minute}, 300 * ms, 700 * ms},
		"for long":                  {shutdown.Policy{Time: time.Minute}, 3 * time.Second, 0},
		"without a bound":           {shutdown.Unbounded, 300 * ms, 700 * ms},
		"half of the time":          {shutdown.Policy{Time: time.Second}, 0, 500 * ms},
		"half of the inactivity":    {shutdown.Policy{Time: time.Minute, Inactivity: time.Second}, 0, 500 * ms},
		"not with turns":            {shutdown.Policy{Turns: 1, Time: time.Minute}, 0, 0},
		"in a window that is late":  {shutdown.Policy{Time: time.Minute, Spread: 10 * time.Second}, 0, 5 * time.Second},
		"in a window that is early": {shutdown.Policy{Time: time.Minute, Spread: 100 * ms}, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, _ := newVirtual(t, act.Config{})
			clock.advance(5 * time.Second)
			since := clock.Monotonic() - c.age
			leave := time.Duration(-1)
			s.Spawn(told{func(t *act.Task) act.Directive {
				if t.Order() != nil {
					return act.Done
				}
				return idle(t)
			}, func(t *act.Task, _ shutdown.Order) { leave = t.FirstLeaveTime(since) }})
			s.Shutdown(plain(c.policy))
			require.NoError(t, s.Run())
			require.Equal(t, c.leave, leave-clock.Monotonic())
		})
	}
}

func TestInactivityEndsRun(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy shutdown.Policy
		turns  int // of a task that has one a second
		ends   time.Duration
	}{
		"from the order on":                {shutdown.Policy{Inactivity: 5 * time.Second}, 0, 5 * time.Second},
		"from the last turn on":            {shutdown.Policy{Inactivity: 5 * time.Second}, 3, 7 * time.Second},
		"not while there are turns":        {shutdown.Policy{Inactivity: 1500 * ms, Time: 6 * time.Second}, 100, 6 * time.Second},
		"time comes first":                 {shutdown.Policy{Inactivity: 5 * time.Second, Time: 4 * time.Second}, 0, 4 * time.Second},
		"from the end of announcing":       {shutdown.Policy{Inactivity: time.Second, Time: time.Minute, Announce: 5 * time.Second}, 1, 6 * time.Second},
		"a shorter one is stricter":        {shutdown.Policy{Inactivity: 3 * time.Second}, 2, 4 * time.Second},
		"from the end of the window on":    {shutdown.Policy{Inactivity: 2 * time.Second, Time: time.Minute, Announce: time.Second, Spread: 5 * time.Second}, 0, 8 * time.Second},
		"a demon is not what it waits for": {shutdown.Policy{Inactivity: 2 * time.Second}, -1, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, _ := newVirtual(t, act.Config{})
			left := c.turns
			var tick act.Timer
			a := act.Func(func(t *act.Task) act.Directive {
				if left--; left != 0 {
					t.WakeAfter(&tick, time.Second)
				}
				return idle(t)
			})
			if c.turns < 0 {
				s.Install(&demon{act: a, stop: func(*act.Task, shutdown.Order) {}})
			}
			if c.turns > 0 {
				s.Spawn(a)
			}
			s.Spawn(act.Func(idle))
			s.Shutdown(plain(c.policy))
			if name == "a shorter one is stricter" {
				s.Shutdown(plain(shutdown.Policy{Inactivity: time.Hour}))
			}
			requireCut(t, s.Run())
			require.Equal(t, c.ends, clock.Monotonic())
		})
	}
}

// Otherwise they are told when the others have ended, which TestWorldEnds shows.
func TestAHaltTellsThoseThatEndLastToo(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	heard := 0
	s.InstallLast(&demon{act: idle, stop: func(*act.Task, shutdown.Order) { heard++ }})
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
	s.Shutdown(plain(shutdown.Policy{Time: time.Second}))
	requireCut(t, s.Run())
	require.Equal(t, 1, a.told)
	require.Nil(t, a.saw)
}

// undisturbed implements hook.Undisturbed.
type undisturbed struct {
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
