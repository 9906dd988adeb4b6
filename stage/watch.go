package stage

import (
	"context"
	"slices"

	"github.com/daimon-go/daimon/stage/store"
)

// watch passes on the hints of the store, until p ends.
func (e *Engine) watch(p *period, w store.Watcher) {
	for {
		err := w.Watch(p, e.heard)
		if p.Err() != nil {
			return
		}
		e.unanswered(e.cfg.Logger, "watch", err)
		again, cancel := context.WithTimeout(p, e.polling())
		<-again.Done()
		cancel()
	}
}

// heard follows a hint.
func (e *Engine) heard(h store.Hint) {
	if _, claimed := slices.BinarySearch(e.kinds, h.Kind); claimed && h.Enqueuer != e.id {
		e.where().ring()
	}
	for _, w := range e.beating() {
		if w.lease.Task == h.Wanted {
			e.where().heartbeatNow()
		}
	}
}
