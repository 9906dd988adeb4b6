package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
)

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
