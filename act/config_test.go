package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

func TestAConfigThatIsWrongPanics(t *testing.T) {
	past := &clock{}
	past.Pass(-time.Second)
	bounds := "act: a Config with a negative bound: "
	for says, cfg := range map[string]act.Config{
		bounds + "-1 Schedulers, 0 TurnsPerPass, 0 Inbox, 0 Offloads": {Schedulers: -1},
		bounds + "0 Schedulers, -1 TurnsPerPass, 0 Inbox, 0 Offloads": {TurnsPerPass: -1},
		bounds + "0 Schedulers, 0 TurnsPerPass, -1 Inbox, 0 Offloads": {Inbox: -1},
		bounds + "0 Schedulers, 0 TurnsPerPass, 0 Inbox, -1 Offloads": {Offloads: -1},
		"act: Config.Threads is unknown: 3":                           {Threads: act.Stepped + 1},
		"act: Config.CPUs is for Bound threads only":                  {Threads: act.Locked, CPUs: []int{0}},
		"act: Config.Clock reads a negative time: -1s":                {Clock: past},
	} {
		require.PanicsWithValue(t, says, func() { act.NewGroup(cfg) })
	}
	require.Panics(t, func() { act.NewGroup(act.Config{Shutdown: shutdown.Policy{Turns: -1}}) })
}

func TestAHoldTakenBackTooOftenChangesNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Internals().KeepRunning(1)
	require.Panics(t, func() { s.Internals().KeepRunning(-5) })
	s.Internals().KeepRunning(-1)
	require.NoError(t, s.Run())
}
