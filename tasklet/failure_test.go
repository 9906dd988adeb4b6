package tasklet_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func boom(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive { panic("boom") }

func exit(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
	runtime.Goexit()
	return done
}

func nothing(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive { return 0 }

// first answers d in its first phase and then calls f.
func first(name string, d tasklet.Directive, f func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive) tasklet.Tasklet {
	begun := false
	return &phases{name, func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		if !begun {
			begun = true
			return d
		}
		return f(t, r)
	}}
}

func TestAPanicIsReportedOnceAndRunGoesOn(t *testing.T) {
	for name, row := range map[string]struct {
		x    tasklet.Tasklet
		want string
	}{
		"SYNC":                  {&phases{"T", boom}, "panic: boom"},
		"ASYNC":                 {first("T", async, boom), "panic: boom"},
		"Goexit in ASYNC":       {first("T", async, exit), "panic: runtime.Goexit"},
		"no directive":          {&phases{"T", nothing}, "panic: tasklet: Directive(0) is not a directive: use Sync, Async, Wait or Done"},
		"no directive in ASYNC": {first("T", async, nothing), "panic: tasklet: Directive(0) is not a directive: use Sync, Async, Wait or Done"},
		"an *act.Panic raised again": {first("T", async, func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
			panic(&act.Panic{Value: "boom", Stack: []byte("!")})
		}), "panic: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			r, logs := observed(trace(h))
			schedule(t, r, sync_, row.x, h.play("B", sync_, async, sync_))
			servertest.InTime(t, func() { require.NoError(t, r.Run()) })
			require.Equal(t, []string{"T"}, failed(logs))
			require.Equal(t, 1, logs.Len())
			require.Equal(t, row.want, logs.All()[0].ContextMap()["error"])
			require.NotEmpty(t, logs.All()[0].ContextMap()["stack"])
			require.Contains(t, h.take(), "[T: "+row.want+"]", "its task has failed")
			require.NoError(t, r.Run(), "nobody is left")
		})
	}
}

// A failure is reported even if Run has ended.
func TestAPanicAfterRunIsReported(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r, logs := observed(act.Config{})
		in, out := make(chan bool), make(chan bool)
		schedule(t, r, sync_, first("T", async, func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
			in <- true
			<-out
			panic("boom")
		}))
		go func() {
			<-in
			r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halt, Drop: drop}))
		}()
		servertest.InTime(t, func() { require.Equal(t, 1, requireCut(t, r.Run()).Offloads) })
		close(out)
		require.Eventually(t, func() bool { return logs.Len() == 1 }, servertest.Timeout, 1e6)
		require.Equal(t, []string{"T"}, failed(logs))
		require.NoError(t, r.Run())
	}
}

func TestGoexitInSYNCEndsTheGoroutineOfRunAndNothingElse(t *testing.T) {
	r, h := tasklet.NewRunner(act.Config{}), &history{}
	schedule(t, r, sync_, &phases{"T", exit}, h.play("B"))
	over := make(chan bool)
	go func() {
		defer close(over)
		_ = r.Run() // does not return: its goroutine ends
		h.note("!")
	}()
	<-over
	require.Empty(t, h.take())
	servertest.InTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, "B", h.take())
}

func TestAPanicInWithLeavesBothRunnersUsable(t *testing.T) {
	for name, f := range map[string]func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive{
		"panic": boom, "no directive": nothing,
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			outer, logs := observed(act.Config{})
			inner := tasklet.NewRunner(act.Config{})
			bad := &phases{"bad", f}
			schedule(t, inner, sync_, bad, h.play("I"))
			schedule(t, outer, sync_, &phases{"with", func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
				_ = tasklet.With(inner, bad)
				h.note("!")
				return done
			}}, &phases{"catches", func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
				require.Panics(t, func() { _ = tasklet.With(inner, bad) })
				h.note("c")
				return done
			}}, h.play("O", sync_))
			servertest.InTime(t, func() { require.NoError(t, outer.Run()) })
			require.Equal(t, "cOO", h.take())
			require.Equal(t, []string{"with"}, failed(logs), "whose turn it was")
			servertest.InTime(t, func() { require.NoError(t, inner.Run()) })
			require.Equal(t, "I", h.take(), "bad is forgotten")
		})
	}
}

