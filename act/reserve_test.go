package act_test

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

// full returns a scheduler whose executor has no place left until release is closed.
func full(t *testing.T) (s *act.Scheduler, release chan struct{}) {
	s, _ = newScheduler(t, act.Config{Offloads: 2})
	release = make(chan struct{})
	for range 2 {
		s.Execute(func() { <-release })
	}
	return s, release
}

func TestReservedPlacesAreThereThoughTheExecutorIsFull(t *testing.T) {
	s, release := full(t)
	defer close(release)
	var queued atomic.Bool
	s.Execute(func() { queued.Store(true) })
	run := make(chan struct{})
	s.Reserve(1).Execute(func() { close(run) })
	inTime(t, func() { <-run })
	require.False(t, queued.Load())
}

func TestTheExecutorHasItsPlacesThoughThoseReservedAreFull(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Offloads: 1})
	release := make(chan struct{})
	defer close(release)
	reserved := s.Reserve(1)
	reserved.Execute(func() { <-release })
	run := make(chan struct{}, 2)
	s.Execute(func() { run <- struct{}{} })
	s.Reserve(1).Execute(func() { run <- struct{}{} }) // each Reserve has its own
	inTime(t, func() { <-run; <-run })
}

func TestNoMoreRunAtOnceThanAreReservedAndInOrder(t *testing.T) {
	for _, n := range []int{1, 3} {
		s, _ := newScheduler(t, act.Config{Offloads: 20})
		x := s.Reserve(n)
		var now, most atomic.Int32
		var mu sync.Mutex
		var order []int
		var first, all sync.WaitGroup
		first.Add(n)
		all.Add(100)
		for i := range 100 {
			x.Execute(func() {
				defer all.Done()
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				for m := now.Add(1); ; {
					if seen := most.Load(); m <= seen || most.CompareAndSwap(seen, m) {
						break
					}
				}
				if i < n { // the first n run at once
					first.Done()
					first.Wait()
				}
				now.Add(-1)
			})
		}
		inTime(t, all.Wait)
		require.EqualValues(t, n, most.Load())
		if n == 1 {
			require.IsIncreasing(t, order)
		}
	}
}

func TestAnExecutorThatCannotReserveStandsIn(t *testing.T) {
	exec := &later{}
	s, _ := newScheduler(t, act.Config{Executor: exec})
	require.Same(t, exec, s.Reserve(1))
	require.Same(t, exec, s.Reserve(7))
}

// reserver is an Executor of an application's own that sets goroutines aside.
type reserver struct {
	later
	reserved []int
}

func (r *reserver) Reserve(n int) act.Executor {
	r.reserved = append(r.reserved, n)
	return inline{}
}

func TestAnExecutorOfOnesOwnMayReserve(t *testing.T) {
	exec := &reserver{}
	s, _ := newScheduler(t, act.Config{Executor: exec})
	require.Equal(t, inline{}, s.Reserve(3))
	require.Equal(t, inline{}, s.Reserve(1))
	require.Equal(t, []int{3, 1}, exec.reserved)
}

func TestReserveOfNothingPanics(t *testing.T) {
	for _, exec := range []act.Executor{nil, &later{}, &reserver{}} {
		s, _ := newScheduler(t, act.Config{Executor: exec})
		for _, n := range []int{0, -1} {
			require.PanicsWithValue(t, "act: Reserve of no goroutines", func() { s.Reserve(n) })
		}
	}
}

func TestACallIsMadeByTheExecutorItNames(t *testing.T) {
	s, release := full(t)
	on := s.Reserve(1)
	var h history
	call := func(letter string, on act.Executor) act.Func {
		c := &act.Call[string]{F: func() (string, error) { return letter, nil }, On: on}
		return func(t *act.Task) act.Directive {
			d := c.Act(t)
			if d == act.Done {
				h.WriteString(c.Value)
			}
			return d
		}
	}
	s.Spawn(call("A", nil)) // waits for a place
	s.Spawn(call("B", on))
	s.Spawn(call("C", on))
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if len(h.String()) < 2 {
			return act.Yield
		}
		close(release)
		return act.Done
	}))
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, "BCA", h.String())
}

func TestACallOnAnExecutorThatRunsEverythingAtOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Executor: &later{}})
	c := &act.Call[int]{F: func() (int, error) { return 42, nil }, On: inline{}}
	s.Spawn(act.Func(c.Act))
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, 42, c.Value)
}

func TestTheDefaultLoggerWritesWarningsToStandardError(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	log := hook.DefaultLogger()
	os.Stderr = stderr
	log.Info("not written")
	log.Warn("a leak", zap.String("where", "in the roof"))
	require.NoError(t, w.Close())
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Regexp(t, `^\S+\twarn\ta leak\t\{"where": "in the roof"\}\n$`, out.String())
}
