package future_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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
