package stage

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/hook"
)

// counts are of what an Engine has done since it was made.
type counts struct{ claimed, finished, failed, suspended, lost atomic.Uint64 }

// List implements hook.Lister, with a row for the engine.
func (x *service) List(again bool, visit func(row any) bool) (more bool) {
	if !again {
		return false
	}
	e := x.e
	row := hook.Stages{
		Worker: e.cfg.Worker, Kinds: e.kinds, Workers: e.cfg.Workers,
		Claimed: e.counts.claimed.Load(), Finished: e.counts.finished.Load(), Failed: e.counts.failed.Load(),
		Suspended: e.counts.suspended.Load(), Lost: e.counts.lost.Load(),
	}
	e.mu.Lock()
	for _, w := range e.works {
		row.Running = append(row.Running, w.text())
	}
	e.mu.Unlock()
	x.Waits(func(what string) { row.Waits = append(row.Waits, what) })
	visit(&row)
	return false
}

// Waits implements hook.Waiting. Between two claims it waits for a timer, and always for what rings.
func (x *service) Waits(add func(what string)) {
	if x.claim != nil {
		add("the store, for a claim")
	} else {
		add("tasks to claim")
	}
	if x.beat != nil {
		add("the store, for a heartbeat")
	}
}

// Waits implements hook.Waiting.
func (r *steps) Waits(add func(what string)) {
	if r.call != nil {
		add("a step off the thread: " + r.w.String())
	} else {
		add("the time for its next step: " + r.w.String())
	}
}
