package tasklet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/tasklet"
)

// A tasklet says what keeps it from its next phase.
func TestWaitsOfTasklets(t *testing.T) {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() })
	r := tasklet.RunnerOf(s)
	var resume tasklet.Rescheduler
	f := future.New[int](s)
	turns := 0
	x := &phases{"T", func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		switch turns++; turns {
		case 1:
			resume = r.Suspend(t)
			return tasklet.Wait
		case 2:
			return r.Await(t, f.Await())
		}
		return tasklet.Done
	}}
	require.NoError(t, r.Schedule(x, tasklet.Sync))
	said := func() []string {
		servertest.Step(t, s)
		return servertest.Said(s)
	}
	require.Contains(t, said(), "a Rescheduler")
	require.NoError(t, resume.Resume(tasklet.Sync))
	all := said()
	require.Contains(t, all, "the action of its Await")
	require.Contains(t, all, "a future")
	require.NoError(t, f.Resolve(1))
	require.NotContains(t, said(), "a Rescheduler")
	require.Equal(t, 3, turns)
}
