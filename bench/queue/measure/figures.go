// Package measure has the figures of a run, and the clocks that they are read from.
package measure

import (
	"slices"
	"time"
)

// Figures are the results of one run of a queue. A row fills in the figures that it measures.
type Figures struct {
	Wall     float64 // ns for a task, or for a call
	Own      float64 // ns of CPU time for it: the process that works
	Database float64 // ns of CPU time for it: all processes of PostgreSQL

	Median, P99 float64 // ns from a call that enqueues to the task's begin

	Samples []Sample
}

// CPU is the CPU time of the workers and of PostgreSQL together, ns for a task.
func (f Figures) CPU() float64 { return f.Own + f.Database }

// Sample is what a long row says again and again, about the time since the last one.
type Sample struct {
	After time.Duration // since the begin

	Tasks float64 // finished, a second
	CPU   float64 // ns for a task, of the workers and PostgreSQL together; 0 if none has finished
	Busy  float64 // of one CPU, the same

	Claims           int     // that found tasks
	Claim, SlowClaim float64 // ns: median and 99 %

	Updates, HotUpdates float64 // rows a second
	WAL                 float64 // bytes a second
	Dead                int64   // rows, as the statistics have it
	Table, Indexes      int64   // bytes
}

// Percentile returns the value below which p of 100 lie. v must not be empty; it is sorted.
func Percentile(v []time.Duration, p int) float64 {
	slices.Sort(v)
	return float64(v[(len(v)-1)*p/100])
}
