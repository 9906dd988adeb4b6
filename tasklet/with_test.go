package tasklet_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Each phase of nested calls has its own runner, which gets its answer.
func TestWithsNest(t *testing.T) {
	a, b, c, h := tasklet.NewRunner(act.Config{}), tasklet.NewRunner(act.Config{}), tasklet.Inline(), &history{}
	on := func(name string, r *tasklet.Runner, inner tasklet.Tasklet, answer tasklet.Directive) tasklet.Tasklet {
		seen := false
		return &phases{name, func(t1 tasklet.Tasklet, view *tasklet.Runner) tasklet.Directive {
			h.note(name)
			if seen {
				return done
			}
			seen = true
			require.ErrorIs(t, tasklet.With(r, t1), tasklet.ErrInPhase, "of itself")
			if inner != nil {
				require.NoError(t, tasklet.With(map[string]*tasklet.Runner{"A": b, "B": c}[name], inner))
			}
			require.NoError(t, view.Schedule(h.play("+"+name), sync_))
			h.note("-")
			return answer
		}}
	}
	x := on("A", a, on("B", b, on("C", c, nil, sync_), sync_), sync_)
	schedule(t, a, sync_, x)
	require.NoError(t, a.Run())
	require.Equal(t, "ABC-+CC--+AA", h.take(), "the Inline is finished in its With, the other not begun")
	require.NoError(t, b.Run())
	require.Equal(t, "+BB", h.take())
}

func TestRunWaitsForWithOnAnotherGoroutine(t *testing.T) {
	r, h := tasklet.NewRunner(act.Config{}), &history{}
	hold := r.Suspend(waits())
	in := make(chan bool)
	var with sync.WaitGroup
	with.Go(func() {
		for r.Act() == nil {
			time.Sleep(time.Millisecond)
		}
		h.note("<")
		_ = tasklet.With(r, tasklet.New(func(view *tasklet.Runner) tasklet.Directive {
			close(in)
			ran := make(chan bool)
			_ = view.Schedule(tasklet.New(func(*tasklet.Runner) tasklet.Directive { h.note("S"); close(ran); return done }), sync_)
			<-ran
			h.note(">")
			return done
		}))
	})
	go func() { <-in; _ = hold.Resume(done) }()
	servertest.InTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, "<S>", h.take())
	with.Wait()
}

func TestInlineHasNoASYNC(t *testing.T) {
	r, h := tasklet.Inline(), &history{}
	require.Nil(t, r.Act())
	r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halt}))

	x := h.play("X")
	require.ErrorIs(t, r.Schedule(x, async), tasklet.ErrNotRunning)
	require.ErrorIs(t, r.Suspend(x).Resume(async), tasklet.ErrNotRunning)
	require.Empty(t, h.take())
	schedule(t, r, sync_, x)
	require.Equal(t, "X", h.take())

	err := r.Schedule(&phases{"outer", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		schedule(t, r, sync_, h.play("Y", async), h.play("Z"))
		return async
	}}, sync_)
	require.ErrorIs(t, err, tasklet.ErrNotRunning, "as the answer of a phase")
	require.Equal(t, "YZ", h.take(), "their bodies never ran")
	require.ErrorIs(t, tasklet.With(r, h.play("W", async)), tasklet.ErrNotRunning)
}

func TestInlineGoesOnAfterAPanic(t *testing.T) {
	r, h := tasklet.Inline(), &history{}
	outer := func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		schedule(t, r, sync_, &phases{"bad", boom}, h.play("A"))
		return done
	}
	require.PanicsWithValue(t, "boom", func() { _ = r.Schedule(&phases{"outer", outer}, sync_) })
	require.Empty(t, h.take())
	schedule(t, r, sync_, h.play("B"))
	require.Equal(t, "AB", h.take())
	require.PanicsWithValue(t, "boom", func() { _ = tasklet.With(r, &phases{"with", boom}) })
	schedule(t, r, sync_, h.play("C"))
	require.Equal(t, "C", h.take())
}

