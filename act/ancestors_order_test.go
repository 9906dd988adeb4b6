package act_test

// Mistakes of the systems that this one unites, as far as orders, schedulers in number and work off the
// thread are concerned: each test is named after what was wrong there. Those of the scheduler itself,
// and short forms of some of these, are in ancestors_test.go.

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

func TestAncestorTwoPhasesOfOneTaskletCouldRunAtOnce(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var inside atomic.Int32
	phase := func() {
		if inside.Add(1) != 1 {
			panic("two phases at once")
		}
		inside.Add(-1)
	}
	var wakers []act.Waker
	n := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		phase()
		if n++; n == 500 {
			return act.Done
		}
		w := t.Waker()
		wakers = append(wakers, w)
		r := w.Remote()
		return t.Offload(func() {
			r.Wake() // asks for the next phase while this one runs
			phase()
			r.Wake()
		})
	}))
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		for _, w := range wakers {
			w.Wake()
		}
		if wakers = wakers[:0]; n >= 500 {
			return act.Done
		}
		return act.Yield
	}))
	require.NoError(t, s.Run())
	require.Empty(t, messages(logs))
	require.Equal(t, 500, n)
}

func TestAncestorAMessageBetweenEmptyAndSleepingWasLost(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	const n = 20_000
	var got int
	s.Hold(1)
	go func() {
		for i := range n {
			s.Post(func(s *act.Scheduler) {
				if got++; got == n {
					s.Hold(-1)
				}
			})
			if i%16 == 0 {
				time.Sleep(time.Microsecond) // lets the receiver get to the point of falling asleep
			}
		}
	}()
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, n, got)
}

func TestAncestorAThreadThatHadWorkedOnceSpunForEver(t *testing.T) {
	var looks int
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Idle: func(*act.Scheduler, time.Duration) { looks++ }}})
	s.Spawn(yields(1000))
	s.Spawn(sleep(100 * time.Millisecond))
	require.NoError(t, s.Run())
	require.Less(t, looks, 1000/64+20, "one look a pass, and hardly any during the sleep")
}

func TestAncestorTheStatusWasSetBeforeTheStageWasRolledBackSoThatSuspensionFailed(t *testing.T) {
	// A task that is suspended between two turns finds its own state as its last turn left it, however often that happens.
	s, _ := newScheduler(t, act.Config{})
	stage := 0
	var seen []int
	s.Spawn(told{func(*act.Task) act.Directive {
		seen = append(seen, stage)
		stage++
		s.Shutdown(plain(shutdown.Suspend))
		if stage == 5 {
			return act.Done
		}
		return act.Yield
	}, func(*act.Task, shutdown.Order) { stage = -100 }})
	for range 4 {
		requireCut(t, s.Run())
	}
	require.NoError(t, s.Run())
	require.Equal(t, []int{0, 1, 2, 3, 4}, seen)
}

func TestAncestorAKilledProcessLeftItsRowsProcessingForEver(t *testing.T) {
	rows := map[int]string{}
	s, _ := newScheduler(t, act.Config{})
	for i := range 10 {
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if rows[i] == "" {
				rows[i] = "processing"
				t.Own(&closer{func() error { rows[i] = "pending"; return nil }})
			}
			switch i % 3 {
			case 0:
				panic("killed")
			case 1:
				return t.Fail(errors.New("killed"))
			}
			return act.Yield // until it is dropped
		}))
	}
	_, err := s.Step(30)
	require.NoError(t, err)
	s.Shutdown(plain(haltAndDrop))
	requireCut(t, s.Run())
	require.Len(t, rows, 10)
	for i, row := range rows {
		require.Equal(t, "pending", row, "row %d", i)
	}
}

func TestAncestorAServiceCouldNotHandOverItsLastTaskToASiblingAndEndInTheSameTurn(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 2})
	var ran atomic.Int32
	task := act.Func(func(*act.Task) act.Directive { ran.Add(1); return act.Done })
	require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
		if s.Index() == 0 {
			s.Install(&demon{act: func(*act.Task) act.Directive {
				s.Spawn(task)
				g.Schedulers()[1].Post(func(s *act.Scheduler) { s.Spawn(task) })
				return act.Done
			}})
		}
		return nil
	}))
	require.EqualValues(t, 2, ran.Load())
}
