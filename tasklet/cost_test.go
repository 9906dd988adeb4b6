package tasklet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/tasklet"
)

// spin is a tasklet that always answers Sync.
type spin struct{ n int }

func (p *spin) Task(*tasklet.Runner) tasklet.Directive { p.n++; return tasklet.Sync }

func TestAllocations(t *testing.T) {
	a := act.New(act.Config{})
	defer a.Close()
	r := tasklet.RunnerOf(a)
	x, y := &spin{}, &spin{}
	right := r.Suspend(y)
	schedule(t, r, tasklet.Sync, x)
	_, err := a.Step(1000)
	require.NoError(t, err)
	for name, do := range map[string]func(){
		"a SYNC phase": func() { _, _ = a.Step(1) },
		"Schedule":     func() { _ = r.Schedule(x, tasklet.Sync); _, _ = a.Step(10) },
		"a resumption": func() { _ = r.Schedule(y, tasklet.Wait); _ = right.Resume(tasklet.Sync); _, _ = a.Step(200) },
	} {
		do()
		require.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}
