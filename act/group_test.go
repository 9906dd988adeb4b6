package act_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// haltAndDrop ends a Run at once.
var haltAndDrop = shutdown.Policy{Kind: shutdown.Halt, Drop: true}

// newGroup returns a Group that is closed at the end of the test, and what it logs.
func newGroup(t testing.TB, cfg act.Config) (*act.Group, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	cfg.Logger = zap.New(core)
	g := act.NewGroup(cfg)
	t.Cleanup(func() { _ = g.Close() }) // a Cut is the business of the tests that cut
	return g, logs
}

// sleepless makes an Idler that only ever looks.
type sleepless struct{ facts.Idler }

func (i sleepless) Idle(time.Duration) { i.Idler.Idle(0) }

// idlerFunc is an Idler made of a function.
type idlerFunc struct {
	facts.Idler
	idle func(atMost time.Duration)
}

func (i idlerFunc) Idle(atMost time.Duration) { i.idle(atMost) }

func TestEachSchedulerHasOneThreadOfItsOwnAlsoAcrossTwoRuns(t *testing.T) {
	for _, threads := range []act.Threads{act.Locked, act.Bound} {
		g, logs := newGroup(t, act.Config{Schedulers: 2, Threads: threads})
		ids := [2]map[uint64]int{{}, {}}
		for range 2 {
			require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
				seen := ids[s.Index()]
				seen[thread.ID()]++ // set-up is on the thread too
				n := 1000
				s.Spawn(act.Func(func(*act.Task) act.Directive {
					seen[thread.ID()]++
					if n--; n == 0 {
						return act.Done
					}
					return act.Yield
				}))
				return nil
			}))
		}
		require.Len(t, ids[0], 1)
		require.Len(t, ids[1], 1)
		for id, n := range ids[0] {
			require.Equal(t, 2*1001, n)
			require.NotContains(t, ids[1], id)
		}
		require.Empty(t, messages(logs))
	}
}

func TestWhichSchedulersAreBoundToWhichCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    act.Config
		refuse error
		bound  []int
	}{
		"none":                      {act.Config{Schedulers: 2}, nil, nil},
		"those of the list":         {act.Config{Threads: act.Bound, Schedulers: 2, CPUs: []int{7, 3, 5}}, nil, []int{7, 3}},
		"from the beginning again":  {act.Config{Threads: act.Bound, Schedulers: 3, CPUs: []int{7, 3}}, nil, []int{7, 3, 7}},
		"the system refuses to, so": {act.Config{Threads: act.Bound, Schedulers: 2, CPUs: []int{7}}, errors.New("not yours"), []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			var bound []int
			defer act.SetBind(func(cpu int) error { bound = append(bound, cpu); return c.refuse })()
			g, logs := newGroup(t, c.cfg)
			for range 2 {
				require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error { s.Spawn(yields(10)); return nil }))
			}
			require.Equal(t, c.bound, bound)
			require.Equal(t, c.refuse != nil, len(messages(logs)) == 1)
		})
	}
}

func TestHowManySchedulersThereAre(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5))
	for name, c := range map[string]struct {
		environment string
		quota, want int
		cpus        []int
	}{
		"one for each CPU":           {"", 0, min(5, len(thread.CPUs())), nil},
		"of the list":                {"", 0, 4, []int{0, 1, 2, 3}},
		"no more than GOMAXPROCS":    {"", 0, 5, []int{0, 1, 2, 3, 4, 5}},
		"no more than the quota":     {"", 3, 3, []int{0, 1, 2, 3}},
		"one is enough":              {"", 1, 1, nil},
		"a quota for more":           {"", 7, 4, []int{0, 1, 2, 3}},
		"the environment has chosen": {"5", 1, 4, []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.environment)
			defer act.SetQuota(func() int { return c.quota })()
			g, _ := newGroup(t, act.Config{Threads: act.Bound, CPUs: c.cpus})
			require.Len(t, g.Schedulers(), c.want)
		})
	}
}

func TestSetUpIsDoneOneSchedulerAfterAnotherBeforeAnyTurn(t *testing.T) {
	var order []int // without a lock: the race detector watches
	g, _ := newGroup(t, act.Config{Schedulers: 3})
	require.NoError(t, g.Run(t.Context(),
		func(s *act.Scheduler) error {
			order = append(order, 10+s.Index())
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				require.Len(t, order, 6)
				return act.Done
			}))
			return nil
		},
		func(s *act.Scheduler) error { order = append(order, 20+s.Index()); return nil },
	))
	require.Equal(t, []int{10, 20, 11, 21, 12, 22}, order)
}

