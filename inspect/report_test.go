package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// A scheduler that is stuck answers with an old count of what is open on all of them.
func TestSumHasTheLatestCountOfOpenConnections(t *testing.T) {
	r := &Report{Schedulers: []*Scheduler{
		{Late: 3 * time.Second, Services: []Service{{Name: "tcp", Open: 5, Accepted: 5}}},
		{Services: []Service{{Name: "tcp", Open: 10, Accepted: 6}}},
	}}
	sum := r.Sum().Services
	require.Len(t, sum, 1)
	require.EqualValues(t, 10, sum[0].Open)
	require.EqualValues(t, 11, sum[0].Accepted)
}

// Tasks are for those that have asked for them: another viewer, at the same moment, gets the counts alone.
func TestTasksThatOthersHaveAskedForAreLeftOut(t *testing.T) {
	x := &Inspector{Watch: Watch{Limit: -1}}
	end := startRun(t, x, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(&waiter{what: "x"})
		return nil
	})
	defer end()
	with := x.Report(true)
	require.NotEmpty(t, with.Schedulers[0].Tasks)
	without := x.Report(false)
	require.Empty(t, without.Schedulers[0].Tasks)
	require.Equal(t, with.Schedulers[0].Counts, without.Schedulers[0].Counts)
	require.NotEmpty(t, x.Report(true).Schedulers[0].Tasks)
}
