package act_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// told is a task that hears of orders.
type told struct {
	act.Func
	stop func(t *act.Task, o shutdown.Order)
}

func (a told) Stop(t *act.Task, o shutdown.Order) { a.stop(t, o) }

// closing is a task that notes that it was closed.
type closing struct {
	act.Func
	closed *int
}

func (a closing) Close() error {
	*a.closed++
	return nil
}

// forever yields until it is stopped from outside.
func forever(*act.Task) act.Directive { return act.Yield }

// idle waits.
func idle(t *act.Task) act.Directive {
	t.Waker()
	return act.Wait
}

// yields is a task of n turns.
func yields(n int) act.Func {
	return func(*act.Task) act.Directive {
		if n--; n <= 0 {
			return act.Done
		}
		return act.Yield
	}
}

// requireCut returns the Cut that err must be.
func requireCut(t testing.TB, err error) *shutdown.Cut {
	t.Helper()
	var cut *shutdown.Cut
	require.ErrorAs(t, err, &cut)
	return cut
}

// A small world of everything that a suspension must leave intact: yields, waits with a monitor, a
// yielding demon, timers, an AtTurnEnd, a spawn, a failure and a pass bound that falls inside rounds.
func populate(s *act.Scheduler, h *history) {
	m := attach(s)
	s.Spawn(h.script("A", 7, act.Yield))
	s.Spawn(h.waiter("B", 5, m))
	left := 6
	s.Install(&demon{act: func(*act.Task) act.Directive {
		if left--; left == 0 {
			return h.note("D", act.Done)
		}
		return h.note("D", act.Yield)
	}})
	var tick act.Timer
	ticks := 3
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if ticks--; ticks == 0 {
			return h.note("T", t.Fail(errors.New("ticked out")))
		}
		t.WakeAfter(&tick, time.Second)
		return h.note("T", act.Wait)
	}))
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		w := t.Waker()
		s.Internals().AtTurnEnd(turnEnd(func() { h.WriteString("e"); w.Wake() }))
		s.Spawn(h.script("S", 3, act.Yield))
		return h.note("E", act.Done)
	}))
}

func TestASuspendedRunGoesOnLaterAsIfNothingHadBeenAtEveryCutPoint(t *testing.T) {
	for _, turns := range []int{1, 3, 64} {
		whole, n := suspendedAt(t, turns, -1)
		require.Greater(t, n, 20)
		for at := range n {
			pieces, _ := suspendedAt(t, turns, at)
			require.Equal(t, whole, pieces, "suspended after turn %d, pass bound %d", at, turns)
		}
	}
}

// suspendedAt returns the history of a run that is suspended after so many turns and then continued,
// and how many turns there were.
func suspendedAt(t *testing.T, bound, at int) (string, int) {
	var h history
	var s *act.Scheduler
	turns := 0
	cfg := act.Config{TurnsPerPass: bound, Trace: &act.Trace{
		TurnStart: func(*act.Task) {
			if turns == at {
				s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend})
			}
			turns++
		},
		Told: func(*act.Task, shutdown.Order) { h.WriteString("!") },
	}}
	s, _, _ = newVirtual(t, cfg)
	populate(s, &h)
	err := s.Run()
	if turns == at+1 && err != nil {
		requireCut(t, err)
		err = s.Run()
	}
	require.NoError(t, err)
	return h.String(), turns
}

// Three tasks of so many turns note each with a capital, and with a small letter that they were told.
func TestWhatAnOrderLeavesForALaterRun(t *testing.T) {
	for name, row := range map[string]struct {
		policy shutdown.Policy
		trace  string // x: dropped
		later  string
		tasks  int // cut
	}{
		"nothing":                       {shutdown.Policy{Kind: shutdown.Unbounded}, "abcABCABCAA", "", 0},
		"who is out of turns":           {shutdown.Policy{Turns: 2}, "abcABCABC", "AA", 1},
		"out of turns, and dropped":     {shutdown.Policy{Turns: 1, Drop: true}, "abcABCxxx", "", 3},
		"all, told":                     {shutdown.Policy{Kind: shutdown.Halt}, "abc", "ABCABCAA", 3},
		"all, told and dropped":         {shutdown.Policy{Kind: shutdown.Halt, Drop: true}, "abcxxx", "", 3},
		"all, who hear nothing":         {shutdown.Policy{Kind: shutdown.Suspend}, "", "ABCABCAA", 3},
		"who hear nothing, and dropped": {shutdown.Policy{Kind: shutdown.Suspend, Drop: true}, "xxx", "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) {
				if errors.Is(err, act.ErrDropped) {
					h.WriteString("x")
				}
			}}})
			for i, turns := range []int{4, 2, 2} {
				play := h.script(string(rune('A'+i)), turns, act.Yield)
				s.Spawn(told{play, func(*act.Task, shutdown.Order) { h.WriteString(string(rune('a' + i))) }})
			}
			s.Shutdown(row.policy)
			err := s.Run()
			require.Equal(t, row.trace, h.take())
			if row.tasks > 0 {
				cut := requireCut(t, err)
				require.Equal(t, row.tasks, cut.Tasks)
				require.Equal(t, row.policy.Drop, cut.Dropped)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, s.Run())
			require.Equal(t, row.later, h.take())
		})
	}
}

