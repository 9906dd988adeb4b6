package shutdown_test

import (
	"fmt"
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
		"shutdown: dropped 2 tasks, 1 demon (2 × main.gateway, main.tick); order: shutdown.Now; terms: drain, 30s, then drop": {
			Tasks: 2, Demons: 1, Dropped: true, Names: []shutdown.Count{{"main.gateway", 2}, {"main.tick", 1}}, Order: shutdown.Now{}},
		"shutdown: dropped 1200 tasks, 3 running offloads, 17 lingering closes (1200 × main.chat)" +
			"; order: shutdown_test.upgrade; terms: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1200, Offloads: 3, Lingering: 17, Dropped: true, Names: []shutdown.Count{{"main.chat", 1200}}, Order: upgrade{"b"}},
		"shutdown: left 1 task; order: hand over to b; terms: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1, Order: handover{upgrade{"b"}}},
		"shutdown: left 1 task; order: the night is over; terms: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1, Order: deadline{}},
	} {
		require.EqualError(t, &cut, says)
	}
}

func TestCutsOfSeveralSchedulersAreAddedUp(t *testing.T) {
	all := &shutdown.Cut{Tasks: 1, Demons: 2, Offloads: 3, Lingering: 4, Names: []shutdown.Count{{"a", 1}, {"both", 2}}}
	all.Add(&shutdown.Cut{Tasks: 10, Demons: 20, Offloads: 30, Lingering: 40, Dropped: true, Order: upgrade{"b"},
		Names: []shutdown.Count{{"b", 10}, {"both", 20}}})
	require.Equal(t, &shutdown.Cut{Tasks: 11, Demons: 22, Offloads: 33, Lingering: 44, Dropped: true, Order: upgrade{"b"},
		Names: []shutdown.Count{{"a", 1}, {"both", 22}, {"b", 10}}}, all)

	all.Add(&shutdown.Cut{Order: shutdown.Now{}})
	require.Equal(t, upgrade{"b"}, all.Order, "the first order that is known stays")
}

func TestACutNamesOnlySoMany(t *testing.T) {
	all := &shutdown.Cut{}
	for i := range 24 {
		all.Add(&shutdown.Cut{Tasks: 1, Names: []shutdown.Count{{fmt.Sprint(i), 1}}})
	}
	all.Add(&shutdown.Cut{Tasks: 1, Names: []shutdown.Count{{"0", 1}}})
	require.Len(t, all.Names, 8)
	require.Equal(t, shutdown.Count{Name: "0", N: 2}, all.Names[0], "one that has a place is counted on")
	require.Equal(t, 25, all.Tasks, "all are counted")
}
