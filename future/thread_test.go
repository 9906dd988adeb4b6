package future_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/thread"
)

// Each of two schedulers resolves what the other waits for, and then waits itself, so that one begins to wait about
// when the other resolves. If a wake-up were lost, both would sleep for ever.
func TestWaitingWhileItIsResolvedLosesNoWake(t *testing.T) {
	for name, idle := range map[string]act.Strategy{"asleep": nil, "busy": demon.Busy()} {
		for _, home := range []string{"at home", "on another scheduler"} {
			t.Run(name+" "+home, func(t *testing.T) {
				const steps = 300
				g := act.NewGroup(act.Config{Schedulers: 2, Idle: idle})
				var futures [2][]*future.Future[int] // by the waiting scheduler
				for i := range futures {
					for range steps {
						at := i
						if home != "at home" {
							at = 1 - i
						}
						futures[i] = append(futures[i], future.New[int](g.Schedulers()[at]))
					}
				}
				require.NoError(t, g.Run(context.Background(), func(s *act.Scheduler) error {
					mine, others := futures[s.Index()], futures[1-s.Index()]
					n := 0
					a := &again{left: steps, f: func() act.Action {
						_ = others[n].Resolve(n)
						n++
						return mine[n-1].Await()
					}}
					s.Spawn(a)
					return nil
				}))
				require.NoError(t, g.Close())
			})
		}
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
