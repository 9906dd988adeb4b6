package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// full returns a scheduler whose executor has no place left until release is closed.
func full(t *testing.T) (s *act.Scheduler, release chan struct{}) {
	s, _ = newScheduler(t, act.Config{Offloads: 2})
	release = make(chan struct{})
	for range 2 {
		s.Internals().Executor().Execute(func() { <-release })
	}
	return s, release
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

func TestWhatAnExecutorOfOnesOwnReserves(t *testing.T) {
	plain, own := &later{}, &reserver{}
	s, _ := newScheduler(t, act.Config{Executor: plain})
	require.Same(t, plain, s.Internals().Reserve(1), "stands in")
	s, _ = newScheduler(t, act.Config{Executor: own})
	require.Equal(t, inline{}, s.Internals().Reserve(3))
	require.Equal(t, []int{3}, own.reserved)
	require.PanicsWithValue(t, "act: Reserve of no goroutines", func() { s.Internals().Reserve(0) })
}

func TestACallIsMadeByTheExecutorItNames(t *testing.T) {
	s, release := full(t)
	on := s.Internals().Reserve(1)
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
	servertest.InTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, "BCA", h.String())
}

func TestAnExecutorMayRunEverythingAtOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Executor: inline{}})
	var h history
	s.Spawn(act.Seq(offloads(func() { h.WriteString("f") }), h.script("A", 1, act.Yield)))
	s.Spawn(h.script("B", 2, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "fBBA", h.String(), "the letter of its end is opened in the next pass")
}
