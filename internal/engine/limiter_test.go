package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestALimiterHasAsManyPlacesAsGiven(t *testing.T) {
	a := engine.NewLimiter(2)
	require.True(t, a.Acquire())
	require.True(t, a.Acquire())
	require.False(t, a.Acquire())
	require.Equal(t, 2, a.Conns())
	a.Release()
	require.True(t, a.Acquire())

	for _, unlimited := range []*engine.Limiter{nil, engine.NewLimiter(0), engine.NewLimiter(-1)} {
		for range 1000 {
			require.True(t, unlimited.Acquire())
		}
		unlimited.Release()
		unlimited.Await(&act.AtomicWaker{})
	}
	var none *engine.Limiter
	require.Zero(t, none.Conns(), "it counts nothing")
	require.Equal(t, 1000, func() int { a := engine.NewLimiter(0); enter(a, 1000); return a.Conns() }())
}

func enter(a *engine.Limiter, n int) {
	for range n {
		a.Acquire()
	}
}

// What was broken: a caller that waited again before a place was free was noted again.
func TestAWaiterForAPlaceIsNotedOnce(t *testing.T) {
	a := engine.NewLimiter(1)
	require.True(t, a.Acquire())
	var bell act.AtomicWaker
	for range 100 {
		a.Await(&bell)
	}
	require.Equal(t, 1, engine.Waiting(a))
	a.Release()
	require.Zero(t, engine.Waiting(a))
}

// Between "there is no place" and "wake me when there is" the place may have become free.
func TestAPlaceReleasedBeforeTheWaitIsNotMissed(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := engine.NewLimiter(1)
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
	a := engine.NewLimiter(1)
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
	l.Until("all wait", func() bool { return engine.Waiting(a) == waiters })
	require.Zero(t, woken)
	a.Release()
	l.Until("all are woken", func() bool { return woken == waiters })
}
