package merge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

func TestCutsOfSeveralSchedulersAreAddedUp(t *testing.T) {
	order := shutdown.Policy{Kind: shutdown.Halt}
	all := &shutdown.Cut{Tasks: 1, Demons: 2, Offloads: 3, Lingering: 4, Names: []shutdown.Count{{Name: "a", N: 1}, {Name: "both", N: 2}}}
	merge.Add(all, &shutdown.Cut{Tasks: 10, Demons: 20, Offloads: 30, Lingering: 40, Dropped: true, Order: order,
		Names: []shutdown.Count{{Name: "b", N: 10}, {Name: "both", N: 20}}})
	require.Equal(t, &shutdown.Cut{Tasks: 11, Demons: 22, Offloads: 33, Lingering: 44, Dropped: true, Order: order,
		Names: []shutdown.Count{{Name: "a", N: 1}, {Name: "both", N: 22}, {Name: "b", N: 10}}}, all)

	merge.Add(all, &shutdown.Cut{Order: shutdown.Policy{}})
	require.Equal(t, order, all.Order, "the first order that is known stays")
}

func TestACutNamesOnlySoMany(t *testing.T) {
	all := &shutdown.Cut{}
	for i := range 24 {
		merge.Add(all, &shutdown.Cut{Tasks: 1, Names: []shutdown.Count{{Name: fmt.Sprint(i), N: 1}}})
	}
	merge.Add(all, &shutdown.Cut{Tasks: 1, Names: []shutdown.Count{{Name: "0", N: 1}}})
	require.Len(t, all.Names, 8)
	require.Equal(t, shutdown.Count{Name: "0", N: 2}, all.Names[0], "one that has a place is counted on")
	require.Equal(t, 25, all.Tasks, "all are counted")
}
