package act_test

import (
	"math/rand"
	"strings"
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
		c.advance(when - c.Monotonic())
	}
	require.Equal(t, []time.Duration{10, 10, time.Second - 20}, sleeps)
	require.Equal(t, "ABCD", h.String())
	require.NoError(t, s.Close())
}

// The same program gives the same history, however it is cut into steps.
func TestStepsOfAnySizeGiveTheHistoryOfRun(t *testing.T) {
	program := func(seed int64, s *act.Scheduler, h *history) {
		rnd := rand.New(rand.NewSource(seed))
		m := attach(s)
		for i := range 10 {
			letter, turns := string(rune('A'+i)), 1+rnd.Intn(30)
			switch rnd.Intn(3) {
			case 0:
				s.Spawn(h.waiter(letter, turns, m))
			case 1:
				s.Spawn(h.script(letter, turns, act.Yield))
			default:
				s.Install(&demon{act: h.script(strings.ToLower(letter), turns, act.Yield)})
			}
		}
	}
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		cfg := act.Config{TurnsPerPass: 1 + rnd.Intn(10)}
		var whole, inSteps history
		s, _ := newScheduler(t, cfg)
		program(seed, s, &whole)
		require.NoError(t, s.Run())

		s, _ = newScheduler(t, cfg)
		program(seed, s, &inSteps)
		for taken := 1; taken > 0; {
			var err error
			n := 1 + rnd.Intn(7)
			taken, err = s.Step(n)
			require.NoError(t, err)
			require.LessOrEqual(t, taken, n)
		}
		require.Equal(t, whole.String(), inSteps.String(), "seed %d", seed)
	}
}
