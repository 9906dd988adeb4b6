package act_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

func TestTheZeroAtomicWakerWakesNothing(t *testing.T) {
	var b act.AtomicWaker
	b.Wake()
	b.Set(act.Waker{})
	b.Wake()
}

func TestAWakeIsNeverLostBetweenTheLookAndTheWait(t *testing.T) {
	const wakers, each = 4, 5000
	s, _ := newScheduler(t, act.Config{})
	var b act.AtomicWaker
	var events atomic.Int64
	taken := int64(0)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		b.Set(t.Waker())
		if taken += events.Swap(0); taken == wakers*each {
			return act.Done
		}
		return act.Wait
	}))
	for range wakers {
		go func() {
			for i := range each {
				events.Add(1)
				b.Wake()
				if i%8 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.EqualValues(t, wakers*each, taken)
}

func TestAnAtomicWakerWakesOnlyTheLatestTask(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var b act.AtomicWaker
	var h history
	waits := func(letter string) act.Func {
		return func(t *act.Task) act.Directive {
			b.Set(t.Waker())
			return h.note(letter, act.Wait)
		}
	}
	s.Spawn(waits("A"))
	s.Spawn(waits("B"))
	for range 3 {
		_, err := s.Step(10)
		require.NoError(t, err)
		b.Wake()
		b.Wake()
	}
	require.Equal(t, "ABBB", h.String()[:4])
	require.NotContains(t, h.String()[1:], "A")
	s.Shutdown(plain(haltAndDrop))
	requireCut(t, s.Run())
}
