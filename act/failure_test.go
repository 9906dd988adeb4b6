package act_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// explode is in the stack of a panic.
func explode(v any) act.Directive { panic(v) }

// Each way to end, in the midst of two neighbours that must not notice.
func TestHowATaskEnds(t *testing.T) {
	failure := errors.New("no such song")
	for _, row := range []struct {
		name  string
		last  act.Func
		value string // logged as the error; empty: nothing is logged
		stack bool
	}{
		{name: "done", last: func(*act.Task) act.Directive { return act.Done }},
		{name: "failed", last: func(t *act.Task) act.Directive { return t.Fail(failure) },
			value: "no such song"},
		{name: "failed without saying why", last: func(*act.Task) act.Directive { return act.Failed },
			value: "failed without saying why"},
		{name: "a child's failure that a parent ignores", last: func(t *act.Task) act.Directive {
			_ = t.Fail(failure)
			return act.Done
		}},
		{name: "panicked", last: func(*act.Task) act.Directive { return explode("boom") },
			value: "panic: boom", stack: true},
		{name: "panicked with nil", last: func(*act.Task) act.Directive { return explode(nil) },
			value: "panic: " + new(runtime.PanicNilError).Error(), stack: true},
		{name: "panicked on another goroutine", last: func(t *act.Task) act.Directive { return t.Offload(func() { explode("boom") }) },
			value: "panic: boom", stack: true},
		{name: "ended another goroutine", last: func(t *act.Task) act.Directive { return t.Offload(runtime.Goexit) },
			value: "panic: runtime.Goexit"},
		{name: "no Directive", last: func(*act.Task) act.Directive { return 0 }, stack: true,
			value: "panic: act: an action returned Directive(0), which is not a valid Directive: return Yield, Wait, Async, Done or Failed"},
		{name: "Async without Offload", last: func(*act.Task) act.Directive { return act.Async }, stack: true,
			value: "panic: act: an action returned Async without t.Offload"},
		{name: "Offload without Async", last: func(t *act.Task) act.Directive {
			t.Offload(func() { panic("never called") })
			return act.Done
		}, stack: true,
			value: "panic: act: an action called t.Offload and then returned Done instead of what Offload returned"},
		{name: "Offload twice", last: func(t *act.Task) act.Directive {
			t.Offload(func() { panic("never called") })
			return t.Offload(func() { panic("never called") })
		}, stack: true,
			value: "panic: act: Offload is for the task whose turn it is, once a turn"},
		{name: "a nil Func", last: func(t *act.Task) act.Directive { return act.Func(nil).Act(t) }, stack: true,
			value: "panic: act: a turn of a nil Func"},
		{name: "Offload of nothing", last: func(t *act.Task) act.Directive { return t.Offload(nil) }, stack: true,
			value: "panic: act: Offload of a nil function"},
		{name: "a Call of nothing", last: func(t *act.Task) act.Directive { return new(act.Call[int]).Act(t) }, stack: true,
			value: "panic: act: a Call without F"},
		{name: "Fail without an error", last: func(t *act.Task) act.Directive { return t.Fail(nil) }, stack: true,
			value: "panic: act: Fail without an error"},
	} {
		for _, kind := range []string{"task", "demon"} {
			t.Run(row.name+"/"+kind, func(t *testing.T) {
				var ended []error
				s, logs := newScheduler(t, act.Config{Trace: &act.Trace{
					Ended: func(_ *act.Task, err error) { ended = append(ended, err) },
				}})
				var h history
				culprit := act.Func(func(t *act.Task) act.Directive {
					h.WriteString("x")
					return row.last(t)
				})
				s.Spawn(h.script("A", 3, act.Yield))
				if kind == "task" {
					s.Spawn(culprit)
				} else {
					s.Install(&demon{act: culprit})
				}
				s.Spawn(h.script("B", 3, act.Yield))
				require.NoError(t, s.Run())
				if kind == "task" {
					require.Equal(t, "AxBABAB", h.String(), "entered once, and nothing else disturbed")
				} else {
					require.Equal(t, "ABABABx", h.String(), "entered once, and nothing else disturbed")
				}
				require.Len(t, ended, 3)
				if row.value == "" {
					require.Empty(t, logs.All())
					return
				}
				require.Equal(t, []string{"a task failed"}, messages(logs), "once")
				entry := logs.All()[0]
				require.Equal(t, zapcore.ErrorLevel, entry.Level)
				require.Equal(t, row.value, entry.ContextMap()["error"])
				require.Contains(t, entry.ContextMap()["task"], "act_test")
				stack, _ := entry.ContextMap()["stack"].(string)
				require.Equal(t, row.stack, strings.Contains(stack, "act_test."))
			})
		}
	}
}

func TestErrLivesForTheTurn(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	cause := errors.New("cause")
	var seen []error
	first := true
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		seen = append(seen, t.Err())
		if first {
			first = false
			_ = t.Fail(cause)
			seen = append(seen, t.Err())
			return act.Yield
		}
		return act.Failed
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []error{nil, cause, nil}, seen)
	require.Equal(t, "failed without saying why", logs.All()[0].ContextMap()["error"], "not the earlier turn's")
}

// greedy is named by what it says of itself.
type greedy struct{}