func TestTheDroppedAreGarbage(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	defer runtime.KeepAlive(s)
	var gone []weak.Pointer[demon]
	for i := range 3 {
		timer := &act.Timer{}
		a := &demon{act: func(t *act.Task) act.Directive {
			switch i {
			case 0:
				return act.Yield
			case 1:
				t.WakeAfter(timer, time.Hour)
			default:
				t.Waker().Remote()
			}
			return act.Wait
		}}
		gone = append(gone, weak.Make(a))
		s.Spawn(a)
	}
	_, err := s.Step(5)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend, Drop: true})
	require.Equal(t, 3, requireCut(t, s.Run()).Tasks)
	runtime.GC()
	for i, a := range gone {
		require.Nil(t, a.Value(), "task %d", i)
	}
}

func TestAnOrderCallsStopOfWaitingTasksAndMakesThemReadyOnce(t *testing.T) {
	woken := 0
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Woken: func(*act.Task) { woken++ }}})
	turns := make([]int, 3)
	waits := func(i int) act.Func {
		return func(t *act.Task) act.Directive {
			if turns[i]++; turns[i] == 3 {
				return act.Done
			}
			return idle(t)
		}
	}
	stops := 0
	s.Spawn(waits(0))
	s.Spawn(told{waits(1), func(*act.Task, shutdown.Order) { stops++ }})
	s.Spawn(told{waits(2), func(t *act.Task, _ shutdown.Order) { stops++; t.Waker().Wake(); t.Waker().Wake() }})
	_, err := s.Step(100)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	for range 3 {
		_, err = s.Step(100)
		require.NoError(t, err)
		require.Equal(t, []int{2, 2, 2}, turns, "a task that is no Stopper may also look at the order once")
	}
	require.Equal(t, 2, stops)
	require.Equal(t, 3, woken)
}

func TestAStopThatPanicsFailsThatTaskAlone(t *testing.T) {
	var ended []error
	s, logs := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) {
		ended = append(ended, err)
	}}})
	closed, heard := 0, 0
	boom := errors.New("boom")
	s.Spawn(struct {
		told
		io.Closer
	}{told{idle, func(*act.Task, shutdown.Order) { panic(boom) }}, &closer{func() error { closed++; return nil }}})
	s.Spawn(told{func(t *act.Task) act.Directive {
		if t.Order() != nil {
			return act.Done
		}
		return idle(t)
	}, func(*act.Task, shutdown.Order) { heard++ }})
	_, err := s.Step(2)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, s.Run())
	require.Equal(t, 1, heard, "the others are told")
	require.Equal(t, 1, closed)
	require.Equal(t, []string{"a task failed"}, messages(logs), "reported once")
	var p *act.Panic
	require.Len(t, ended, 2)
	require.ErrorAs(t, ended[0], &p)
	require.ErrorIs(t, ended[0], boom)
	require.Contains(t, string(p.Stack), "order_test.go")
}

// What was broken: the error of a Fail in Stop was taken for that of a later turn which gave none.
func TestAFailInStopIsNotTheFailureOfALaterTurn(t *testing.T) {
	for name, waits := range map[string]bool{"told while it waits": true, "told before a turn": false} {
		t.Run(name, func(t *testing.T) {
			ended := map[string]error{}
			s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(t *act.Task, err error) { ended[t.String()] = err }}})
			end := func(t *act.Task) act.Directive {
				if t.Order() == nil {
					return idle(t)
				}
				if err := t.Err(); err != nil {
					return t.Fail(fmt.Errorf("it has come over: %w", err))
				}
				return act.Failed
			}
			if !waits {
				s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			}
			s.Spawn(told{end, func(t *act.Task, _ shutdown.Order) { t.Fail(errors.New("of no turn")) }})
			s.Spawn(gateway{end})
			if waits {
				_, err := s.Step(2)
				require.NoError(t, err)
				s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			}
			require.NoError(t, s.Run())
			require.Len(t, ended, 2)
			for who, err := range ended {
				require.EqualError(t, err, "failed without saying why", who)
			}
		})
	}
}

