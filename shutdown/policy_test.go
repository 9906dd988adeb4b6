package shutdown_test

import (
	"testing"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

func TestTheZeroPolicyDrainsForThirtySecondsThenDrops(t *testing.T) {
	require.Equal(t, shutdown.Policy{Time: 30 * time.Second, Drop: true}, shutdown.Policy{}.Resolved())
	require.Equal(t, shutdown.Policy{}, shutdown.Policy{}.Policy())
}

func TestAnySetFieldReplacesTheZeroPolicyWhole(t *testing.T) {
	for name, c := range map[string]struct{ given, resolved shutdown.Policy }{
		"turns have no bound in time and drop nothing": {
			shutdown.Policy{Turns: 5}, shutdown.Policy{Turns: 5}},
		"time drops nothing": {
			shutdown.Policy{Time: time.Second}, shutdown.Policy{Time: time.Second}},
		"both stay both": {
			shutdown.Policy{Turns: 5, Time: time.Second}, shutdown.Policy{Turns: 5, Time: time.Second}},
		"only Drop has no bound": {
			shutdown.Policy{Drop: true}, shutdown.Policy{Kind: shutdown.Unbounded, Drop: true}},
		"Unbounded": {shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{Kind: shutdown.Unbounded}},
		"inactivity is a bound": {
			shutdown.Policy{Inactivity: time.Second}, shutdown.Policy{Inactivity: time.Second}},
		"phases have no bound": {
			shutdown.Policy{Announce: 1, Spread: 2}, shutdown.Policy{Kind: shutdown.Unbounded, Announce: 1, Spread: 2}},
		"phases fit into the time": {
			shutdown.Policy{Time: time.Minute, Announce: 20 * time.Second, Spread: 20 * time.Second, Inactivity: time.Hour},
			shutdown.Policy{Time: time.Minute, Announce: 20 * time.Second, Spread: 20 * time.Second, Inactivity: time.Hour}},
		"announcing takes at most half of it, spreading half of the rest": {
			shutdown.Policy{Time: time.Minute, Announce: time.Hour, Spread: time.Hour},
			shutdown.Policy{Time: time.Minute, Announce: 30 * time.Second, Spread: 15 * time.Second}},
		"each phase has its own bound": {
			shutdown.Policy{Turns: 5, Spread: time.Second}, shutdown.Policy{Turns: 5, Spread: time.Second}},
		"Halt":    {shutdown.Policy{Kind: shutdown.Halt}, shutdown.Policy{Kind: shutdown.Halt}},
		"Suspend": {shutdown.Policy{Kind: shutdown.Suspend}, shutdown.Policy{Kind: shutdown.Suspend}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.resolved, c.given.Resolved())
			require.Equal(t, c.resolved, c.resolved.Resolved(), "resolving again changes nothing")
		})
	}
}

func TestAPolicyThatMeansNothingPanicsWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		policy shutdown.Policy
		says   string
	}{
		"negative turns":  {shutdown.Policy{Turns: -1}, "negative bound"},
		"negative time":   {shutdown.Policy{Time: -time.Second}, "negative bound"},
		"to announce":     {shutdown.Policy{Announce: -1}, "negative bound"},
		"to spread":       {shutdown.Policy{Spread: -1}, "negative bound"},
		"inactivity":      {shutdown.Policy{Inactivity: -1}, "negative bound"},
		"an unknown kind": {shutdown.Policy{Kind: shutdown.Suspend + 1}, "no such Kind"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { require.Contains(t, recover(), c.says) }()
			c.policy.Resolved()
		})
	}
}

// upgrade is an application's own order. It says nothing of itself.
type upgrade struct{ Successor string }

func (upgrade) Policy() shutdown.Policy {
	return shutdown.Policy{Turns: 3, Time: time.Second, Drop: true}
}

// handover is one that does, deadline one that is an error.
type (
	handover struct{ upgrade }
	deadline struct{ upgrade }
)

func (h handover) String() string { return "hand over to " + h.Successor }
func (deadline) Error() string    { return "the night is over" }

func TestACutIsOneSentenceThatExplainsItself(t *testing.T) {
	for says, cut := range map[string]shutdown.Cut{
		"shutdown: left 1 task": {Tasks: 1},
		"shutdown: dropped 2 tasks, 1 demon (2 × main.gateway, main.tick); policy: drain, 30s, then drop": {
			Tasks: 2, Demons: 1, Dropped: true, Names: []shutdown.Count{{"main.gateway", 2}, {"main.tick", 1}}, Order: shutdown.Policy{}},
		"shutdown: dropped 1200 tasks, 3 running offloads, 17 lingering closes (1200 × main.chat)" +
			"; order: shutdown_test.upgrade; policy: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1200, Offloads: 3, Lingering: 17, Dropped: true, Names: []shutdown.Count{{"main.chat", 1200}}, Order: upgrade{"b"}},
		"shutdown: left 1 task; order: hand over to b; policy: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1, Order: handover{upgrade{"b"}}},
		"shutdown: left 1 task; order: the night is over; policy: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1, Order: deadline{}},
	} {
		require.EqualError(t, &cut, says)
	}
}