const noRun = "tasklet: a runner made by Inline or RunnerOf has no Run of its own"

func TestWrongUsePanics(t *testing.T) {
	r := tasklet.NewRunner(act.Config{})
	for _, row := range []struct {
		want string
		f    func()
	}{
		{"tasklet: Directive(0) is not a directive: use Sync, Async, Wait or Done", func() { _ = r.Schedule(waits(), 0) }},
		{"tasklet: Directive(9) is not a directive: use Sync, Async, Wait or Done", func() { _ = r.Suspend(waits()).Resume(9) }},
		{"tasklet: no tasklet", func() { _ = r.Schedule(nil, sync_) }},
		{"tasklet: no tasklet", func() { _ = tasklet.With(r, nil) }},
		{"tasklet: Shutdown without an order", func() { r.Shutdown(nil) }},
		{"tasklet: Await is for phases on the thread in Run", func() { r.Await(waits(), act.Seq()) }},
		{"tasklet: tasklet_test.uncomparable cannot be compared with ==: use a pointer", func() { r.Await(uncomparable{}, act.Seq()) }},
		{"tasklet: tasklet_test.uncomparable cannot be compared with ==: use a pointer", func() { r.Suspend(uncomparable{}) }},
		{"tasklet: tasklet_test.number cannot be compared with ==: use a pointer", func() { _ = r.Schedule(number(math.NaN()), sync_) }},
		{"tasklet: tasklet_test.number cannot be compared with ==: use a pointer", func() { _ = tasklet.With(r, number(math.NaN())) }},
		{noRun, func() { _ = tasklet.Inline().Run() }},
		{"tasklet: no action to await", func() { r.Await(waits(), nil) }},
	} {
		require.PanicsWithValue(t, row.want, row.f)
	}
}

// uncomparable is a tasklet that cannot be compared with ==.
type uncomparable []int

func (uncomparable) Task(*tasklet.Runner) tasklet.Directive { return done }

// A failure is reported even if the scheduler is closed before the task had its last turn.
func TestAPanicBeforeCloseIsReported(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	exec := &later{}
	a := act.New(act.Config{Executor: exec, Logger: zap.New(core)})
	r := tasklet.RunnerOf(a)
	schedule(t, r, sync_, first("T", async, boom))
	for n := 1; n > 0; {
		n, _ = a.Step(10)
	}
	require.True(t, exec.run())
	require.Zero(t, logs.Len())
	require.Error(t, a.Close())
	require.Equal(t, []string{"T"}, failed(logs))
	require.NotEmpty(t, logs.All()[0].ContextMap()["stack"])
}

// trace records the turns of tasks and their Directives.
func trace(h *history) act.Config {
	return act.Config{Trace: &act.Trace{
		TurnStart: func(t *act.Task) {
			if !t.Demon() {
				h.note("<")
			}
		},
		TurnEnd: func(t *act.Task, d act.Directive) {
			if !t.Demon() {
				h.note(" " + t.String() + " " + d.String() + ">")
			}
		},
		Ended: func(t *act.Task, err error) {
			if err != nil && !t.Demon() {
				h.note("[" + t.String() + ": " + err.Error() + "]")
			}
		},
	}}
}

func TestEachSYNCPhaseIsATurnThatATraceShows(t *testing.T) {
	h := &history{}
	r, _ := observed(trace(h))
	schedule(t, r, sync_, h.play("A", sync_, sync_), h.play("B", sync_))
	require.NoError(t, r.Run())
	require.Equal(t, "<A A Yield><B B Yield><A A Yield><B B Done><A A Done>", h.take())
}
