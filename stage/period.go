package stage

import (
	"context"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage/store"
)

// period is the time of an engine until the end of a Stop, or of its Group. If it runs again, another period begins.
type period struct {
	context.Context // for the engine's own calls of the store
	end             context.CancelFunc
	cut             error // names the works that were dropped; constant once the context has ended

	// Of the host without a Group.
	beating bool          // a goroutine sends heartbeats
	rested  chan struct{} // closed when the latest such goroutine has ended, with its heartbeats; nil if there was none
}

func newPeriod() *period {
	p := &period{}
	p.Context, p.end = context.WithCancel(context.Background())
	return p
}

// begin has the engine run on h, perhaps after a Stop.
func (e *Engine) begin(h host) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return ErrRunning
	}
	if e.period.Err() != nil {
		e.period = newPeriod()
	}
	e.host, e.running, e.stopping = h, true, false
	return nil
}

// conclude ends what begin began. If the engine was not stopped, since the set-up of its Group failed, it is as before.
func (e *Engine) conclude() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.host, e.running = e.alone, false
	if !e.stopping {
		e.period = newPeriod()
	}
}

func (e *Engine) current() *period {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.period
}

// interrupt ends the contexts of all works, and lets no more be claimed. It returns the period that is to end.
func (e *Engine) interrupt() *period {
	e.mu.Lock()
	e.stopping = true
	p := e.period
	e.mu.Unlock()
	for _, w := range e.claimed() {
		w.stop(ErrInterrupted)
	}
	e.where().ring()
	return p
}

// finish ends p, if it has not ended before, and returns a Cut that names the works that are left. It ends their
// contexts; their leases end by themselves.
func (e *Engine) finish(p *period, o shutdown.Order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Err() != nil {
		return p.cut
	}
	defer p.end()
	if len(e.works) == 0 {
		return nil
	}
	e.dropped = append(e.dropped, e.works...)
	cut := &shutdown.Cut{Order: o, Dropped: true, Tasks: len(e.works)}
	for _, w := range e.works {
		w.lose(store.ErrLeaseLost)
		merge.Add(cut, &shutdown.Cut{Names: []shutdown.Count{{Name: w.text(), N: 1}}})
	}
	p.cut = cut
	return cut
}
