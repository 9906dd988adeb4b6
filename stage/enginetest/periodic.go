package enginetest

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// testPeriodic has many engines with the same periodic task, which are stopped one after the other. Each tick is run once, and
// none is missed.
func testPeriodic(w *world) {
	const each = 100 * time.Millisecond
	ticks := make(chan struct{}, 10000)
	cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
		ticks <- struct{}{} // perhaps twice for a tick, if the engine stops
		return nil, nil
	}})
	cfg.Periodic = map[string]stage.Periodic{
		"p": {Kind: "short", Schedule: stage.Every(each), Missed: stage.MissedEach, Most: 1000},
		"q": {Kind: "report", Schedule: stage.Every(1000 * time.Hour)},
	}
	engines := []*run{w.start(cfg), w.start(cfg), w.start(cfg)}
	for _, e := range engines {
		for range 5 {
			w.comes("a tick", ticks)
		}
		w.NoError(e.stop(shutdown.Unbounded))
	}
	cfg.Periodic = nil
	w.start(cfg) // for what is left; with ticks a slow machine might never be done
	w.eventually("all have finished", func() bool {
		tasks, err := w.other.List(w.ctx, stage.Selection{Kind: "short", Running: true})
		w.NoError(err)
		return len(tasks) == 0
	})
	tasks, err := w.other.List(w.ctx, stage.Selection{Kind: "short"})
	w.NoError(err)
	for i, t := range tasks[1:] {
		before, err := time.Parse(time.RFC3339Nano, string(tasks[i].Data))
		w.NoError(err)
		w.Equal(before.Add(each).Format(time.RFC3339Nano), string(t.Data))
	}
}