func TestAnErrorOfSetUpEndsTheGroupBeforeAnyTurnAndCloses(t *testing.T) {
	refusal := errors.New("port in use")
	closed := 0
	err := act.Run(t.Context(), act.Config{Schedulers: 3, Logger: zap.NewNop()}, func(s *act.Scheduler) error {
		if s.Index() == 1 {
			return refusal
		}
		require.Zero(t, s.Index(), "the third is not set up any more")
		s.Spawn(closing{func(*act.Task) act.Directive { panic("a turn") }, &closed})
		return nil
	})
	require.Equal(t, refusal, err)
	require.Equal(t, 1, closed)
}

// What was broken: the one that looked whether all inboxes are empty had looked at its own; the last one
// in the row took what was in its own, sent it to the first, and was quiet again before it was looked at.
func TestWorkThatIsSentBackWhileAllInboxesAreLookedAtIsNotForgotten(t *testing.T) {
	const n = 64
	g, _ := newGroup(t, act.Config{Schedulers: n, Idle: func(s *act.Scheduler, i facts.Idler) facts.Idler {
		if s.Index() == 0 || s.Index() == n-1 {
			return sleepless{i}
		}
		return i
	}})
	left := tier.Choose(200, 200, 100_000) // bounces, each of which happens before the next
	var sent, run atomic.Int64
	var bounce func(s *act.Scheduler)
	send := func(to *act.Scheduler) {
		sent.Add(1)
		to.Post(bounce)
	}
	bounce = func(s *act.Scheduler) {
		run.Add(1)
		if left--; left > 0 {
			send(g.Schedulers()[n-1-s.Index()])
		}
	}
	send(g.Schedulers()[0])
	servertest.InTime(t, func() { require.NoError(t, g.Run(t.Context())) })
	require.Equal(t, sent.Load(), run.Load())
	require.Zero(t, left, "ended early")
}

// What was broken: each of them counted itself in at every pass, so there was hardly ever a moment at
// which none of them did; 64 went on for ever.
func TestManySchedulersThatNeverSleepFindOutThatNothingIsLeft(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 64,
		Idle: func(_ *act.Scheduler, i facts.Idler) facts.Idler { return sleepless{i} }})
	servertest.InTime(t, func() {
		require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error { s.Spawn(yields(s.Index())); return nil }))
	})
}

func TestCancellingTheContextIsAnOrderUnderTheTermsOfTheConfig(t *testing.T) {
	for name, early := range map[string]bool{"before Run": true, "during Run": false} {
		t.Run(name, func(t *testing.T) {
			reason := errors.New("the operator wants it so")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if early {
				cancel(reason)
			}
			g, _ := newGroup(t, act.Config{Schedulers: 2, Shutdown: shutdown.Policy{Turns: 3, Drop: true}})
			var mu sync.Mutex
			var seen []shutdown.Order
			err := g.Run(ctx, func(s *act.Scheduler) error {
				turns := 0
				s.Spawn(told{func(*act.Task) act.Directive {
					if turns++; turns == 10 {
						cancel(reason)
					}
					return act.Yield
				}, func(_ *act.Task, o shutdown.Order) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, o)
				}})
				return nil
			})
			cut := requireCut(t, err)
			require.Equal(t, 2, cut.Tasks, "the Cut is that of all schedulers")
			require.True(t, cut.Dropped)
			require.Len(t, seen, 2)
			require.ErrorIs(t, seen[0].(error), reason, "the order knows why")
			require.EqualError(t, seen[0].(error), "the context has ended: the operator wants it so")
		})
	}
}

// What was broken: the order of a context that ended as its Run did stayed in the inboxes.
func TestAContextThatEndsWithItsRunIsNoOrderToTheNext(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 2, Shutdown: haltAndDrop})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		err := g.Run(ctx, func(s *act.Scheduler) error {
			s.Spawn(act.Func(func(*act.Task) act.Directive { cancel(); return act.Done }))
			return nil
		})
		if err != nil {
			requireCut(t, err) // in time
		}
		require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error { s.Spawn(yields(100)); return nil }))
		cancel()
	}
}

func TestAGroupIsRunOnceAtATime(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 2})
	var inside, closing, run, step, closed error
	require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
		if s.Index() == 0 {
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				inside = g.Run(context.Background())
				closing = g.Close()
				run = s.Run()
				_, step = s.Step(1)
				closed = s.Close()
				return act.Done
			}))
		}
		return nil
	}))
	for _, err := range []error{inside, closing, run, step, closed} {
		require.ErrorContains(t, err, "already running")
	}
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Run(t.Context(), func(*act.Scheduler) error { panic("set up after Close") }), act.ErrClosed)
	require.NoError(t, g.Close(), "a second Close has nothing to do")
	g, _ = newGroup(t, act.Config{Threads: act.Stepped})
	require.ErrorContains(t, g.Run(t.Context(), func(*act.Scheduler) error { panic("set up to Run") }), "are Stepped")
}

