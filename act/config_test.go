package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

func TestTheZeroConfigIsAWorkingScheduler(t *testing.T) {
	s := act.New(act.Config{})
	require.NotNil(t, s.Logger())
	require.NotNil(t, s.Clock())
	require.Len(t, s.Group().Schedulers(), 1)
	require.Zero(t, s.Index())

	before := s.Clock().Monotonic()
	time.Sleep(time.Millisecond)
	require.GreaterOrEqual(t, s.Clock().Monotonic()-before, time.Millisecond)
	require.False(t, s.Clock().Wall().IsZero())
	require.NoError(t, s.Close())
}

func TestANegativeBoundPanics(t *testing.T) {
	for name, cfg := range map[string]act.Config{
		"Schedulers":   {Schedulers: -1},
		"TurnsPerPass": {TurnsPerPass: -1},
		"Inbox":        {Inbox: -1},
		"Offloads":     {Offloads: -1},
	} {
		require.PanicsWithValue(t, "act: Config."+name+" is negative: -1", func() { act.NewGroup(cfg) })
	}
	require.Panics(t, func() { act.NewGroup(act.Config{Shutdown: shutdown.Policy{Turns: -1}}) })
}

func TestTheInboxIsRoundedUp(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Inbox: 5})
	room := 0
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		for s.Post(func(*act.Scheduler) {}) == nil {
			room++
		}
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 8, room)
}

func TestAHoldTakenBackTooOftenChangesNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Hold(1)
	require.Panics(t, func() { s.Hold(-5) })
	s.Hold(-1)
	require.NoError(t, s.Run())
}

func TestAClockOfNegativeTimePanics(t *testing.T) {
	c := &clock{}
	c.advance(-time.Second)
	require.PanicsWithValue(t, "act: Config.Clock reads a negative time: -1s", func() { act.New(act.Config{Clock: c}) })
}
