package future_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/thread"
)

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
