package monitor_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/monitor"
)

func TestAConnLimiterHasAsManyPlacesAsGiven(t *testing.T) {
	a := monitor.NewConnLimiter(2)
	require.True(t, a.Acquire())
	require.True(t, a.Acquire())
	require.False(t, a.Acquire())
	require.Equal(t, 2, a.Open())
	a.Release()
	require.True(t, a.Acquire())

	for _, unlimited := range []*monitor.ConnLimiter{nil, monitor.NewConnLimiter(0), monitor.NewConnLimiter(-1)} {
		for range 1000 {
			require.True(t, unlimited.Acquire())
		}
		unlimited.Release()
		unlimited.Await(&act.AtomicWaker{})
	}
	var none *monitor.ConnLimiter
	require.Zero(t, none.Open(), "it counts nothing")
	require.Equal(t, 1000, func() int { a := monitor.NewConnLimiter(0); enter(a, 1000); return a.Open() }())
}

func enter(a *monitor.ConnLimiter, n int) {
	for range n {
		a.Acquire()
	}
}

// What was broken: a caller that waited again before a place was free was noted again.
func TestAWaiterForAPlaceIsNotedOnce(t *testing.T) {
	a := monitor.NewConnLimiter(1)
	require.True(t, a.Acquire())
	var bell act.AtomicWaker
	for range 100 {
		a.Await(&bell)
	}
	require.Equal(t, 1, monitor.Waiting(a))
	a.Release()
	require.Zero(t, monitor.Waiting(a))
}

// Between "there is no place" and "wake me when there is" the place may have become free.
func TestAPlaceReleasedBeforeTheWaitIsNotMissed(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := monitor.NewConnLimiter(1)
	require.True(t, a.Acquire())
	woken := 0
	var bell act.AtomicWaker
	l.S.Spawn(servertest.Waits(func(t *act.Task) {
		a.Release()
		bell.Set(t.Waker())
		a.Await(&bell)
	}, &woken))
	l.Until("woken", func() bool { return woken == 1 })
}

// One that is woken may have nothing to accept: then the place must not stay free while another has.
func TestAFreePlaceWakesAllThatWait(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := monitor.NewConnLimiter(1)
	require.True(t, a.Acquire())
	const waiters = 3
	var bells [waiters]act.AtomicWaker
	woken := 0
	for i := range bells {
		l.S.Spawn(servertest.Waits(func(t *act.Task) {
			bells[i].Set(t.Waker())
			a.Await(&bells[i])
		}, &woken))
	}
	l.Until("all wait", func() bool { return monitor.Waiting(a) == waiters })
	require.Zero(t, woken)
	a.Release()
	l.Until("all are woken", func() bool { return woken == waiters })
}

// guest is a task that takes a place again and again and gives it back later, from another goroutine.
type guest struct {
	places *monitor.ConnLimiter
	bell   act.AtomicWaker
	left   int
	leave  chan<- *monitor.ConnLimiter
	inside *atomic.Int64
}

func (g *guest) Act(t *act.Task) act.Directive {
	if g.left == 0 {
		return act.Done
	}
	if !g.places.Acquire() {
		g.bell.Set(t.Waker())
		g.places.Await(&g.bell)
		return act.Wait
	}
	if g.inside.Add(1) > 3 {
		panic("more are inside than there are places")
	}
	g.left--
	g.leave <- g.places
	return act.Yield
}

// A caller that is refused is woken: none of many on two schedulers is left waiting.
func TestNoWaiterIsForgottenAtTheLimit(t *testing.T) {
	const guests, visits = 6, 1500
	places := monitor.NewConnLimiter(3)
	var inside atomic.Int64
	leave := make(chan *monitor.ConnLimiter, guests*visits)
	var leavers sync.WaitGroup
	for seed := range 2 {
		leavers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			for a := range leave {
				for range r.IntN(3) {
					runtime.Gosched()
				}
				inside.Add(-1)
				a.Release()
			}
		})
	}
	r := servertest.Start(t, act.Config{Schedulers: 2}, func(s *act.Scheduler) error {
		for range guests / 2 {
			s.Spawn(&guest{places: places, left: visits, leave: leave, inside: &inside})
		}
		return nil
	})
	require.NoError(t, r.End())
	close(leave)
	leavers.Wait()
	require.Zero(t, places.Open())
	require.Empty(t, r.Logs.FilterMessage("a task failed").All())
}
