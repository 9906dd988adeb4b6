package tasklet_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/tasklet"
)

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
