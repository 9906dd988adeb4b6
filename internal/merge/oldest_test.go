package merge_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/merge"
)

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
