package act_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

func TestTheExecutorNeverBlocksTheThreadThatGivesToIt(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Offloads: 1})
	release := make(chan struct{})
	s.Execute(func() { <-release })
	var run atomic.Int32
	inTime(t, func() {
		for range 10_000 {
			s.Execute(func() { run.Add(1) })
		}
	})
	require.Zero(t, run.Load())
	close(release)
	require.Eventually(t, func() bool { return run.Load() == 10_000 }, time.Minute, time.Millisecond)
}

func TestTheExecutorsGoroutinesAreGoneWhenItIsIdle(t *testing.T) {
	before := runtime.NumGoroutine()
	s, _ := newScheduler(t, act.Config{Offloads: 20})
	for range 500 {
		s.Spawn(offloads(func() { time.Sleep(10 * time.Microsecond) }))
	}
	require.NoError(t, s.Run())
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, time.Millisecond)
}

func TestAGoexitInTheExecutorCostsItNoPlace(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Offloads: 1})
	var run atomic.Int32
	for range 50 {
		s.Execute(runtime.Goexit)
		s.Execute(func() { run.Add(1) })
	}
	require.Eventually(t, func() bool { return run.Load() == 50 }, time.Minute, time.Millisecond)
}

func TestTheExecutorTakesFromManyGoroutinesAndLosesNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Offloads: 2})
	const givers, each = 8, 5000
	var run atomic.Int32
	var wg sync.WaitGroup
	for range givers {
		wg.Go(func() {
			for i := range each {
				s.Execute(func() { run.Add(1) })
				if i%50 == 0 {
					runtime.Gosched() // let it run dry now and then
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return run.Load() == givers*each }, time.Minute, time.Millisecond)
}

func TestTheExecutorIsThatOfTheWholeGroupAndReplaceable(t *testing.T) {
	exec := &later{}
	g := act.NewGroup(act.Config{Schedulers: 2, Executor: exec})
	for _, s := range g.Schedulers() {
		s.Spawn(offloads(func() {}))
		_, err := s.Step(1)
		require.NoError(t, err)
	}
	require.Len(t, exec.given, 2)
	exec.run()
	exec.run()
	for _, s := range g.Schedulers() {
		require.NoError(t, s.Run())
	}
	require.NoError(t, g.Close())
}

func TestAnExecutorMayRunEverythingAtOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Executor: inline{}})
	var h history
	s.Spawn(act.Seq(offloads(func() { h.WriteString("f") }), h.script("A", 1, act.Yield)))
	s.Spawn(h.script("B", 2, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "fBBA", h.String(), "the letter of its end is opened in the next pass")
}
