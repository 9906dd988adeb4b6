package pace_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/pace/pace"
	"github.com/daimon-go/daimon/listener"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a Clock that a test sets.
type clock struct{ now time.Duration }

func (c *clock) Monotonic() time.Duration { return c.now }
func (c *clock) Wall() time.Time          { return time.Unix(0, 0).Add(c.now) }

// play steps s until its clock shows end. When nothing is ready the clock jumps to the next event, so an hour takes no real
// time and every run is the same.
func (c *clock) play(t *testing.T, s *act.Scheduler, end time.Duration) {
	t.Helper()
	for {
		n, err := s.Step(1)
		require.NoError(t, err)
		if n > 0 {
			continue
		}
		at, ok := s.NextDeadline()
		if !ok || at > end {
			c.now = end
			return
		}
		c.now = max(c.now, at)
	}
}

// four returns a scheduler whose tasks may go on four times an hour.
func four(t *testing.T) (*act.Scheduler, *clock) {
	c := &clock{}
	s := act.New(act.Config{Clock: c})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, pace.Setup(4.0/3600)(s))
	return s, c
}

// visit is a task that waits for a number of slots, one after the other, and records when it got them.
func visit(history *strings.Builder, name string, times int) act.Action {
	var steps []act.Action
	for range times {
		steps = append(steps, &pace.Slot{}, act.Func(func(t *act.Task) act.Directive {
			fmt.Fprintf(history, "%s%d ", name, t.Scheduler().Now().Round(time.Second)/time.Minute)
			return act.Done
		}))
	}
	return act.Seq(steps...)
}

func TestInTheOrderOfArrival(t *testing.T) {
	s, c := four(t)
	var h strings.Builder
	for i, name := range []string{"A", "B", "C"} {
		s.Spawn(visit(&h, name, i+1))
	}
	c.play(t, s, 10*time.Hour)
	require.Equal(t, "A0 B15 C30 B45 C60 C75 ", h.String())
	require.NoError(t, s.Run(), "nothing is left")
}

// Unused time is not saved up.
func TestAfterAPauseEachGoesOnce(t *testing.T) {
	s, c := four(t)
	var h strings.Builder
	s.Spawn(visit(&h, "A", 1))
	c.play(t, s, 100*time.Minute)
	s.Spawn(visit(&h, "B", 2))
	c.play(t, s, 200*time.Minute)
	require.Equal(t, "A0 B100 B115 ", h.String())
}

// A patience of 20 minutes has passed at the second slot; the tasks after it move up.
func TestATaskThatGivesUpLeavesTheQueue(t *testing.T) {
	s, c := four(t)
	var h strings.Builder
	s.Spawn(visit(&h, "A", 1))
	s.Spawn(visit(&h, "B", 1))
	s.Spawn(act.Func(func() func(t *act.Task) act.Directive {
		impatient := listener.Within(20*time.Minute, &pace.Slot{})
		return func(t *act.Task) act.Directive {
			d := impatient.Act(t)
			if d == act.Failed && errors.Is(t.Err(), os.ErrDeadlineExceeded) {
				h.WriteString("gone ")
				return act.Done
			}
			return d
		}
	}()))
	s.Spawn(visit(&h, "D", 1))
	c.play(t, s, 10*time.Hour)
	require.Equal(t, "A0 B15 gone D30 ", h.String())
}
