package tasklet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

var errNo = errors.New("no")

// awaits awaits the action made by f in its first phase, and records its result in the second.
func awaits(h *history, f func(r *tasklet.Runner) act.Action) tasklet.Tasklet {
	begun := false
	return &phases{"T", func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		if !begun {
			begun = true
			return r.Await(t, f(r))
		}
		h.note("T")
		if err := r.Err(); err != nil {
			h.note(":" + err.Error())
		}
		return done
	}}
}

func TestAwait(t *testing.T) {
	for name, row := range map[string]struct {
		f    func(r *tasklet.Runner) act.Action
		want string
		log  int
	}{
		"a future": {func(r *tasklet.Runner) act.Action {
			f := future.New[int](r.Act())
			go func() { _ = f.Resolve(1) }()
			return f.Await()
		}, "T", 0},
		"one that fails": {func(r *tasklet.Runner) act.Action {
			f := future.New[int](r.Act())
			_ = f.Fail(errNo)
			return f.Await()
		}, "T:no", 0},
		"one that panics": {func(*tasklet.Runner) act.Action { return act.Func(func(*act.Task) act.Directive { panic("boom") }) }, "T:act: dropped before it had finished", 1},
		"offloaded": {func(*tasklet.Runner) act.Action {
			begun := false
			return act.Func(func(t *act.Task) act.Directive {
				if begun {
					return act.Done
				}
				begun = true
				return t.Offload(func() {})
			})
		}, "T", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			r, logs := observed(act.Config{})
			schedule(t, r, sync_, awaits(h, row.f))
			servertest.InTime(t, func() { require.NoError(t, r.Run()) })
			require.Equal(t, row.want, h.take())
			require.Equal(t, row.log, logs.Len())
		})
	}
}

// closing is an action that never ends and records Close and Stop.
type closing struct{ h *history }

func (c closing) Act(t *act.Task) act.Directive  { t.Waker(); c.h.note("a"); return act.Wait }
func (c closing) Stop(*act.Task, shutdown.Order) { c.h.note("(a)") }
func (c closing) Close() error                   { c.h.note("!"); return nil }

// The action is closed when the tasklet goes on for another reason, and does not keep Run from returning.
func TestAwaitIsGivenUp(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(r *tasklet.Runner, x tasklet.Tasklet) error
		want string
	}{
		"resumed":   {func(r *tasklet.Runner, x tasklet.Tasklet) error { return r.Suspend(x).Resume(sync_) }, "aT!"},
		"scheduled": {func(r *tasklet.Runner, x tasklet.Tasklet) error { return r.Schedule(x, async) }, "aT!"},
		"ended":     {func(r *tasklet.Runner, x tasklet.Tasklet) error { return r.Schedule(x, done) }, "a!"},
		"with":      {tasklet.With, "aT!"},
		"dropped": {func(r *tasklet.Runner, _ tasklet.Tasklet) error {
			r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Suspend, Drop: true}))
			return nil
		}, "a!"},
	} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(act.Config{}), &history{}
			x := awaits(h, func(*tasklet.Runner) act.Action { return closing{h} })
			ender := &phases{"E", nil}
			ender.f = func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				if h.count("a") == 0 {
					return sync_
				}
				require.NoError(t, row.end(r, x))
				return done
			}
			schedule(t, r, sync_, x, ender)
			servertest.InTime(t, func() { require.Equal(t, name == "dropped", r.Run() != nil) })
			got := h.take()
			require.ElementsMatch(t, []byte(row.want), []byte(got), got)
		})
	}
}

// A tasklet whose action was cut goes on in the next Run, and Err says why.
func TestAwaitThatIsCut(t *testing.T) {
	r, _ := virtual()
	h := &history{}
	schedule(t, r, sync_, awaits(h, func(*tasklet.Runner) act.Action { return closing{h} }))
	schedule(t, r, sync_, &phases{"E", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		if h.count("a") == 0 {
			return sync_
		}
		r.Shutdown(terms(shutdown.Policy{Time: time.Second}))
		return done
	}})
	var cut *shutdown.Cut
	servertest.InTime(t, func() { cut = requireCut(t, r.Run()) })
	require.Equal(t, 2, cut.Tasks)
	require.Equal(t, "a(a)a!", h.take())
	require.NoError(t, r.Run())
	require.Equal(t, "T:act: dropped before it had finished", h.take())
}
