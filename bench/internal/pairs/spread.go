package pairs

import "slices"

// Spread summarizes a column of figures.
type Spread struct{ Median, Min, Max float64 }

// Of returns the summary of v, which must not be empty. It has the median and not the mean, so that one disturbed run
// counts as one run.
func Of(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	low, high := v[(len(v)-1)/2], v[len(v)/2]
	return Spread{Median: (low + high) / 2, Min: v[0], Max: v[len(v)-1]}
}
