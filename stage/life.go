package stage

import (
	"context"

	"github.com/daimon-go/daimon/shutdown"
)

// life is an engine's until the end of a Stop, or of its Group. Who runs it again begins another.
type life struct {
	context.Context // of what the engine asks the store by itself
	end             context.CancelFunc
	cut             error // what had to be left; nothing changes it when the context has ended

	// Of the host without a Group.
	beating bool          // there is a heart
	rested  chan struct{} // closed when the latest has ended, with its heartbeats; nil: there was none
}

func newLife() *life {
	l := &life{}
	l.Context, l.end = context.WithCancel(context.Background())
	return l
}

// begin makes the engine one that runs on h, perhaps after a Stop.
func (e *Engine) begin(h host) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return ErrRunning
	}
	if e.life.Err() != nil {
		e.life = newLife()
	}
	e.host, e.running, e.stopping = h, true, false
	return nil
}

// conclude makes the engine one that does not run, until it begins again. If nobody has stopped it, since the set-up of
// its Group failed, it is as before.
func (e *Engine) conclude() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.host, e.running = e.alone, false
	if !e.stopping {
		e.life = newLife()
	}
}

// living is the present life.
func (e *Engine) living() *life {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life
}

// interrupt ends the contexts of all that is worked on, and lets no more be claimed. It returns the life that is to
// end.
func (e *Engine) interrupt() *life {
	e.mu.Lock()
	e.stopping = true
	l := e.life
	e.mu.Unlock()
	for _, w := range e.claimed() {
		w.stop(ErrInterrupted)
	}
	e.where().ring()
	return l
}

// finish ends l, if nobody has before, and returns how it has ended. It forgets those who have not come back, and
// names them; their leases end by themselves.
func (e *Engine) finish(l *life, o shutdown.Order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.Err() != nil {
		return l.cut
	}
	defer l.end()
	if len(e.works) == 0 {
		return nil
	}
	cut := &shutdown.Cut{Order: o, Dropped: true, Tasks: len(e.works)}
	for _, w := range e.works {
		w.lose(ErrLeaseLost)
		cut.Add(&shutdown.Cut{Names: []shutdown.Count{{Name: w.text(), N: 1}}})
	}
	l.cut = cut
	return cut
}
