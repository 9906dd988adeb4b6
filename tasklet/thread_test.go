package tasklet_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

func TestSYNCPhasesShareStateWithoutALock(t *testing.T) {
	const tasklets, phases = 1000, 10
	s, n := tasklet.NewScheduler(), 0 // a plain int
	for range tasklets {
		left := phases
		schedule(t, s, sync_, tasklet.New(func(s *tasklet.Scheduler) tasklet.Directive {
			if !s.Act().Here() {
				return sync_ // ASYNC phases keep away from n
			}
			n++
			if left--; left == 0 {
				return done
			}
			return []tasklet.Directive{sync_, async}[left%2]
		}))
	}
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, tasklets*phases, n)
}

func TestASYNCPhasesOverlap(t *testing.T) {
	s := tasklet.NewScheduler()
	ended := 0
	for range 100 {
		phase := 0
		schedule(t, s, sync_, tasklet.New(func(*tasklet.Scheduler) tasklet.Directive {
			switch phase++; phase {
			case 1:
				return async
			case 2:
				time.Sleep(50 * time.Millisecond)
				return sync_
			}
			ended++
			return done
		}))
	}
	begin := time.Now()
	require.NoError(t, s.Run())
	require.Equal(t, 100, ended)
	require.Less(t, time.Since(begin), time.Second)
}

func TestSYNCIsOnTheThreadInRunAndASYNCIsNot(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, s := thread.ID(), tasklet.NewScheduler()
	var sync1, sync2, elsewhere uint64
	var view1, view2 *tasklet.Scheduler
	phase := 0
	schedule(t, s, sync_, tasklet.New(func(s *tasklet.Scheduler) tasklet.Directive {
		switch phase++; phase {
		case 1:
			sync1, view1 = thread.ID(), s
			return async
		case 2:
			runtime.LockOSThread() // an answer of thread.ID means something only then
			defer runtime.UnlockOSThread()
			elsewhere, view2 = thread.ID(), s
			return sync_
		}
		sync2 = thread.ID()
		return done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []uint64{home, home}, []uint64{sync1, sync2})
	require.NotEqual(t, home, elsewhere)
	require.Same(t, view1, view2, "an ASYNC phase has the scheduler that spawned it")
}

func TestRunOfASecondGoroutineWaitsForTheFirst(t *testing.T) {
	s, h := tasklet.NewScheduler(), &history{}
	begun, ended := make(chan bool), make(chan error)
	schedule(t, s, sync_, tasklet.New(func(s *tasklet.Scheduler) tasklet.Directive {
		close(begun)
		time.Sleep(30 * time.Millisecond)
		h.note("first")
		return done
	}))
	go func() { ended <- s.Run() }()
	<-begun
	require.NoError(t, s.Run())
	h.note(" second")
	require.NoError(t, <-ended)
	require.Equal(t, "first second", h.take())
}

func TestRunInsideAPhaseIsAnError(t *testing.T) {
	s := tasklet.NewScheduler()
	var errs []error
	var mu sync.Mutex
	try := func(runs ...*tasklet.Scheduler) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range runs {
			errs = append(errs, r.Run())
		}
	}
	phase := 0
	schedule(t, s, sync_, tasklet.New(func(view *tasklet.Scheduler) tasklet.Directive {
		switch phase++; phase {
		case 1:
			try(view, s)
			return async
		case 2:
			try(view)
		}
		_ = tasklet.With(tasklet.NewScheduler(), tasklet.New(func(view *tasklet.Scheduler) tasklet.Directive {
			try(view)
			return done
		}))
		return done
	}))
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Len(t, errs, 4)
	for _, err := range errs {
		require.ErrorIs(t, err, tasklet.ErrNested)
	}
}

func TestASYNCOutsideOfRunIsRefused(t *testing.T) {
	s, h := tasklet.NewScheduler(), &history{}
	require.ErrorIs(t, s.Schedule(h.play("T"), async), tasklet.ErrNotRunning)
	require.NoError(t, s.Run(), "it is no member")

	require.ErrorIs(t, tasklet.With(s, h.play("W", async)), tasklet.ErrNotRunning)
	require.NoError(t, s.Run(), "forgotten")
	require.Equal(t, "W", h.take(), "only the phase of With")

	x := h.play("T")
	schedule(t, s, sync_, x)
	require.ErrorIs(t, s.Schedule(x, async), tasklet.ErrNotRunning)
	require.NoError(t, s.Run())
	require.Equal(t, "T", h.take(), "where it was")

	require.NoError(t, s.Suspend(x).Resume(async), "a right is not lost")
	require.NoError(t, s.Run())
	require.Equal(t, "T", h.take())
}

// spawn is an Executor that starts a goroutine for each function.
type spawn struct{ n atomic.Int64 }

func (e *spawn) Execute(f func()) {
	e.n.Add(1)
	go f()
}

func TestASYNCRunsWhereTheAPISays(t *testing.T) {
	exec, h := &spawn{}, &history{}
	api := tasklet.API{Executor: exec}
	s := api.New()
	require.Equal(t, api, s.API())
	phase := 0
	schedule(t, s, sync_, tasklet.New(func(s *tasklet.Scheduler) tasklet.Directive {
		if phase++; phase == 1 {
			return async
		}
		other := s.API().New() // inherited by an ASYNC phase, too
		schedule(t, other, sync_, h.play("O", async))
		require.NoError(t, other.Run())
		return done
	}))
	require.NoError(t, s.Run())
	require.EqualValues(t, 2, exec.n.Load())
	require.Equal(t, "OO", h.take())
}

type at func(f func())

func (e at) Execute(f func()) { e(f) }

// An executor that tries to run an ASYNC phase on the thread in Run is refused: the phase never runs.
func TestAnExecutorOnTheSynchronousThreadIsRefused(t *testing.T) {
	for name, immediate := range map[string]bool{"at once": true, "posted": false} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			api, logs := observedAPI(act.Config{})
			var s *tasklet.Scheduler
			api.Executor = at(func(f func()) {
				if immediate {
					f()
				} else {
					s.Act().Post(func(*act.Scheduler) { f() })
				}
			})
			s = api.New()
			var refused error
			schedule(t, s, sync_, h.play("A", async), &phases{"B", func(_ tasklet.Tasklet, s *tasklet.Scheduler) tasklet.Directive {
				refused = s.Schedule(h.play("C"), async)
				return done
			}}, h.play("D", sync_))
			err := s.Run()
			require.ErrorIs(t, err, tasklet.ErrSynchronous)
			if immediate {
				require.ErrorIs(t, refused, tasklet.ErrSynchronous)
			} else {
				require.NoError(t, refused)
			}
			require.Equal(t, "ADD", h.take(), "neither A's second phase nor C's")
			require.Equal(t, []string{"A", "C"}, failed(logs))
			require.NoError(t, s.Run(), "the next Run is free of it")
		})
	}
}

