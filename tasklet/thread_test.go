package tasklet_test

import (
	"errors"
	"runtime"
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
	r, n := tasklet.NewRunner(), 0 // a plain int
	for range tasklets {
		left := phases
		schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
			if !r.Act().Here() {
				return sync_ // ASYNC phases keep away from n
			}
			n++
			if left--; left == 0 {
				return done
			}
			return []tasklet.Directive{sync_, async}[left%2]
		}))
	}
	inTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, tasklets*phases, n)
}

func TestSYNCIsOnTheThreadInRunAndASYNCIsNot(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, r := thread.ID(), tasklet.NewRunner()
	var sync1, sync2, elsewhere uint64
	var view1, view2 *tasklet.Runner
	phase := 0
	schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
		switch phase++; phase {
		case 1:
			sync1, view1 = thread.ID(), r
			return async
		case 2:
			runtime.LockOSThread() // an answer of thread.ID means something only then
			defer runtime.UnlockOSThread()
			elsewhere, view2 = thread.ID(), r
			return sync_
		}
		sync2 = thread.ID()
		return done
	}))
	require.NoError(t, r.Run())
	require.Equal(t, []uint64{home, home}, []uint64{sync1, sync2})
	require.NotEqual(t, home, elsewhere)
	require.Same(t, view1, view2, "an ASYNC phase has the runner that spawned it")
}

func TestRunOfASecondGoroutineWaitsForTheFirst(t *testing.T) {
	r, h := tasklet.NewRunner(), &history{}
	begun, ended := make(chan bool), make(chan error)
	schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
		close(begun)
		time.Sleep(30 * time.Millisecond)
		h.note("first")
		return done
	}))
	go func() { ended <- r.Run() }()
	<-begun
	require.NoError(t, r.Run())
	h.note(" second")
	require.NoError(t, <-ended)
	require.Equal(t, "first second", h.take())
}

func TestRunInsideAPhasePanics(t *testing.T) {
	nested := func(run func() error) {
		require.PanicsWithValue(t, "tasklet: Run was called inside a phase", func() { _ = run() })
	}
	r := tasklet.NewRunner()
	phase := 0
	schedule(t, r, sync_, tasklet.New(func(view *tasklet.Runner) tasklet.Directive {
		switch phase++; phase {
		case 1:
			nested(view.Run)
			nested(r.Run)
			return async
		case 2:
			nested(view.Run)
			return sync_
		}
		_ = tasklet.With(tasklet.Inline(), tasklet.New(func(view *tasklet.Runner) tasklet.Directive {
			nested(view.Run)
			return done
		}))
		return done
	}))
	inTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, 3, phase)
}

func TestASYNCPhasesOverlap(t *testing.T) {
	r, meet := tasklet.NewRunner(), make(chan bool)
	for _, f := range []func(){func() { meet <- true }, func() { <-meet }} {
		schedule(t, r, sync_, first("T", async, func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive { f(); return done }))
	}
	inTime(t, func() { require.NoError(t, r.Run()) })
}

func TestASYNCOutsideOfRunIsRefused(t *testing.T) {
	r, h := tasklet.NewRunner(), &history{}
	require.ErrorIs(t, r.Schedule(h.play("T"), async), tasklet.ErrNotRunning)
	require.NoError(t, r.Run(), "it is no member")

	require.ErrorIs(t, tasklet.With(r, h.play("W", async)), tasklet.ErrNotRunning)
	require.NoError(t, r.Run(), "forgotten")
	require.Equal(t, "W", h.take(), "only the phase of With")

	x := h.play("T")
	schedule(t, r, sync_, x)
	require.ErrorIs(t, r.Schedule(x, async), tasklet.ErrNotRunning)
	require.NoError(t, r.Run())
	require.Equal(t, "T", h.take(), "where it was")

	require.NoError(t, r.Suspend(x).Resume(async), "a right is not lost")
	require.NoError(t, r.Run())
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
	r := api.New()
	require.Equal(t, api, r.API())
	phase := 0
	schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
		if phase++; phase == 1 {
			return async
		}
		other := r.API().New() // inherited by an ASYNC phase, too
		schedule(t, other, sync_, h.play("O", async))
		require.NoError(t, other.Run())
		return done
	}))
	require.NoError(t, r.Run())
	require.EqualValues(t, 2, exec.n.Load())
	require.Equal(t, "OO", h.take())
}