func (greedy) Act(t *act.Task) act.Directive { return t.Fail(errors.New("more")) }
func (greedy) String() string                { return "greedy one" }

// unspeakable cannot even say its name.
type unspeakable struct{ greedy }

func (unspeakable) String() string { panic("no name") }

func TestANameThatPanicsHarmsNothing(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var h history
	s.Spawn(unspeakable{})
	s.Spawn(h.script("A", 2, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "AA", h.String())
	require.Equal(t, []any{"more"}, errorsOf(logs.All()))
	require.Contains(t, logs.All()[0].ContextMap()["task"], "no name")
}

// What panics between two turns is neither's: the one before goes on to be in its queue.
func TestAPanicBetweenTurnsFailsNoTask(t *testing.T) {
	cause := errors.New("lost the thread")
	s, logs := newScheduler(t, act.Config{Trace: &act.Trace{
		Told: func(t *act.Task, _ shutdown.Order) {
			if _, ok := t.Action().(greedy); ok {
				panic(cause)
			}
		},
	}})
	turns := 0
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		switch turns++; turns {
		case 1:
			s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
		case 2:
			s.Spawn(greedy{}) // told before its first turn
		}
		return act.Yield
	}))
	require.ErrorIs(t, s.Run(), cause)
	require.Equal(t, 2, turns)
	require.Empty(t, logs.All())
	require.ErrorContains(t, s.Close(), "dropped 2 tasks")
}

func TestTurnEndComesAfterTheTurnAndBeforeItsVerdict(t *testing.T) {
	var h history
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{
		TurnEnd: func(_ *act.Task, d act.Directive) { h.WriteString(d.String() + " ") },
	}})
	note := func(letter string) turnEnd { return func() { h.WriteString(letter + " ") } }
	turns := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if turns++; turns == 2 {
			return act.Done // the second turn has no ends of the first
		}
		s.Internals().AtTurnEnd(note("1"))
		s.Internals().AtTurnEnd(turnEnd(func() {
			h.WriteString("2 ")
			s.Internals().AtTurnEnd(note("4, given at a turn's end"))
		}))
		s.Internals().AtTurnEnd(note("3"))
		h.WriteString("turn ")
		return act.Yield
	}))
	require.NoError(t, s.Run())
	require.Equal(t, "turn 1 2 3 4, given at a turn's end Yield Done ", h.String())
}

func TestAWakeAtTurnEndCountsForTheWait(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var h history
	play := h.script("A", 3, act.Wait)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		s.Internals().AtTurnEnd(turnEnd(t.Waker().Wake))
		return play(t)
	}))
	servertest.InTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, "AAA", h.String())
}

func TestTurnEndComesAfterAPanicToo(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var h history
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		s.Internals().AtTurnEnd(turnEnd(func() { h.WriteString("1") }))
		s.Internals().AtTurnEnd(turnEnd(func() { panic("an end of it") }))
		s.Internals().AtTurnEnd(turnEnd(func() { h.WriteString("3") }))
		return explode("the turn")
	}))
	s.Spawn(h.script("B", 1, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "13B", h.String(), "the others still are, then the next task")
	require.ElementsMatch(t, []any{"panic: the turn", "panic: an end of it"}, errorsOf(logs.All()))
}

func TestTurnEndsOfPostedFunctionsComeAfterAllOfThePass(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var h history
	s.Post(func(s *act.Scheduler) {
		s.Internals().AtTurnEnd(turnEnd(func() { h.WriteString("e") }))
		h.WriteString("p")
	})
	s.Post(func(s *act.Scheduler) {
		s.Internals().AtTurnEnd(turnEnd(func() { panic("an end of it") }))
		s.Internals().AtTurnEnd(turnEnd(func() { h.WriteString("f") }))
		panic("the function")
	})
	s.Post(func(*act.Scheduler) { h.WriteString("q") })
	require.NoError(t, s.Run())
	require.Equal(t, "pqef", h.String())
	require.Equal(t, []string{"a posted function panicked", "a task failed"}, messages(logs))
	require.Equal(t, "posted function", logs.All()[1].ContextMap()["task"])
}

func errorsOf[E interface{ ContextMap() map[string]any }](entries []E) (all []any) {
	for _, e := range entries {
		all = append(all, e.ContextMap()["error"])
	}
	return all
}

func init() {
	children["crash"] = func() {
		s := act.New(act.Config{Crash: true})
		s.Spawn(act.Func(func(*act.Task) act.Directive { return explode("boom") }))
		fmt.Println("not reached:", s.Run())
	}
	children["no crash"] = func() {
		s := act.New(act.Config{})
		s.Spawn(act.Func(func(*act.Task) act.Directive { return explode("boom") }))
		fmt.Println("reached:", s.Run())
	}
}

func TestCrashLetsAPanicEndTheProcess(t *testing.T) {
	out, err := runChild(t, "crash")
	require.Error(t, err)
	require.Contains(t, out, "panic: boom")
	require.Contains(t, out, "act_test.explode")
	require.NotContains(t, out, "not reached")

	out, err = runChild(t, "no crash")
	require.NoError(t, err)
	require.Contains(t, out, "a task failed", "the nil Logger writes errors to standard error")
	require.Contains(t, out, "panic: boom")
	require.Contains(t, out, "reached: <nil>")
}
