package merge_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
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

type row struct {
	kind  string
	still time.Duration
	n     int
}

func key(r *row) (string, time.Duration) { return r.kind, r.still }

func keep(rows []row) (all []row) {
	for _, r := range rows {
		all = merge.Oldest(all, r, key)
	}
	return all
}

// The rows of several schedulers are merged from what each has chosen. The model sorts all of them.
func TestWhatIsChosenOfListsIsWhatIsChosenOfAll(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var rows, merged []row
		for n := range r.IntN(100) {
			rows = append(rows, row{string(rune('a' + r.IntN(1+r.IntN(20)))), time.Duration(r.IntN(1 + r.IntN(50))), n})
		}
		all := slices.Clone(rows)
		slices.SortStableFunc(all, func(a, b row) int {
			return cmp.Or(cmp.Compare(b.still, a.still), cmp.Compare(a.kind, b.kind))
		})
		ranks, seen := map[int]int{}, map[string]int{}
		for _, x := range all {
			ranks[x.n] = seen[x.kind]
			seen[x.kind]++
		}
		slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(ranks[a.n], ranks[b.n]) })
		all = append([]row{}, all[:min(len(all), merge.Most)]...)
		require.Equal(t, all, append([]row{}, keep(rows)...), "seed %d", seed)

		for len(rows) > 0 {
			n := 1 + r.IntN(len(rows))
			for _, x := range keep(rows[:n]) {
				merged = merge.Oldest(merged, x, key)
			}
			rows = rows[n:]
		}
		require.Equal(t, all, append([]row{}, merged...), "seed %d, in parts", seed)
	}
}