func TestStopIsRepeatedOnlyWhenSomethingGotStricter(t *testing.T) {
	s, clock, _ := newVirtual(t, act.Config{})
	heard := 0
	var latest shutdown.Order
	s.Spawn(told{func(t *act.Task) act.Directive { latest = t.Order(); return act.Yield },
		func(*act.Task, shutdown.Order) { heard++ }})
	var want shutdown.Order
	for i, c := range []struct {
		policy   shutdown.Policy
		stricter bool
	}{
		{shutdown.Policy{Kind: shutdown.Unbounded}, true},
		{shutdown.Policy{Kind: shutdown.Unbounded}, false},
		{shutdown.Policy{Turns: 1000}, true},
		{shutdown.Policy{Turns: 1001}, false},
		{shutdown.Policy{Turns: 1000, Time: time.Hour}, true},
		{shutdown.Policy{Time: time.Hour}, false}, // an hour from now is later
		{shutdown.Policy{Time: time.Minute}, true},
		{shutdown.Policy{Turns: 999}, true},
		{shutdown.Policy{Kind: shutdown.Unbounded, Drop: true}, true},
		{shutdown.Policy{}, true}, // thirty seconds
		{shutdown.Policy{}, false},
		{shutdown.Policy{Turns: 1, Time: 30 * time.Second, Drop: true}, true},
	} {
		o := numbered{i, c.policy}
		before := heard
		clock.Pass(time.Millisecond)
		s.Shutdown(o)
		_, err := s.Step(1)
		require.NoError(t, err)
		require.Equal(t, c.stricter, heard > before, "order %d", i)
		if c.stricter {
			require.Equal(t, before+1, heard)
			want = o
		}
		require.Equal(t, want, latest, "Task.Order is the latest that was stricter")
	}
}

// numbered is an order that can be told from its equals.
type numbered struct {
	number int
	policy shutdown.Policy
}

func (o numbered) Policy() shutdown.Policy { return o.policy }

// upgrade is an application's own order.
type upgrade struct {
	successor string
	policy    shutdown.Policy
}

func (u upgrade) Policy() shutdown.Policy { return u.policy }

func TestAnOrderMayComeFromAnywhere(t *testing.T) {
	halt := shutdown.Policy{Kind: shutdown.Halt, Drop: true}
	for name, give := range map[string]func(s *act.Scheduler){
		"from a turn": func(s *act.Scheduler) {
			s.Spawn(act.Func(func(*act.Task) act.Directive { s.Shutdown(halt); return act.Yield }))
		},
		"from a posted function": func(s *act.Scheduler) {
			s.Post(func(s *act.Scheduler) { s.Shutdown(halt) })
		},
		"from another goroutine": func(s *act.Scheduler) {
			s.Post(func(s *act.Scheduler) { go s.Shutdown(halt) })
		},
		"between Runs": func(s *act.Scheduler) { s.Shutdown(halt) },
		"twice":        func(s *act.Scheduler) { s.Shutdown(halt); s.Shutdown(halt) },
		"from a turn's end": func(s *act.Scheduler) {
			s.Internals().AtTurnEnd(turnEnd(func() { s.Shutdown(halt) }))
		},
		"from a demon": func(s *act.Scheduler) {
			s.Install(&demon{act: func(*act.Task) act.Directive { s.Shutdown(halt); return act.Yield }})
		},
		"in Stop": func(s *act.Scheduler) {
			s.Spawn(told{forever, func(*act.Task, shutdown.Order) { s.Shutdown(halt) }})
			s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newScheduler(t, act.Config{})
			s.Spawn(act.Func(forever))
			s.Spawn(act.Func(idle))
			give(s)
			servertest.InTime(t, func() {
				cut := requireCut(t, s.Run())
				require.Equal(t, halt, cut.Order)
				require.True(t, cut.Dropped)
			})
			require.Nil(t, s.Group().Order(), "the order is spent")
			require.NoError(t, s.Run())
		})
	}
}

func TestASenselessOrderPanicsWhereItIsGiven(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	require.PanicsWithValue(t, "act: Shutdown without an order", func() { s.Shutdown(nil) })
	require.PanicsWithValue(t, "shutdown: a Policy with a negative bound: -1 turns, 0s, announced for 0s, spread over 0s, inactive for 0s",
		func() { s.Shutdown(shutdown.Policy{Turns: -1}) })
	require.NoError(t, s.Run(), "and the scheduler is as it was")
}

