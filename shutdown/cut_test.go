package shutdown_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
)

// upgrade is an application's own order.
type upgrade struct{ Successor string }

func (upgrade) Policy() shutdown.Policy {
	return shutdown.Policy{Turns: 3, Time: time.Second, Drop: true}
}

func TestACutIsOneSentenceThatExplainsItself(t *testing.T) {
	for says, cut := range map[string]shutdown.Cut{
		"shutdown: left 1 task": {Tasks: 1},
		"shutdown: dropped 2 tasks, 1 demon (main.gateway, main.tick) under shutdown.Now: drain, 30s, then drop": {
			Tasks: 2, Demons: 1, Dropped: true, Names: []string{"main.gateway", "main.tick"}, Order: shutdown.Now{}},
		"shutdown: dropped 1200 tasks, 3 running offloads, 17 lingering closes (1200 × main.chat)" +
			" under shutdown_test.upgrade: drain, 3 turns a task, 1s, then drop": {
			Tasks: 1200, Offloads: 3, Lingering: 17, Dropped: true, Names: []string{"1200 × main.chat"}, Order: upgrade{"b"}},
		"shutdown: left 0 tasks, 1 lingering close under shutdown.Now: suspend": {
			Lingering: 1, Order: shutdown.Now{Terms: shutdown.Suspend}},
	} {
		require.EqualError(t, &cut, says)
	}
}

func TestACutIsFoundInAWrappedError(t *testing.T) {
	err := fmt.Errorf("server: %w", &shutdown.Cut{Tasks: 3})
	var cut *shutdown.Cut
	require.True(t, errors.As(err, &cut))
	require.Equal(t, 3, cut.Tasks)
}

func TestCutsOfSeveralSchedulersAreAddedUp(t *testing.T) {
	all := &shutdown.Cut{Tasks: 1, Demons: 2, Offloads: 3, Lingering: 4, Names: []string{"a"}}
	all.Add(&shutdown.Cut{Tasks: 10, Demons: 20, Offloads: 30, Lingering: 40, Names: []string{"b"}, Dropped: true, Order: upgrade{"b"}})
	require.Equal(t, &shutdown.Cut{Tasks: 11, Demons: 22, Offloads: 33, Lingering: 44, Names: []string{"a", "b"},
		Dropped: true, Order: upgrade{"b"}}, all)

	all.Add(&shutdown.Cut{Order: shutdown.Now{}})
	require.Equal(t, upgrade{"b"}, all.Order, "the first order that is known stays")
}

func TestACutNamesOnlySoMany(t *testing.T) {
	all := &shutdown.Cut{}
	for i := range 3 * shutdown.Named {
		all.Add(&shutdown.Cut{Tasks: 1, Names: []string{fmt.Sprint(i)}})
	}
	require.Len(t, all.Names, shutdown.Named)
	require.Equal(t, "0", all.Names[0])
	require.Equal(t, 3*shutdown.Named, all.Tasks, "all are counted")
}