// Several goroutines use one Inline: no phases overlap, and all run.
func TestInlineIsSafeForSeveralGoroutines(t *testing.T) {
	r, n := tasklet.Inline(), 0 // a plain int
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				_ = r.Schedule(tasklet.New(func(*tasklet.Runner) tasklet.Directive { n++; return done }), sync_)
			}
		})
	}
	all.Wait()
	schedule(t, r, sync_, (&history{}).play("last"))
	require.Equal(t, 4000, n)
}

func TestOnAGroup(t *testing.T) {
	const schedulers, tasklets = 2, 100
	core, logs := observer.New(zap.WarnLevel)
	g := act.NewGroup(act.Config{Schedulers: schedulers, Logger: zap.New(core)})
	h := &history{}
	var counts [schedulers]int // each is its scheduler's own
	var mu sync.Mutex
	var on []*tasklet.Runner
	err := g.Run(t.Context(), func(a *act.Scheduler) error {
		r := tasklet.RunnerOf(a)
		require.Same(t, a, r.Act())
		mu.Lock()
		on = append(on, r)
		mu.Unlock()
		for range tasklets {
			left := 4
			x := tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
				switch left--; left {
				case 2:
					return async
				case 1:
					return sync_
				case 0:
					counts[a.Index()]++
					return done
				}
				require.True(t, r.Act().Internals().Here())
				return sync_
			})
			schedule(t, r, sync_, x)
		}
		require.PanicsWithValue(t, noRun, func() { _ = r.Run() })
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, [schedulers]int{tasklets, tasklets}, counts)

	left := on[0].Suspend(h.play("L")) // keeps the next Run from returning
	g.Shutdown(terms(shutdown.Policy{Time: time.Millisecond}))
	require.Equal(t, "L ", names(requireCut(t, g.Run(t.Context()))))
	require.NoError(t, left.Resume(sync_))
	schedule(t, on[1], sync_, h.play("M"))
	require.NoError(t, g.Run(t.Context()))
	require.ElementsMatch(t, []byte("LM"), []byte(h.take()))

	_ = on[0].Suspend(h.play("N"))
	require.Zero(t, logs.FilterMessage("a task failed").Len())
	require.NoError(t, g.Close(), "it has no task yet")
	require.Equal(t, []string{"N"}, failed(logs), "but is reported")
	for _, r := range on {
		require.ErrorIs(t, r.Schedule(h.play("X"), sync_), tasklet.ErrNotRunning)
		require.ErrorIs(t, r.Suspend(h.play("X")).Resume(sync_), tasklet.ErrNotRunning)
		require.ErrorIs(t, tasklet.With(r, h.play("X")), tasklet.ErrNotRunning)
		require.Nil(t, r.Act())
	}
	require.NoError(t, left.Resume(sync_))
	require.Empty(t, h.take())
}

func TestRunInsideAPhasePanics(t *testing.T) {
	nested := func(run func() error) {
		require.PanicsWithValue(t, "tasklet: Run was called inside a phase", func() { _ = run() })
	}
	r := tasklet.NewRunner(act.Config{})
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
	servertest.InTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, 3, phase)
}

func TestASYNCOutsideOfRunIsRefused(t *testing.T) {
	r, h := tasklet.NewRunner(act.Config{}), &history{}
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

const synchronous = "tasklet: the executor runs ASYNC phases on the thread in Run"

type at func(f func())

func (e at) Execute(f func()) { e(f) }

// An executor that tries to run an ASYNC phase on the thread in Run is refused: the phase never runs.
func TestAnExecutorOnTheSynchronousThreadIsRefused(t *testing.T) {
	for name, immediate := range map[string]bool{"at once": true, "posted": false} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			cfg, logs := watched(act.Config{})
			var r *tasklet.Runner
			cfg.Executor = at(func(f func()) {
				if immediate {
					f()
				} else {
					r.Act().Post(func(*act.Scheduler) { f() })
				}
			})
			r = tasklet.NewRunner(cfg)
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

func depth() int { return runtime.Callers(0, make([]uintptr, 1000)) }

func TestChainedSchedulesUseABoundedStack(t *testing.T) {
	const chain = 10_000
	for name, run := range map[string]func(r *tasklet.Runner) error{
		"Run":    (*tasklet.Runner).Run,
		"Inline": func(*tasklet.Runner) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := tasklet.NewRunner(act.Config{})
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
