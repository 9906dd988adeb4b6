package chain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Random operations, compared with a slice.
func TestAListAgainstASlice(t *testing.T) {
	var l List[int]
	var want []int
	nodes := make([]Node[int], 10)
	draw := rand.New(rand.NewPCG(1, 1))
	for i := range 10_000 {
		n := draw.IntN(len(nodes))
		nodes[n].Of = n
		at := slices.Index(want, n)
		switch draw.IntN(20) {
		case 0:
			var all []int
			for n := l.TakeAll(); n != nil; n = n.Next {
				all = append(all, n.Of)
			}
			require.Equal(t, want, all)
			want = nil
		case 1, 2, 3, 4, 5, 6:
			require.Equal(t, at >= 0, nodes[n].Remove())
			if at >= 0 {
				want = slices.Delete(want, at, at+1)
			}
		default:
			if l.Append(&nodes[n]); at < 0 {
				want = append(want, n)
			}
		}
		var got []int
		for n := l.First; n != nil; n = n.Next {
			got = append(got, n.Of)
		}
		require.Equal(t, len(want), len(got), i)
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		if len(want) > 0 {
			require.Equal(t, want[len(want)-1], l.Last.Of)
		} else {
			require.Nil(t, l.Last)
		}
	}
}