const synchronous = "tasklet: the executor runs ASYNC phases on the thread in Run"

type at func(f func())

func (e at) Execute(f func()) { e(f) }

// An executor that tries to run an ASYNC phase on the thread in Run is refused: the phase never runs.
func TestAnExecutorOnTheSynchronousThreadIsRefused(t *testing.T) {
	for name, immediate := range map[string]bool{"at once": true, "posted": false} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			api, logs := observedAPI(act.Config{})
			var r *tasklet.Runner
			api.Executor = at(func(f func()) {
				if immediate {
					f()
				} else {
					r.Act().Post(func(*act.Scheduler) { f() })
				}
			})
			r = api.New()
			var refused error
			schedule(t, r, sync_, h.play("A", async), &phases{"B", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				refused = r.Schedule(h.play("C"), async)
				return done
			}}, h.play("D", sync_))
			err := r.Run()
			require.ErrorContains(t, err, synchronous)
			if immediate {
				require.ErrorContains(t, refused, synchronous)
			} else {
				require.NoError(t, refused)
			}
			require.Equal(t, "ADD", h.take(), "neither A's second phase nor C's")
			require.Equal(t, []string{"A", "C"}, failed(logs))
			require.NoError(t, r.Run(), "the next Run is free of it")
		})
	}
}

// A stopped Run leaves no goroutine once the ASYNC phases have returned.
func TestAStoppedRunLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, h := tasklet.NewRunner(), &history{}
	out, in := make(chan bool), make(chan bool)
	schedule(t, r, wait, h.play("W"))
	phase := 0
	schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
		if phase++; phase == 1 {
			return async
		}
		in <- true
		<-out
		return sync_
	}))
	go func() {
		<-in
		r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halting, Drop: true}))
	}()
	var cut *shutdown.Cut
	inTime(t, func() { require.True(t, errors.As(r.Run(), &cut)) })
	require.Equal(t, 2, cut.Tasks)
	require.Equal(t, 1, cut.Offloads)
	close(out)
	goleak.VerifyNone(t, before)
}

func depth() int { return runtime.Callers(0, make([]uintptr, 1000)) }

func TestChainedSchedulesUseABoundedStack(t *testing.T) {
	const chain = 10_000
	for name, run := range map[string]func(r *tasklet.Runner) error{
		"Run":    (*tasklet.Runner).Run,
		"Inline": func(*tasklet.Runner) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := tasklet.NewRunner()
			if name == "Inline" {
				r = tasklet.Inline()
			}
			n, first, last := 0, 0, 0
			var link func(*tasklet.Runner) tasklet.Directive
			link = func(r *tasklet.Runner) tasklet.Directive {
				last = depth()
				if n++; n == 1 {
					first = last
				}
				if n < chain {
					require.NoError(t, r.Schedule(tasklet.New(link), sync_))
				}
				return done
			}
			require.NoError(t, r.Schedule(tasklet.New(link), sync_))
			require.NoError(t, run(r))
			require.Equal(t, chain, n)
			require.InDelta(t, first, last, 3)
		})
	}
}

// A tasklet that is scheduled while Run returns is run by it or kept for the next Run.
func TestNothingIsLostBetweenRuns(t *testing.T) {
	const words = 20_000
	r := tasklet.NewRunner()
	var n, ended atomic.Int64
	go func() {
		for range words {
			_ = r.Schedule(tasklet.New(func(*tasklet.Runner) tasklet.Directive { n.Add(1); return done }), sync_)
		}
		ended.Store(1)
	}()
	inTime(t, func() {
		for last := false; !last; {
			last = ended.Load() == 1
			require.NoError(t, r.Run())
		}
	})
	require.EqualValues(t, words, n.Load())
}
