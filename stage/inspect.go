package stage

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// counts count the work of an Engine since it was made.
type counts struct{ claimed, finished, failed, suspended, lost atomic.Uint64 }

// List implements facts.Lister, with a row for the engine.
func (x *service) List(again bool, visit func(row any) bool) (more bool) {
	if !again {
		return false
	}
	e := x.e
	row := facts.Stages{
		Worker: e.cfg.Worker, Kinds: e.kinds, Workers: e.cfg.Workers,
		Claimed: e.counts.claimed.Load(), Finished: e.counts.finished.Load(), Failed: e.counts.failed.Load(),
		Suspended: e.counts.suspended.Load(), Lost: e.counts.lost.Load(),
	}
	e.mu.Lock()
	for _, w := range e.works {
		row.Running = append(row.Running, w.text())
	}
	e.mu.Unlock()
	var d act.Description
	x.Describe(&d)
	row.Waits = d.Internals().Waits.All()
	visit(&row)
	return false
}

// Between two claims it waits for a timer, and always for what rings.
func (x *service) Describe(d *act.Description) {
	if x.claim != nil {
		d.WaitsFor("the store, for a claim")
	} else {
		d.WaitsFor("tasks to claim")
	}
	if x.beat != nil {
		d.WaitsFor("the store, for a heartbeat")
	}
}

func (r *steps) Describe(d *act.Description) {
	if r.call != nil {
		d.WaitsFor("a step on another goroutine: " + r.w.String())
	} else {
		d.WaitsFor("the time for its next step: " + r.w.String())
	}
}