func TestAGoexitEndsTheGroupWithAnErrorInsteadOfAHang(t *testing.T) {
	var timer act.Timer
	for name, c := range map[string]struct {
		says  string
		setUp func(s *act.Scheduler)
	}{
		"in a turn": {"TestAGoexitEndsTheGroup", func(s *act.Scheduler) {
			s.Spawn(act.Func(func(*act.Task) act.Directive { runtime.Goexit(); return act.Done }))
		}},
		"in a turn of a demon": {"*act_test.demon", func(s *act.Scheduler) {
			s.Install(&demon{act: func(*act.Task) act.Directive { runtime.Goexit(); return act.Done }})
		}},
		"at the end of a turn": {"TestAGoexitEndsTheGroup", func(s *act.Scheduler) {
			s.Spawn(act.Func(func(*act.Task) act.Directive { s.Internals().AtTurnEnd(turnEnd(runtime.Goexit)); return act.Yield }))
		}},
		"in a posted function": {"", func(s *act.Scheduler) {
			s.Post(func(*act.Scheduler) { runtime.Goexit() })
		}},
		"in a set-up function": {"", func(*act.Scheduler) { runtime.Goexit() }},
		"in Stop": {"", func(s *act.Scheduler) {
			s.Spawn(told{idle, func(*act.Task, shutdown.Order) { runtime.Goexit() }})
			s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
		}},
		"in an Expire": {"", func(s *act.Scheduler) {
			s.CallAt(&timer, s.Now(), expiry(runtime.Goexit))
		}},
		"in a Local": {"TestAGoexitEndsTheGroup", func(s *act.Scheduler) {
			l := act.NewLocal(func(*act.Scheduler) int { runtime.Goexit(); return 0 })
			s.Spawn(act.Func(func(*act.Task) act.Directive { l.Get(s); return act.Done }))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			timer = act.Timer{}
			g, _ := newGroup(t, act.Config{Schedulers: 3, Shutdown: shutdown.Policy{Turns: 5, Drop: true}})
			servertest.InTime(t, func() {
				err := g.Run(t.Context(), func(s *act.Scheduler) error {
					s.Spawn(act.Func(forever))
					if s.Index() == 1 {
						c.setUp(s)
					}
					return nil
				})
				require.ErrorContains(t, err, "runtime.Goexit")
				require.ErrorContains(t, err, c.says)
				require.Error(t, g.Close(), "what was left is cut")
			})
		})
	}
}

func TestWhatBreaksDownOneSchedulerEndsTheOthersInAnOrderlyWay(t *testing.T) {
	var timer act.Timer
	for name, c := range map[string]struct {
		idle  func(time.Duration)
		setUp func(s *act.Scheduler)
	}{
		"a panic in the Idler": {idle: func(time.Duration) { panic("boom") }},
		"a panic in an Expire": {setUp: func(s *act.Scheduler) {
			s.CallAt(&timer, s.Now()+time.Millisecond, expiry(func() { panic("boom") }))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			timer = act.Timer{}
			g, _ := newGroup(t, act.Config{Schedulers: 3, Idle: func(s *act.Scheduler, i facts.Idler) facts.Idler {
				if s.Index() == 1 && c.idle != nil {
					return idlerFunc{i, c.idle}
				}
				return i
			}})
			var heard [3]shutdown.Order
			servertest.InTime(t, func() {
				err := g.Run(t.Context(), func(s *act.Scheduler) error {
					s.Spawn(told{func(t *act.Task) act.Directive {
						if t.Order() != nil {
							return act.Done
						}
						return idle(t)
					}, func(_ *act.Task, o shutdown.Order) { heard[s.Index()] = o }})
					if s.Index() == 1 && c.setUp != nil {
						c.setUp(s)
					}
					return nil
				})
				require.ErrorContains(t, err, "act: the scheduler broke down: panic: boom")
				require.ErrorContains(t, err, "group_test.go", "with the stack")
			})
			require.ErrorContains(t, heard[0].(error), "another scheduler broke down")
			require.ErrorContains(t, heard[2].(error), "another scheduler broke down")
			again := g.Run(t.Context())
			require.ErrorContains(t, again, "boom", "a broken scheduler is not usable any more")
			require.Equal(t, 1, requireCut(t, g.Close()).Tasks)
		})
	}
}

