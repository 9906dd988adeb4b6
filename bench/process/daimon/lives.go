package main

import (
	"log"
	"runtime"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/bench/process/measure"
	"github.com/daimon-go/daimon/process"
)

// spawn: processes that end with their first turn.
func spawn(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		brief := process.Func[int](func(*process.Self[int]) act.Directive { return act.Done })
		left := 0
		process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			if left == 0 {
				if sys.Alive() > 1 {
					return act.Yield
				}
				if !m.Lap(measure.Batches * measure.Batch) {
					stop()
					return act.Done
				}
				left = measure.Batches
			}
			for range measure.Batch {
				process.Spawn(p, brief, process.Options{})
			}
			left--
			return act.Yield
		}), process.Options{})
	})
}

// fresh: processes that have had one turn, and no message.
func fresh(m *measure.Meter) { crowd(m, false) }

// sleep: processes that have had a message.
func sleep(m *measure.Meter) { crowd(m, true) }

func crowd(m *measure.Meter, spoken bool) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		spawned(sys, func(*process.Self[int], int) {}) // keeps Run from returning
		go func() {
			defer stop()
			all := make([]process.Ref[int], m.Laps*measure.Sleepers)
			before := measure.Footprint()
			for i := range all {
				all[i] = spawned(sys, func(*process.Self[int], int) {})
			}
			await(sys)
			for i := range all {
				if spoken {
					send(all[i], sys, i)
				}
			}
			await(sys)
			m.Grown(before, len(all))
			runtime.KeepAlive(all)
		}()
	})
}

// await waits until the System is quiescent.
func await(sys *process.System) {
	f := sys.Quiescent()
	for end := time.Now().Add(time.Minute); !f.Resolved(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			log.Fatal("the System does not become quiescent")
		}
	}
}

// work: processes that keep the CPUs busy, a slice for each message.
func work(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		all := make([]process.Ref[int], measure.Workers)
		done := measure.Workers - 1
		collector := spawned(sys, func(p *process.Self[int], _ int) {
			if done++; done < measure.Workers {
				return
			}
			if !m.Lap(measure.Workers * measure.Slices) {
				stop()
				return
			}
			done = 0
			for _, to := range all {
				send(to, p, measure.Slices)
			}
		})
		for i := range all {
			all[i] = spawned(sys, func(p *process.Self[int], left int) {
				measure.Slice()
				if left--; left > 0 {
					send(p.Ref(), p, left)
				} else {
					send(collector, p, 0)
				}
			})
		}
		send(collector, sys, 0)
	})
}
