package inspect

import (
	runtimemetrics "runtime/metrics"
	"time"
)

// pauses knows for how long the Go runtime has stopped all goroutines since the question before. The zero value is ready for use.
type pauses struct {
	samples []runtimemetrics.Sample
	before  [][]uint64
}

// why says for what the world is stopped, in the order of pauses.samples.
var why = []string{"the collector", "the Go runtime"}

// longest returns a lower bound of the longest pause since the call before, and what it was for.
func (p *pauses) longest() (longest time.Duration, by string) {
	if p.samples == nil {
		p.samples = []runtimemetrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/pauses/total/other:seconds"}}
		p.before = make([][]uint64, len(p.samples))
	}
	runtimemetrics.Read(p.samples)
	for i, s := range p.samples {
		if s.Value.Kind() != runtimemetrics.KindFloat64Histogram {
			continue // the runtime has it no more
		}
		h := s.Value.Float64Histogram()
		for b, n := range h.Counts {
			if p.before[i] == nil || n == p.before[i][b] {
				continue
			}
			if d := time.Duration(max(h.Buckets[b], 0) * float64(time.Second)); d > longest {
				longest, by = d, why[i]
			}
		}
		p.before[i] = append(p.before[i][:0], h.Counts...)
	}
	return longest, by
}