func TestCloseOfAGroupReportsOneCutForAll(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 3})
	var mu sync.Mutex
	closed := map[uint64]int{}
	requireCut(t, g.Run(t.Context(), func(s *act.Scheduler) error {
		id := thread.ID()
		for range 2 {
			s.Spawn(struct {
				act.Func
				*closer
			}{forever, &closer{func() error {
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, id, thread.ID(), "each is closed on its thread")
				closed[id]++
				return nil
			}}})
		}
		s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend})
		return nil
	}))
	require.Empty(t, closed)
	cut := requireCut(t, g.Close())
	require.Equal(t, 6, cut.Tasks)
	require.True(t, cut.Dropped)
	require.Len(t, closed, 3)
}

func TestRunLeavesAProcessorForTheOthersAndGivesItBack(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(0)
	during := 0
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: before + 2}, func(*act.Scheduler) error {
		during = runtime.GOMAXPROCS(0)
		return nil
	}))
	require.Equal(t, before+4, during)
	require.Equal(t, before, runtime.GOMAXPROCS(0))

	defer runtime.GOMAXPROCS(before)
	runtime.GOMAXPROCS(before + 1) // which the runtime would not have chosen
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: before + 2}))
	require.Equal(t, before+1, runtime.GOMAXPROCS(0))
	runtime.GOMAXPROCS(before)

	t.Setenv("GOMAXPROCS", "set by the user")
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: before + 2}, func(*act.Scheduler) error {
		during = runtime.GOMAXPROCS(0)
		return nil
	}))
	require.Equal(t, before, during)
}

func TestRunMakesCollectionsOfASmallHeapRarer(t *testing.T) {
	next := func(environment string) (bytes uint64) {
		t.Setenv("GOGC", environment)
		require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: 1}, func(*act.Scheduler) error {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			bytes = m.NextGC - m.HeapAlloc
			return nil
		}))
		return bytes
	}
	require.GreaterOrEqual(t, next(""), uint64(8<<20))
	require.Less(t, next("100"), uint64(8<<20), "set by the user")
}

// An order ends one scheduler in the middle of a pass, while one of its demons still has a turn to come. The others are
// not kept by that.
func TestASchedulerThatStopsInAPassKeepsNoOther(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 2})
	defer func() { require.ErrorContains(t, g.Close(), "dropped") }()
	servertest.InTime(t, func() {
		require.Error(t, g.Run(t.Context(), func(s *act.Scheduler) error {
			if s.Index() > 0 {
				return nil
			}
			s.Install(&demon{act: func(*act.Task) act.Directive {
				s.Shutdown(halt)
				return act.Yield
			}})
			s.Install(&demon{act: func(*act.Task) act.Directive { return act.Yield }})
			return nil
		}))
	})
}

// tied has nothing that lives on its thread when it is asked.
type tied int

func (x *tied) Untie() bool {
	*x++
	return true
}

func TestWhatIsTiedTwiceIsAskedOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var asked tied
	s.Post(func(s *act.Scheduler) { s.Internals().Tie(&asked); s.Internals().Tie(&asked) })
	for range 2 {
		require.NoError(t, s.Run())
		require.EqualValues(t, 1, asked)
	}
}

func TestAConfigThatIsWrongPanics(t *testing.T) {
	past := &clock{}
	past.Pass(-time.Second)
	bounds := "act: a Config with a negative bound: "
	for says, cfg := range map[string]act.Config{
		bounds + "-1 Schedulers, 0 TurnsPerPass, 0 Inbox, 0 Offloads": {Schedulers: -1},
		bounds + "0 Schedulers, -1 TurnsPerPass, 0 Inbox, 0 Offloads": {TurnsPerPass: -1},
		bounds + "0 Schedulers, 0 TurnsPerPass, -1 Inbox, 0 Offloads": {Inbox: -1},
		bounds + "0 Schedulers, 0 TurnsPerPass, 0 Inbox, -1 Offloads": {Offloads: -1},
		"act: Config.Threads is unknown: 3":                           {Threads: act.Stepped + 1},
		"act: Config.CPUs is for Bound threads only":                  {Threads: act.Locked, CPUs: []int{0}},
		"act: Config.Clock reads a negative time: -1s":                {Clock: past},
	} {
		require.PanicsWithValue(t, says, func() { act.NewGroup(cfg) })
	}
	require.Panics(t, func() { act.NewGroup(act.Config{Shutdown: shutdown.Policy{Turns: -1}}) })
}

func TestAHoldTakenBackTooOftenChangesNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Internals().KeepRunning(1)
	require.Panics(t, func() { s.Internals().KeepRunning(-5) })
	s.Internals().KeepRunning(-1)
	require.NoError(t, s.Run())
}
