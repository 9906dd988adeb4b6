package future_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNo, errBad = errors.New("no"), errors.New("bad")

// stepped returns a scheduler that the test steps, and its logs.
func stepped(t testing.TB) (*act.Scheduler, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	s := act.New(act.Config{Logger: zap.New(core)})
	t.Cleanup(func() { _ = s.Close() })
	return s, logs
}

// outcome describes the state of f.
func outcome[T comparable](f *future.Future[T]) string {
	v, err := f.Value()
	switch {
	case errors.Is(err, future.ErrPending):
		return "pending"
	case err != nil:
		return strings.ReplaceAll(err.Error(), "\n", "+")
	}
	return strings.Trim(sprint(v), "[]")
}

func resolved[T any](s *act.Scheduler, v T) *future.Future[T] {
	f := future.New[T](s)
	_ = f.Resolve(v)
	return f
}

func failed[T any](s *act.Scheduler, err error) *future.Future[T] {
	f := future.New[T](s)
	_ = f.Fail(err)
	return f
}

func TestWrongUseSaysSo(t *testing.T) {
	s, _ := stepped(t)
	require.PanicsWithValue(t, "future: Fail without an error", func() { _ = future.New[int](s).Fail(nil) })
	require.PanicsWithValue(t, "future: Do of a nil action", func() { future.Do(s, nil, func() int { return 1 }) })
	require.PanicsWithValue(t, "future: New needs a scheduler, for the callbacks", func() { future.New[int](nil) })
}

// waiter is a task that waits for f and records when it was done.
func waiter(f act.Action, name string, log *[]string) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		switch d := f.Act(t); d {
		case act.Done:
			*log = append(*log, name)
			return d
		case act.Failed:
			*log = append(*log, name+":"+t.Err().Error())
			return act.Done
		default:
			return d
		}
	})
}

func TestAwaitAnswersAgain(t *testing.T) {
	s, _ := stepped(t)
	ok, bad := resolved(s, 1).Await(), failed[int](s, errNo).Await()
	s.Spawn(act.Func(func(tk *act.Task) act.Directive {
		for range 3 {
			require.Equal(t, act.Done, ok.Act(tk))
			require.Equal(t, act.Failed, bad.Act(tk))
			require.Equal(t, errNo, tk.Err())
		}
		return act.Done
	}))
	servertest.Step(t, s)
}

func double(v int) (int, error) { return 2 * v, nil }
func explode(int) (int, error)  { panic(errBad) }

func TestAPanicOfAFunctionIsTheFailureOfItsResult(t *testing.T) {
	s, logs := stepped(t)
	g := future.Map(resolved(s, 21), explode)
	servertest.Step(t, s)
	require.Equal(t, "panic: bad", outcome(g))
	require.Zero(t, logs.Len())
	_, err := g.Value()
	require.ErrorIs(t, err, errBad)
	require.Contains(t, string(err.(*act.Panic).Stack), "future_test.explode")
}

func TestASingleErrorOfAllIsItself(t *testing.T) {
	s, _ := stepped(t)
	all := future.All(s, resolved(s, 1), failed[int](s, errNo))
	servertest.Step(t, s)
	_, err := all.Value()
	require.Equal(t, errNo, err)
}

func TestAResultThatFailsBeforeItsCallbackRunsKeepsTheFailure(t *testing.T) {
	s, logs := stepped(t)
	f := future.New[int](s)
	g := future.Map(f, double)
	servertest.Step(t, s)
	require.NoError(t, g.Fail(errNo), "a time-out, say")
	require.NoError(t, f.Resolve(1))
	servertest.Step(t, s)
	require.Equal(t, "no", outcome(g))
	require.Zero(t, logs.Len())
}

func sprint(v ...any) string { return strings.TrimSuffix(fmt.Sprintln(v...), "\n") }

func TestAllocations(t *testing.T) {
	s, _ := stepped(t)
	for _, row := range []struct {
		name string
		want float64
		do   func()
	}{
		{"a future", 1, func() { _ = future.New[int](s).Resolve(1) }},
		{"a future and a leaf", 2, func() {
			f := future.New[int](s)
			s.Spawn(f.Await())
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
		{"a future, a handler, its closure and what that has captured", 4, func() {
			f, n := future.New[int](s), 0
			f.Handle(func(int, error) { n++ })
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
		{"two futures and a callback", 3, func() {
			f := future.New[int](s)
			future.Map(f, double)
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
	} {
		row.do()
		require.Equal(t, row.want, testing.AllocsPerRun(200, row.do), row.name)
	}
}

func seen(int, error) {}

// What waits for a future says so.
func TestWaitsForFutures(t *testing.T) {
	for name, c := range map[string]struct {
		begin    func(s *act.Scheduler, f *future.Future[int])
		pending  string
		resolved string // what is said when f is resolved
	}{
		"Await":  {func(s *act.Scheduler, f *future.Future[int]) { s.Spawn(f.Await()) }, "a future", ""},
		"Handle": {func(_ *act.Scheduler, f *future.Future[int]) { f.Handle(seen) }, "a future, for future_test.seen", ""},
		"All":    {func(s *act.Scheduler, f *future.Future[int]) { future.All(s, f, future.New[int](s)) }, "a future, number 1 of 2", "a future, number 2 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := act.New(act.Config{})
			t.Cleanup(func() { _ = s.Close() })
			f := future.New[int](s)
			said := func() string {
				servertest.Step(t, s)
				return strings.ReplaceAll(strings.Join(servertest.Said(s), ", "), "github.com/daimon-go/daimon/", "")
			}
			c.begin(s, f)
			require.Equal(t, c.pending, said())
			require.NoError(t, f.Resolve(1))
			require.Equal(t, c.resolved, said())
		})
	}
}