// A stopped Run leaves no goroutine once the ASYNC phases have returned.
func TestAStoppedRunLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, h := tasklet.NewScheduler(), &history{}
	out, in := make(chan bool), make(chan bool)
	schedule(t, s, wait, h.play("W"))
	phase := 0
	schedule(t, s, sync_, tasklet.New(func(s *tasklet.Scheduler) tasklet.Directive {
		if phase++; phase == 1 {
			return async
		}
		in <- true
		<-out
		return sync_
	}))
	go func() {
		<-in
		s.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halting, Drop: true}))
	}()
	var cut *shutdown.Cut
	inTime(t, func() { require.True(t, errors.As(s.Run(), &cut)) })
	require.Equal(t, 2, cut.Tasks)
	require.Equal(t, 1, cut.Offloads)
	close(out)
	goleak.VerifyNone(t, before)
}

func depth() int { return runtime.Callers(0, make([]uintptr, 1000)) }

func TestChainedSchedulesUseABoundedStack(t *testing.T) {
	const chain = 10_000
	for name, run := range map[string]func(s *tasklet.Scheduler) error{
		"Run":    (*tasklet.Scheduler).Run,
		"Inline": func(*tasklet.Scheduler) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := tasklet.NewScheduler()
			if name == "Inline" {
				s = tasklet.Inline()
			}
			n, first, last := 0, 0, 0
			var link func(*tasklet.Scheduler) tasklet.Directive
			link = func(s *tasklet.Scheduler) tasklet.Directive {
				last = depth()
				if n++; n == 1 {
					first = last
				}
				if n < chain {
					require.NoError(t, s.Schedule(tasklet.New(link), sync_))
				}
				return done
			}
			require.NoError(t, s.Schedule(tasklet.New(link), sync_))
			require.NoError(t, run(s))
			require.Equal(t, chain, n)
			require.InDelta(t, first, last, 3)
		})
	}
}

// The thread may be asleep when a directive comes.
func TestWordsFromOtherGoroutinesAreHeard(t *testing.T) {
	const words = 2000
	s, n := tasklet.NewScheduler(), 0
	hold := s.Suspend(tasklet.NewWait())
	go func() {
		for i := range words {
			schedule(t, s, sync_, tasklet.New(func(*tasklet.Scheduler) tasklet.Directive { n++; return done }))
			if i%100 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
		_ = hold.Resume(done)
	}()
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, words, n)
}

// A tasklet that is scheduled while Run returns is run by it or kept for the next Run.
func TestNothingIsLostBetweenRuns(t *testing.T) {
	const words = 20_000
	s := tasklet.NewScheduler()
	var n, ended atomic.Int64
	go func() {
		for range words {
			_ = s.Schedule(tasklet.New(func(*tasklet.Scheduler) tasklet.Directive { n.Add(1); return done }), sync_)
		}
		ended.Store(1)
	}()
	inTime(t, func() {
		for last := false; !last; {
			last = ended.Load() == 1
			require.NoError(t, s.Run())
		}
	})
	require.EqualValues(t, words, n.Load())
}
