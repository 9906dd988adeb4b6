package pool_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Functions come at all times around the end of the 10 ms for which a goroutine waits, and each is called at once.
func TestNoFunctionIsMissed(t *testing.T) {
	var all sync.WaitGroup
	for i := range 100 {
		p := pool.New(1 + i%3)
		all.Go(func() {
			for k := range 20 {
				called := make(chan struct{})
				p.Execute(func() { close(called) })
				<-called
				time.Sleep(10*time.Millisecond + time.Duration(i%20-10+k)*20*time.Microsecond)
			}
		})
	}
	all.Wait()
}

func TestAGoexitOfTheOneThatWasWokenCostsNoPlace(t *testing.T) {
	p := pool.New(1)
	for range 20 {
		called := make(chan struct{})
		p.Execute(func() { close(called) })
		<-called
		time.Sleep(time.Millisecond)
		p.Execute(runtime.Goexit)
	}
}

// A function that waits for later ones does not keep them from being called, up to the limit.
func TestFunctionsThatWaitForEachOther(t *testing.T) {
	const n = 50
	p := pool.New(n)
	var met, all sync.WaitGroup
	met.Add(n)
	all.Add(n)
	for range n {
		p.Execute(func() {
			met.Done()
			met.Wait()
			all.Done()
		})
	}
	all.Wait()
}

func TestTheLimitHolds(t *testing.T) {
	p := pool.New(0)
	var running, most, called atomic.Int32
	for range 1000 {
		p.Execute(func() {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Microsecond)
			running.Add(-1)
			called.Add(1)
		})
	}
	require.Zero(t, called.Load())
	p.Widen(2)
	require.Eventually(t, func() bool { return called.Load() == 1000 }, 2*time.Minute, time.Millisecond)
	require.LessOrEqual(t, most.Load(), int32(2))
	require.Equal(t, 2, p.Limit())
}
