package pairs

import "slices"

// Spread is what is said of a column of figures.
type Spread struct{ Median, Min, Max float64 }

// spread sorts a copy of v, which is not empty. The median, not the mean: one run that a neighbour
// disturbed is to count as one run.
func spread(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	low, high := v[(len(v)-1)/2], v[len(v)/2]
	return Spread{Median: (low + high) / 2, Min: v[0], Max: v[len(v)-1]}
}
