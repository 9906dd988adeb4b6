package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

func TestStepNeverBlocks(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	i := &dreamer{clock: c, insomniac: true}
	s.Internals().SetIdler(i)
	s.Spawn(act.Func(idle))
	var h history
	s.Spawn(h.sleeper("A", 100))
	for _, want := range []int{2, 0, 0} {
		taken, err := s.Step(10)
		require.NoError(t, err)
		require.Equal(t, want, taken)
	}
	require.Positive(t, i.looks)
	require.ErrorContains(t, s.Close(), "dropped 2 tasks")
}

// A loop that embeds a scheduler needs no more than this.
func TestNextDeadlineSaysUntilWhenNothingIsReady(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var h history
	for i, at := range []time.Duration{10, 20, 20, time.Second} {
		s.Spawn(h.sleeper(string(rune('A'+i)), at))
	}
	var clock act.Timer // of a monitor: it does not keep Run from returning, nor this loop going
	s.CallAt(&clock, time.Minute, expiry(func() {}))
	var sleeps []time.Duration
	for {
		taken, err := s.Step(100)
		require.NoError(t, err)
		if taken > 0 {
			continue
		}
		when, more := s.NextDeadline()
		if !more {
			break
		}
		sleeps = append(sleeps, when-c.Monotonic())
		c.Pass(when - c.Monotonic())
	}
	require.Equal(t, []time.Duration{10, 10, time.Second - 20}, sleeps)
	require.Equal(t, "ABCD", h.String())
	require.NoError(t, s.Close())
}
