package future_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
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

func TestOutcome(t *testing.T) {
	s, _ := stepped(t)
	f := future.New[string](s)
	require.False(t, f.Resolved())
	_, err := f.Value()
	require.ErrorIs(t, err, future.ErrPending)

	require.NoError(t, f.Resolve("first"))
	require.ErrorIs(t, f.Resolve("second"), future.ErrResolved)
	require.ErrorIs(t, f.Fail(errNo), future.ErrResolved)
	require.True(t, f.Resolved())
	for range 2 {
		v, err := f.Value()
		require.NoError(t, err)
		require.Equal(t, "first", v)
	}

	f = failed[string](s, errNo)
	require.True(t, f.Resolved())
	require.ErrorIs(t, f.Resolve("late"), future.ErrResolved)
	require.ErrorIs(t, f.Fail(errBad), future.ErrResolved)
	v, err := f.Value()
	require.Zero(t, v)
	require.Equal(t, errNo, err)
}

func TestWrongUseSaysSo(t *testing.T) {
	s, _ := stepped(t)
	require.PanicsWithValue(t, "future: Fail without an error", func() { _ = future.New[int](s).Fail(nil) })
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

func TestAwait(t *testing.T) {
	for _, row := range []struct {
		name    string
		resolve func(f *future.Future[int])
		want    string
	}{
		{"a value", func(f *future.Future[int]) { _ = f.Resolve(1) }, "A B C"},
		{"a failure", func(f *future.Future[int]) { _ = f.Fail(errNo) }, "A:no B:no C:no"},
		{"nothing", func(f *future.Future[int]) {}, ""},
	} {
		for _, before := range []bool{true, false} {
			t.Run(row.name, func(t *testing.T) {
				s, logs := stepped(t)
				f := future.New[int](s)
				var log []string
				if before {
					row.resolve(f)
				}
				for _, name := range []string{"A", "B", "C"} {
					s.Spawn(waiter(f.Await(), name, &log))
				}
				servertest.Step(t, s)
				if !before {
					require.Empty(t, log)
					row.resolve(f)
				}
				servertest.Step(t, s)
				require.Equal(t, row.want, strings.Join(log, " "))
				require.Zero(t, logs.Len())
			})
		}
	}
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

func TestAwaitOfWhatIsResolvedInTheSameTurn(t *testing.T) {
	s, _ := stepped(t)
	f := future.New[int](s)
	s.Spawn(act.Func(func(tk *act.Task) act.Directive {
		a := f.Await()
		require.Equal(t, act.Wait, a.Act(tk))
		require.NoError(t, f.Resolve(1))
		require.Equal(t, act.Done, a.Act(tk))
		return act.Done
	}))
	require.NoError(t, s.Run())
}

func double(v int) (int, error)     { return 2 * v, nil }
func refuse(int) (int, error)       { return 0, errBad }
func explode(int) (int, error)      { panic("boom") }
func explodeWith(int) (int, error)  { panic(errBad) }
func mend(error) (int, error)       { return -1, nil }
func worsen(err error) (int, error) { return 0, errors.Join(err, errBad) }

func TestDerived(t *testing.T) {
	type fut = *future.Future[int]
	then := func(outcome func(s *act.Scheduler) fut) func(s *act.Scheduler, f fut) fut {
		return func(s *act.Scheduler, f fut) fut {
			return future.Then(f, func(int) fut { return outcome(s) })
		}
	}
	for _, row := range []struct {
		name              string
		make              func(s *act.Scheduler, f fut) fut
		ofValue, ofFailed string // when f is 21, or failed with no
	}{
		{"Map", func(_ *act.Scheduler, f fut) fut { return future.Map(f, double) }, "42", "no"},
		{"Map to a failure", func(_ *act.Scheduler, f fut) fut { return future.Map(f, refuse) }, "bad", "no"},
		{"Map that panics", func(_ *act.Scheduler, f fut) fut { return future.Map(f, explode) }, "panic: boom", "no"},
		{"Map that panics with an error", func(_ *act.Scheduler, f fut) fut { return future.Map(f, explodeWith) }, "panic: bad", "no"},
		{"Map of Map", func(_ *act.Scheduler, f fut) fut {
			return future.Map(future.Map(future.Map(f, double), refuse), double)
		}, "bad", "no"},
		{"Recover", func(_ *act.Scheduler, f fut) fut { return f.Recover(mend) }, "21", "-1"},
		{"Recover to a failure", func(_ *act.Scheduler, f fut) fut { return f.Recover(worsen) }, "21", "no+bad"},
		{"Recover further up", func(_ *act.Scheduler, f fut) fut {
			return future.Map(future.Map(f, refuse).Recover(mend), double)
		}, "-2", "-2"},
		{"Then of a resolved one", then(func(s *act.Scheduler) fut { return resolved(s, 5) }), "5", "no"},
		{"Then of a failed one", then(func(s *act.Scheduler) fut { return failed[int](s, errBad) }), "bad", "no"},
		{"Then of a later one", then(func(s *act.Scheduler) fut { return future.Map(resolved(s, 5), double) }), "10", "no"},
		{"Then of none", then(func(s *act.Scheduler) fut { return nil }),
			"panic: future: the function given to Then returned no future", "no"},
		{"Then that panics", then(func(s *act.Scheduler) fut { panic("boom") }), "panic: boom", "no"},
		{"Then of one that stays pending", then(func(s *act.Scheduler) fut { return future.New[int](s) }), "pending", "no"},
		{"All of one", func(s *act.Scheduler, f fut) fut {
			return future.Map(future.All(s, f), func(vs []int) (int, error) { return vs[0], nil })
		}, "21", "no"},
		{"Any of one", func(s *act.Scheduler, f fut) fut { return future.Any(s, f) }, "21", "no"},
		{"Any beside a pending one", func(s *act.Scheduler, f fut) fut {
			return future.Any(s, future.New[int](s), f)
		}, "21", "pending"},
	} {
		for _, how := range []struct {
			name    string
			resolve func(f fut)
			want    string
		}{
			{"value", func(f fut) { _ = f.Resolve(21) }, row.ofValue},
			{"failure", func(f fut) { _ = f.Fail(errNo) }, row.ofFailed},
		} {
			for _, before := range []bool{true, false} {
				t.Run(row.name+" of a "+how.name, func(t *testing.T) {
					s, logs := stepped(t)
					f := future.New[int](s)
					if before {
						how.resolve(f)
					}
					g := row.make(s, f)
					require.False(t, g.Resolved(), "never within the call that registers it")
					if !before {
						servertest.Step(t, s)
						require.False(t, g.Resolved())
						how.resolve(f)
						require.False(t, g.Resolved(), "never within Resolve")
					}
					servertest.Step(t, s)
					require.Equal(t, how.want, outcome(g))
					require.Zero(t, logs.Len())
				})
			}
		}
	}
}

func TestAPanicKeepsItsValueAndItsStack(t *testing.T) {
	s, _ := stepped(t)
	g := future.Map(resolved(s, 1), explodeWith)
	servertest.Step(t, s)
	_, err := g.Value()
	var p *act.Panic
	require.ErrorAs(t, err, &p)
	require.ErrorIs(t, err, errBad)
	require.Contains(t, string(p.Stack), "explodeWith")
}

func TestAllAndAny(t *testing.T) {
	for _, row := range []struct {
		name     string
		fate     string // of each: v a value, x a failure, . pending
		all, any string
	}{
		{"none", "", "", "future: none to wait for"},
		{"one value", "v", "0", "0"},
		{"values", "vvv", "0 1 2", "0"},
		{"one pending", "v.v", "pending", "0"},
		{"one failure", "vxv", "x1", "0"},
		{"a failure is kept until the rest is known", "x.v", "pending", "2"},
		{"several failures", "xvx", "x0+x2", "1"},
		{"only failures", "xxx", "x0+x1+x2", "x0+x1+x2"},
		{"failures and a pending one", "xx.", "pending", "pending"},
		{"all pending", "...", "pending", "pending"},
	} {
		for _, before := range []bool{true, false} {
			t.Run(row.name, func(t *testing.T) {
				s, logs := stepped(t)
				var fs []*future.Future[int]
				for range row.fate {
					fs = append(fs, future.New[int](s))
				}
				resolve := func() {
					for i, fate := range row.fate {
						switch fate {
						case 'v':
							_ = fs[i].Resolve(i)
						case 'x':
							_ = fs[i].Fail(errors.New("x" + sprint(i)))
						}
					}
				}
				if before {
					resolve()
				}
				all, any := future.All(s, fs...), future.Any(s, fs...)
				servertest.Step(t, s)
				if !before {
					resolve()
					servertest.Step(t, s)
				}
				text := future.Map(all, func(vs []int) (string, error) { return sprint(vs), nil })
				servertest.Step(t, s)
				require.Equal(t, row.all, outcome(text))
				require.Equal(t, row.any, outcome(any))
				require.Zero(t, logs.Len())
			})
		}
	}
}

func TestAResultThatFailsBeforeItsCallbackRunsKeepsTheFailure(t *testing.T) {
	s, logs := stepped(t)
	f := future.New[int](s)
	g := future.Map(f, double)
	timedOut := g.Recover(mend)
	servertest.Step(t, s)
	require.NoError(t, g.Fail(errNo), "a time-out, say")
	servertest.Step(t, s)
	require.Equal(t, "-1", outcome(timedOut))
	require.NoError(t, f.Resolve(1))
	servertest.Step(t, s)
	require.Equal(t, "no", outcome(g))
	require.Zero(t, logs.Len())
}

func sprint(v ...any) string { return strings.TrimSuffix(fmt.Sprintln(v...), "\n") }
