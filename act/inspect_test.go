package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

func tasksOf(s *act.Scheduler, slice int) (all []hook.Task) {
	for from := uint32(1); from != 0; {
		n := 0
		from = hook.EachTask(s, from, func(t hook.Task) bool {
			all, n = append(all, t), n+1
			return n < slice
		})
	}
	return all
}

// A walk in slices sees each task once, also when it is longer than one piece of the scheduler's memory.
func TestEachTaskInSlices(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	for range 200 {
		s.Spawn(act.Func(func(*act.Task) act.Directive { return act.Yield }))
	}
	for _, slice := range []int{1, 7, 63, 1000} {
		all := tasksOf(s, slice)
		require.Len(t, all, 200)
		for i, x := range all {
			require.EqualValues(t, i+1, x.ID)
			require.Equal(t, x.ID, hook.Place(x.Task))
			require.Equal(t, "ready", x.State)
		}
	}
}

func TestWhatIsSeenOfTasks(t *testing.T) {
	s, clock, _ := newVirtual(t, act.Config{Executor: never{}})
	var soon, late act.Timer
	s.Spawn(act.Func(func(x *act.Task) act.Directive {
		x.WakeAfter(&late, time.Minute)
		x.WakeAfter(&soon, time.Second)
		return act.Wait
	}))
	s.Spawn(act.Func(func(x *act.Task) act.Directive { return x.Offload(func() {}) }))
	s.Attach(&monitor{})
	_, err := s.Step(3)
	require.NoError(t, err)
	clock.advance(300 * time.Millisecond)
	_, err = s.Step(1)
	require.NoError(t, err)

	all := tasksOf(s, 10)
	require.Len(t, all, 3)
	require.Equal(t, "waiting", all[0].State)
	require.Equal(t, 2, all[0].Timers)
	require.Equal(t, 700*time.Millisecond, all[0].Due)
	require.Equal(t, "offloaded", all[1].State)
	require.False(t, all[1].Demon)
	require.True(t, all[2].Demon)

	counts := map[string]uint64{}
	hook.Counts(s, func(name string, n uint64) { counts[name] = n })
	require.EqualValues(t, 2, counts["tasks"])
	require.EqualValues(t, 3, counts["turns_total"])
	require.EqualValues(t, 1, counts["offloads_total"])
	require.EqualValues(t, 1, counts["offloads"])
}

// never is an Executor whose functions do not return during the test.
type never struct{}

func (never) Execute(func()) {}
