package inspect

import (
	"math/bits"
	"time"
)

// histogram counts durations by powers of two. The first bucket holds durations below 1.024 µs. The bound of each
// further bucket is twice the bound of the one before. The last bucket has no bound, and holds durations from 8.8 s on.
type histogram struct {
	Buckets [buckets]uint64 `json:"buckets"`
	Sum     time.Duration   `json:"sum"`
	Max     time.Duration   `json:"max"`
}

const (
	buckets  = 25
	smallest = 10 // the first bucket holds what fits into so many bits
)

func (h *histogram) add(d time.Duration) {
	h.Buckets[min(max(bits.Len64(uint64(d))-smallest, 0), buckets-1)]++
	h.Sum += d
	h.Max = max(h.Max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.Buckets {
		h.Buckets[i] += n
	}
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// since returns the durations that have been added since h was o. The Max stays: which of the new ones was the longest
// is not known.
func (h *histogram) since(o *histogram) histogram {
	d := histogram{Sum: h.Sum - o.Sum, Max: h.Max}
	for i, n := range o.Buckets {
		d.Buckets[i] = h.Buckets[i] - n
	}
	return d
}

// bound returns the duration that all durations in bucket i are below; the last bucket has none, and bound returns 0.
func (h *histogram) bound(i int) time.Duration {
	if i == buckets-1 {
		return 0
	}
	return 1 << (smallest + i)
}

// count returns how many durations were added.
func (h *histogram) count() (n uint64) {
	for _, b := range h.Buckets {
		n += b
	}
	return n
}

// quantile returns a duration that the part q of all durations, from 0 to 1, do not exceed: the bound of a bucket, or Max.
// It is 0 if nothing was added.
func (h *histogram) quantile(q float64) time.Duration {
	left := q * float64(h.count())
	for i, n := range h.Buckets {
		if left -= float64(n); n > 0 && left <= 0 && i < buckets-1 {
			return min(h.bound(i), h.Max)
		}
	}
	return h.Max
}
