package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// A message goes to a scheduler that sleeps, and to one that is in a turn only if none sleeps.
func TestARunnerWhoseSchedulerRestsIsTakenFirst(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 3, Threads: act.Stepped})
	defer g.Close()
	var all []*runner
	for _, s := range g.Schedulers() {
		all = append(all, &runner{s: s})
	}
	g.Schedulers()[2].Spawn(act.Func(func(*act.Task) act.Directive {
		var idle idleStack
		for _, r := range all {
			idle.push(r)
		}
		require.Same(t, all[1], idle.pop(), "the last whose scheduler rests, and not the last, which is in this turn")
		require.Same(t, all[0], idle.pop())
		require.Same(t, all[2], idle.pop(), "there is no other")
		require.Nil(t, idle.pop())
		return act.Done
	}))
	_, err := g.Schedulers()[2].Step(10)
	require.NoError(t, err)
	require.True(t, g.Schedulers()[2].Finished())
}
