package future_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

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
