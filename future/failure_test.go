package future_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"
)

// collected runs the garbage collector until there are n logs, and then a few times more, to find logs too many.
func collected(logs *observer.ObservedLogs, n int) int {
	for end := time.Now().Add(servertest.Timeout); logs.Len() < n && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	return logs.Len()
}

func TestAFailureThatIsNotHandledIsReportedOnce(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(s *act.Scheduler)
		want int
	}{
		{"never looked at", func(s *act.Scheduler) { failed[int](s, errNo) }, 1},
		{"only asked whether it is resolved", func(s *act.Scheduler) { failed[int](s, errNo).Resolved() }, 1},
		{"passed on and not looked at there", func(s *act.Scheduler) {
			future.Map(future.Map(failed[int](s, errNo), double), double)
		}, 1},
		{"a panic", func(s *act.Scheduler) { future.Map(resolved(s, 1), explode) }, 1},
		{"Value", func(s *act.Scheduler) { _, _ = failed[int](s, errNo).Value() }, 0},
		{"Handle", func(s *act.Scheduler) { failed[int](s, errNo).Handle(func(int, error) {}) }, 0},
		{"Await", func(s *act.Scheduler) { s.Spawn(waiter(failed[int](s, errNo).Await(), "", new([]string))) }, 0},
		{"All", func(s *act.Scheduler) { future.All(s, failed[int](s, errNo), failed[int](s, errBad)) }, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := stepped(t)
			row.do(s)
			servertest.Step(t, s)
			require.Equal(t, row.want, collected(logs, row.want))
			for _, e := range logs.All() {
				require.Equal(t, "a future failed and its error was never read", e.Message)
			}
		})
	}
}

func TestAFailureThatMayYetBeHandledIsNotReported(t *testing.T) {
	s, logs := stepped(t)
	f := failed[int](s, errNo)
	require.Zero(t, collected(logs, 0))
	require.Equal(t, "no", outcome(f))
}

func TestWhatIsDroppedIsReportedInTheCutOnly(t *testing.T) {
	s, logs := stepped(t)
	func() { future.Map(future.New[int](s), double) }()
	servertest.Step(t, s)
	s.Shutdown(servertest.Cut)
	require.ErrorContains(t, s.Run(), "dropped 1 task (github.com/daimon-go/daimon/future_test.double, when a future is resolved)")
	require.Zero(t, collected(logs, 0))
}

func TestCallbacksKeepTheirOrderWhenAnOrderMakesThemReady(t *testing.T) {
	s := act.New(act.Config{TurnsPerPass: 1}) // a pass after each turn
	defer s.Close()
	filler := act.Func(func(*act.Task) act.Directive { return act.Done })
	for range 5 {
		s.Spawn(filler)
	}
	servertest.Step(t, s)
	// An order wakes tasks in the order of their memory, which is used again last in, first out. So e is woken
	// first, and only its turn comes before the notification arrives.
	f := future.New[int](s)
	log := ""
	for _, c := range "abcde" {
		f.Handle(func(int, error) { log += string(c) })
	}
	servertest.Step(t, s)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, f.Resolve(1))
	require.NoError(t, s.Run())
	require.Equal(t, "abcde", log)
}

func TestAPanicInHandleIsReportedOnceAndAffectsNoOtherTask(t *testing.T) {
	s, logs := stepped(t)
	f := resolved(s, 1)
	ran := false
	f.Handle(func(int, error) { panic("boom") })
	f.Handle(func(int, error) { ran = true })
	servertest.Step(t, s)
	require.True(t, ran)
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "panic: boom", logs.All()[0].ContextMap()["error"])
}

func TestAPendingFutureDoesNotKeepRunFromReturning(t *testing.T) {
	s, _ := stepped(t)
	f := future.New[int](s)
	require.NoError(t, s.Run())
	require.NoError(t, s.Close())
	require.NoError(t, f.Resolve(3), "it outlives its scheduler")
	require.Equal(t, "3", outcome(f))
}

