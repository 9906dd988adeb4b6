package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

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

func TestThreadsThatThereAreNotPanic(t *testing.T) {
	for says, cfg := range map[string]act.Config{
		"act: Config.Threads is unknown: 3":          {Threads: act.Stepped + 1},
		"act: Config.CPUs is for Bound threads only": {Threads: act.Locked, CPUs: []int{0}},
	} {
		require.PanicsWithValue(t, says, func() { act.NewGroup(cfg) })
	}
}

func TestAHoldTakenBackTooOftenChangesNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Internals().KeepRunning(1)
	require.Panics(t, func() { s.Internals().KeepRunning(-5) })
	s.Internals().KeepRunning(-1)
	require.NoError(t, s.Run())
}

func TestAClockOfNegativeTimePanics(t *testing.T) {
	c := &clock{}
	c.advance(-time.Second)
	require.PanicsWithValue(t, "act: Config.Clock reads a negative time: -1s", func() { act.New(act.Config{Clock: c}) })
}
