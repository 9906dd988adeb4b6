package monitor_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lab"
	"github.com/daimon-go/daimon/monitor"
)

// A sleep is interrupted with one write at most, however many post and whenever they come.
func TestThereAreNoMoreWakeUpWritesThanSleeps(t *testing.T) {
	const rounds, posters, each = 50, 8, 10
	var sleeps, ran atomic.Int64
	os := &lab.OS{}
	cfg := act.Config{Schedulers: 1, Trace: &act.Trace{Idle: func(_ *act.Scheduler, atMost time.Duration) {
		if atMost != 0 {
			sleeps.Add(1)
		}
	}}}
	r := lab.Start(t, cfg, func(s *act.Scheduler) error {
		monitor.Inject(s, os)
		_, err := monitor.Engine(s)
		s.Hold(1)
		return err
	})
	settled(os)
	begun := sleeps.Load() - 1 // it sleeps
	os.Forget()
	for range rounds {
		var all sync.WaitGroup
		for range posters {
			all.Go(func() {
				for range each {
					r.Group.Schedulers()[0].Post(func(*act.Scheduler) { ran.Add(1) })
				}
			})
		}
		all.Wait()
		time.Sleep(200 * time.Microsecond) // it falls asleep again
	}
	require.Eventually(t, func() bool { return ran.Load() == rounds*posters*each }, lab.Patience, time.Millisecond)
	settled(os)
	writes, slept := os.Count("interrupt"), sleeps.Load()-begun
	t.Logf("%d posts, %d sleeps, %d writes", ran.Load(), slept, writes)
	require.Positive(t, writes)
	require.LessOrEqual(t, int64(writes), slept)
	r.On(0, func(s *act.Scheduler) { s.Hold(-1) })
	require.NoError(t, r.End())
}