func TestMonitorsSurviveADrop(t *testing.T) {
	for _, kind := range []shutdown.Kind{shutdown.Halt, shutdown.Suspend} {
		s, logs := newScheduler(t, act.Config{})
		turns := [4]int{}
		monitorOf := func(i int) act.Demon {
			return &demon{act: func(*act.Task) act.Directive { turns[i]++; return act.Yield },
				stop: func(*act.Task, shutdown.Order) {}}
		}
		s.Attach(monitorOf(0))
		s.Install(monitorOf(1)) // between the two and after them, in whatever queue they are
		s.Attach(monitorOf(2))
		s.Install(monitorOf(3))
		s.Spawn(act.Func(forever))
		_, err := s.Step(20)
		require.NoError(t, err)
		s.Shutdown(shutdown.Policy{Kind: kind, Drop: true})
		cut := requireCut(t, s.Run())
		require.Equal(t, 2, cut.Demons, "monitors are not cut")
		before := turns
		s.Spawn(yields(300))
		require.NoError(t, s.Run(), "nor do they keep Run from returning")
		require.Greater(t, turns[0], before[0])
		require.Equal(t, before[1]+before[3], turns[1]+turns[3])
		require.Equal(t, turns[2]-before[2], turns[0]-before[0], "each has its turn in every pass")
		require.Empty(t, messages(logs))
	}
}

// gateway and ticker lend their names to what a Cut says.
type gateway struct{ act.Func }
type ticker struct{ demon }

func TestACutCountsAndNamesWhatItCut(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	for range 3 {
		s.Spawn(gateway{idle})
	}
	s.Spawn(act.Func(forever))
	s.Install(&ticker{demon{act: forever, stop: func(*act.Task, shutdown.Order) {}}})
	release := make(chan struct{})
	defer close(release)
	s.Spawn(gateway{func(t *act.Task) act.Directive { return t.Offload(func() { <-release }) }})
	s.Internals().KeepRunning(2)
	attach(s)
	_, err := s.Step(10)
	require.NoError(t, err)
	o := upgrade{"b", shutdown.Policy{Kind: shutdown.Halt, Drop: true}}
	s.Shutdown(o)
	err = s.Run()
	s.Internals().KeepRunning(-2)
	cut := requireCut(t, err)
	require.Len(t, cut.Left, 5, "the demon does not count: no end has waited for it")
	require.Equal(t, cut.Names, cut.Kinds, "without services")
	cut.Left, cut.Kinds = nil, nil
	require.Equal(t, &shutdown.Cut{
		Order: o, Tasks: 5, Demons: 1, Offloads: 1, Lingering: 2, Dropped: true,
		Names: []shutdown.Count{
			{Name: "act_test.gateway", N: 4}, {Name: "github.com/daimon-go/daimon/act_test.forever", N: 1}, {Name: "*act_test.ticker", N: 1},
		},
	}, cut)
	require.EqualError(t, err, "shutdown: dropped 5 tasks, 1 demon, 1 running offload, 2 lingering closes "+
		"(4 × act_test.gateway, github.com/daimon-go/daimon/act_test.forever, *act_test.ticker)"+
		"; order: act_test.upgrade; policy: halt, then drop")
}

// What was broken (sim, TestWorldMixed, seed 5): a waiting task that was dropped was woken by its own closer, or by
// another's, and its place was given away while it stood in the queue.
func TestTheDroppedAreNotWokenByTheirClosers(t *testing.T) {
	var h history
	s := act.New(act.Config{Trace: &act.Trace{Woken: func(*act.Task) { h.WriteString("w") }}})
	defer func() { require.NoError(t, s.Close()) }()
	var wakers []act.Waker
	for range 3 {
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			wakers = append(wakers, t.Waker())
			if t.Order() == nil {
				t.Own(&closer{func() error { h.WriteString("c"); wakeAll(wakers); return nil }})
			}
			return act.Wait
		}))
	}
	_, err := s.Step(3)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Time: time.Millisecond, Drop: true})
	require.Error(t, s.Run(), "a Cut")
	require.Equal(t, "www"+"ccc", h.take(), "woken to be told, and by nothing else")
	for _, letter := range []string{"A", "B", "C", "D"} { // in the places of the dropped
		s.Spawn(h.script(letter, 1, act.Done))
	}
	require.NoError(t, s.Run())
	require.Equal(t, "ABCD", h.take())
}

func wakeAll(wakers []act.Waker) {
	for _, w := range wakers {
		w.Wake()
	}
}