func TestPendingCallbacksUnderOrders(t *testing.T) {
	for _, row := range []struct {
		name  string
		terms shutdown.Policy
		g     string
	}{
		{"zero bound, kept", shutdown.Policy{Kind: shutdown.Halt}, "pending"},
		{"suspended and dropped", shutdown.Policy{Kind: shutdown.Suspend, Drop: true}, "act: dropped before it had finished"},
		{"time, then dropped", shutdown.Policy{Time: 1, Drop: true}, "act: dropped before it had finished"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := stepped(t)
			f := future.New[int](s)
			g := future.Map(f, double)
			all := future.All(s, f)
			servertest.Step(t, s)
			s.Shutdown(row.terms)
			var cut *shutdown.Cut
			require.ErrorAs(t, s.Run(), &cut)
			require.Equal(t, 2, cut.Tasks)
			for _, name := range []string{"_test.double, when a future is resolved", "future.All"} {
				require.Contains(t, fmt.Sprint(cut.Names), name)
			}
			require.Equal(t, []shutdown.Count{{Name: "futures", N: 2}}, cut.Kinds)
			require.Equal(t, row.g, outcome(g))
			require.Equal(t, row.g == "pending", !all.Resolved())
			require.NoError(t, f.Resolve(4))
			if row.g == "pending" { // and goes on later
				require.NoError(t, s.Run())
				require.Equal(t, "8", outcome(g))
			}
			require.Zero(t, logs.Len())
		})
	}
}

func TestACallbackThatIsDroppedDoesNotHoldUpTheNext(t *testing.T) {
	s, _ := stepped(t)
	f := future.New[int](s)
	log := ""
	f.Handle(func(int, error) { log += "a" })
	servertest.Step(t, s)
	for _, stricter := range []shutdown.Policy{{Turns: 2, Drop: true}, {Turns: 2, Drop: true, Time: time.Hour}} {
		s.Shutdown(stricter) // being told takes one of the two turns
		servertest.Step(t, s)
	}
	f.Handle(func(int, error) { log += "b" })
	f.Handle(func(int, error) { log += "c" })
	require.NoError(t, f.Resolve(1))
	var cut *shutdown.Cut
	require.ErrorAs(t, s.Run(), &cut)
	require.Equal(t, 1, cut.Tasks)
	require.Equal(t, "bc", log)
}

// Each of two schedulers resolves what the other waits for, and then waits itself, so that one begins to wait about
// when the other resolves. If a wake-up were lost, both would sleep for ever.
func TestWaitingWhileItIsResolvedLosesNoWake(t *testing.T) {
	for _, home := range []int{0, 1} { // of what scheduler 0 waits for
		const steps = 300
		g := act.NewGroup(act.Config{Schedulers: 2})
		var futures [2][steps]*future.Future[int] // by the waiting scheduler
		for i := range steps {
			futures[0][i] = future.New[int](g.Schedulers()[home])
			futures[1][i] = future.New[int](g.Schedulers()[1-home])
		}
		require.NoError(t, g.Run(context.Background(), func(s *act.Scheduler) error {
			var all []act.Action
			for i, mine := range futures[s.Index()] {
				all = append(all, act.Func(func(*act.Task) act.Directive {
					_ = futures[1-s.Index()][i].Resolve(i)
					return act.Done
				}), mine.Await())
			}
			s.Spawn(act.Seq(all...))
			return nil
		}))
		require.NoError(t, g.Close())
	}
}

func TestCallbacksRunAtHome(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 2})
	home, other := g.Schedulers()[0], g.Schedulers()[1]
	f, far := future.New[int](home), future.New[int](other)
	var at []uint64
	note := func(v int) (int, error) { at = append(at, thread.ID()); return v, nil }
	var ids [2]uint64
	require.NoError(t, g.Run(context.Background(), func(s *act.Scheduler) error {
		ids[s.Index()] = thread.ID()
		if s == home {
			future.Map(f, note)
			all := future.All(home, f, far)
			future.Map(all, func(vs []int) (int, error) { return note(len(vs)) })
			all.Handle(func([]int, error) { _, _ = note(0) })
			return nil
		}
		s.Spawn(act.Func(func(*act.Task) act.Directive { _ = f.Resolve(1); return act.Done }))
		s.Spawn(act.Func(func(*act.Task) act.Directive { _ = far.Resolve(2); return act.Done }))
		return nil
	}))
	require.Equal(t, []uint64{ids[0], ids[0], ids[0]}, at)
	require.NotEqual(t, ids[0], ids[1])
	require.NoError(t, g.Close())
}

func TestAFutureIsWaitedForAfterItsHomeWasClosed(t *testing.T) {
	home, _ := stepped(t)
	s, _ := stepped(t)
	f := future.New[int](home)
	var log []string
	s.Spawn(waiter(f.Await(), "done", &log))
	servertest.Step(t, s)
	require.NoError(t, home.Close())
	require.NoError(t, f.Resolve(1))
	servertest.Step(t, s)
	require.Equal(t, []string{"done"}, log)
}
