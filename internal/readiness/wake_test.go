package readiness_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/servertest"
)

// A sleep is interrupted with one write at most, however many post and whenever they come; and nothing else is. Both
// are counted from the beginning of Run to its end: in between, a write may be counted before the sleep that it ends.
func TestThereAreNoMoreWakeUpWritesThanSleeps(t *testing.T) {
	const rounds, posters, each = 50, 8, 10
	var sleeps, ran atomic.Int64
	os := &servertest.OS{}
	cfg := act.Config{Schedulers: 1, Trace: &act.Trace{Idle: func(_ *act.Scheduler, atMost time.Duration) {
		if atMost != 0 {
			sleeps.Add(1)
		}
	}}}
	r := servertest.Start(t, cfg, func(s *act.Scheduler) error {
		readiness.Inject(s, os)
		err := readiness.Of(s).Open()
		s.Hold(1)
		return err
	})
	require.Eventually(t, func() bool { return sleeps.Load() > 0 }, servertest.Timeout, time.Millisecond)
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
	require.Eventually(t, func() bool { return ran.Load() == rounds*posters*each }, servertest.Timeout, time.Millisecond)
	r.On(0, func(s *act.Scheduler) { s.Hold(-1) })
	require.NoError(t, r.End())
	writes, slept := os.Count("interrupt"), sleeps.Load()
	t.Logf("%d posts, %d sleeps, %d writes", ran.Load(), slept, writes)
	require.Positive(t, writes)
	require.LessOrEqual(t, int64(writes), slept)
}

// release takes a Hold back when its time has come.
type release struct{ s *act.Scheduler }

func (r release) Expire() { r.s.Hold(-1) }

// hooked is a clock that stands still, and does something at its next reading.
type hooked struct{ reading func() }

func (c *hooked) Monotonic() time.Duration {
	if f := c.reading; f != nil {
		c.reading = nil
		f()
	}
	return 0
}

func (*hooked) Wall() time.Time { return time.Time{} }
