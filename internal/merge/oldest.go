package merge

import (
	"cmp"
	"slices"
	"time"
)

// Most is how many waiting tasks are in a Cut.
const Most = 16

// Oldest adds x to earlier choices, and returns at most Most of them. It takes one of each kind, then a second one of each, and
// so on, and of a kind first the ones that have been still for longest: a crowd of one kind hides no other. What is chosen of
// several lists is what would be chosen of one.
func Oldest[T any](all []T, x T, key func(*T) (kind string, still time.Duration)) []T {
	if len(all) == Most && !precedesLast(all, &x, key) {
		return all
	}
	all = append(all, x)
	slices.SortStableFunc(all, func(a, b T) int {
		aKind, aStill := key(&a)
		bKind, bStill := key(&b)
		return cmp.Or(cmp.Compare(bStill, aStill), cmp.Compare(aKind, bKind))
	})
	chosen := make([]T, 0, Most+1)
	for rank := 0; len(chosen) < len(all); rank++ {
		for i := range all {
			if rankOf(all, i, key) == rank {
				chosen = append(chosen, all[i])
			}
		}
	}
	return chosen[:min(len(chosen), Most)]
}

// rankOf returns how many of the kind of all[i] are before it.
func rankOf[T any](all []T, i int, key func(*T) (string, time.Duration)) (rank int) {
	kind, _ := key(&all[i])
	for j := range all[:i] {
		if other, _ := key(&all[j]); other == kind {
			rank++
		}
	}
	return rank
}

// precedesLast reports whether x has a place before the last of all. Mostly it has not, and then this is all that it costs.
func precedesLast[T any](all []T, x *T, key func(*T) (string, time.Duration)) bool {
	kind, still := key(x)
	rank := 0
	for i := range all {
		if other, s := key(&all[i]); other == kind && s >= still {
			rank++
		}
	}
	last := len(all) - 1
	r := rankOf(all, last, key)
	lastKind, least := key(&all[last])
	return cmp.Or(rank-r, cmp.Compare(least, still), cmp.Compare(kind, lastKind)) < 0
}
