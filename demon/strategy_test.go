package demon_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/shutdown"
)

// underEach runs f once for each strategy.
func underEach(t *testing.T, f func(t *testing.T, idle act.Strategy)) {
	for _, name := range demon.Strategies {
		t.Run(name, func(t *testing.T) {
			idle, err := demon.ParseStrategy(name)
			require.NoError(t, err)
			f(t, idle)
		})
	}
}

func TestPostsFromManyReachASleepingScheduler(t *testing.T) {
	underEach(t, func(t *testing.T, idle act.Strategy) {
		const posters, each = 8, 300
		s := act.New(act.Config{Idle: idle})
		defer s.Close()
		s.Install(demon.Stay())
		ended := runElsewhere(t, s)
		ran := make(map[int]int) // only on the scheduler's thread
		var all sync.WaitGroup
		for p := range posters {
			all.Go(func() {
				heard := make(chan bool)
				for n := range each {
					answer := n%10 == 0 // then it waits, and the scheduler goes to sleep
					s.Post(func(*act.Scheduler) {
						ran[p*each+n]++
						if answer {
							heard <- true
						}
					})
					if answer {
						<-heard
					}
				}
			})
		}
		all.Wait()
		s.Shutdown(shutdown.Now{})
		require.NoError(t, servertest.Receive(t, ended))
		require.Len(t, ran, posters*each)
		for _, times := range ran {
			require.Equal(t, 1, times)
		}
	})
}

func TestTimersAreNeverEarly(t *testing.T) {
	underEach(t, func(t *testing.T, idle act.Strategy) {
		s := act.New(act.Config{Idle: idle})
		defer s.Close()
		early, fired := 0, 0
		for _, d := range []time.Duration{0, time.Nanosecond, time.Microsecond, 30e3, 70e3, 300e3, 1e6, 1100e3, 2500e3, 7e6} {
			var tm act.Timer
			var due time.Duration
			left := 5
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if due != 0 {
					fired++
					if s.Clock().Monotonic() < due {
						early++
					}
				}
				if left--; left < 0 {
					return act.Done
				}
				due = s.Clock().Monotonic() + d
				t.WakeAfter(&tm, d)
				return act.Wait
			}))
		}
		require.NoError(t, s.Run())
		require.Equal(t, 50, fired)
		require.Zero(t, early)
	})
}

func TestADeadlineIsNotSleptOver(t *testing.T) {
	tier.Need(t, tier.Full, "measures time")
	underEach(t, func(t *testing.T, idle act.Strategy) {
		best := time.Hour // of several: the machine may be busy
		for tries, end := 0, time.Now().Add(servertest.Timeout); tries < 5 || best >= 4*time.Millisecond && time.Now().Before(end); tries++ {
			s := act.New(act.Config{Idle: idle})
			var tm act.Timer
			var due time.Duration
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if due == 0 {
					due = s.Clock().Monotonic() + 5*time.Millisecond
					t.WakeAt(&tm, due)
					return act.Wait
				}
				best = min(best, s.Clock().Monotonic()-due)
				return act.Done
			}))
			require.NoError(t, s.Run())
			require.NoError(t, s.Close())
		}
		require.Less(t, best, 4*time.Millisecond)
	})
}

func TestAnOrderReachesASleepingScheduler(t *testing.T) {
	strategies := map[string]act.Strategy{"a pause of an hour": demon.Pause(time.Hour)}
	for _, name := range demon.Strategies {
		strategies[name], _ = demon.ParseStrategy(name)
	}
	for name, idle := range strategies {
		t.Run(name, func(t *testing.T) {
			best := time.Hour
			for tries, end := 0, time.Now().Add(servertest.Timeout); tries < 5 || best >= 50*time.Millisecond && time.Now().Before(end); tries++ {
				s := act.New(act.Config{Idle: idle})
				s.Install(demon.Stay())
				ended := runElsewhere(t, s)
				time.Sleep(5 * time.Millisecond)
				start := time.Now()
				s.Shutdown(shutdown.Now{})
				require.NoError(t, servertest.Receive(t, ended))
				best = min(best, time.Since(start))
				require.NoError(t, s.Close())
			}
			require.Less(t, best, 50*time.Millisecond)
		})
	}
}

// passes counts the passes of a scheduler in which only time passes.
func passes(t *testing.T, idle act.Strategy, in time.Duration) int64 {
	var n atomic.Int64
	var rests atomic.Bool
	s := act.New(act.Config{Idle: idle, Trace: &act.Trace{
		Pass: func(*act.Scheduler) { n.Add(1); rests.Store(false) },
		Idle: func(_ *act.Scheduler, atMost time.Duration) { rests.Store(atMost != 0) },
	}})
	defer s.Close()
	s.Install(demon.Stay())
	ended := runElsewhere(t, s)
	settled := make(chan bool)
	s.Post(func(*act.Scheduler) { close(settled) })
	servertest.Receive(t, settled)
	require.Eventually(t, rests.Load, servertest.Timeout, time.Millisecond)
	begin := time.Now()
	before := n.Load()
	time.Sleep(in)
	counted := n.Load() - before
	counted = counted * int64(in) / int64(time.Since(begin)) // the sleep may have been a longer one
	s.Shutdown(shutdown.Now{})
	require.NoError(t, servertest.Receive(t, ended))
	return counted
}

func TestAnIdleSchedulerWakesUpNoMoreThanItsStrategySays(t *testing.T) {
	tier.Need(t, tier.Full, "counts passes in real time")
	const in = 200 * time.Millisecond
	for _, row := range []struct {
		name     string
		min, max int64 // passes in that time
	}{
		{"interrupt", 0, 0},
		{"poll", 10, int64(in / time.Millisecond)},
		{"hybrid", 0, 0},
		{"busy", 1000, 1 << 40},
	} {
		t.Run(row.name, func(t *testing.T) {
			idle, err := demon.ParseStrategy(row.name)
			require.NoError(t, err)
			n := passes(t, idle, in)
			require.GreaterOrEqual(t, n, row.min)
			require.LessOrEqual(t, n, row.max)
		})
	}
}
