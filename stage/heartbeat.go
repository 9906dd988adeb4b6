package stage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// beat renews the leases of all works in one transaction, and passes on the requests that the store answers. It asks for
// the tasks of claims whose answers were lost. It reports whether the store has answered. A heartbeat that hangs is given up while there
// is time for others before a lease ends.
func (e *Engine) beat() (answered bool) {
	p, works := e.current(), e.beating()
	ctx, cancel := context.WithTimeout(p, min(max(3*e.cfg.Heartbeat, time.Second), e.cfg.Lease/3))
	defer cancel()
	err := e.renew(ctx, works)
	if err == nil {
		err = e.recoverClaims(ctx)
	}
	switch {
	case err == nil:
		e.answered()
	case p.Err() == nil:
		e.unanswered(e.cfg.Logger, "heartbeat", err)
	}
	return err == nil
}

func (e *Engine) renew(ctx context.Context, works []*work) error {
	if len(works) == 0 {
		return nil
	}
	renewals := make([]store.Renewal, len(works))
	noted, numbers := make([]*notes, len(works)), make([]int, len(works))
	until := make([]time.Duration, len(works))
	for i, w := range works {
		renewals[i].Lease, noted[i] = w.lease, w.noted()
		renewals[i].Progress, numbers[i] = noted[i].unstored()
		until[i] = w.now() + e.cfg.Lease
	}
	answers, err := e.cfg.Store.Heartbeat(ctx, renewals, e.cfg.Lease)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		if transition.Renewed(answer) {
			noted[i].store(numbers[i])
		}
		works[i].heard(answer, until[i])
	}
	return nil
}

// beating returns the works that have a lease to be renewed.
func (e *Engine) beating() (works []*work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.works {
		if w.held.Err() == nil {
			works = append(works, w)
		}
	}
	return works
}

// needsHeartbeats reports whether any work has a lease, or the answer of a claim was lost.
func (e *Engine) needsHeartbeats() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.recoveries > 0 || slices.ContainsFunc(e.works, func(w *work) bool { return w.held.Err() == nil })
}

// heard handles the answer to a heartbeat. The task may have been given back meanwhile.
func (w *work) heard(answer error, until time.Duration) {
	w.e.mu.Lock()
	parting := w.parting
	if transition.Renewed(answer) {
		w.until = max(w.until, until)
	}
	w.e.mu.Unlock()
	switch {
	case errors.Is(answer, store.ErrLeaseLost) && !parting:
		w.lose(store.ErrLeaseLost)
	case errors.Is(answer, store.ErrSuspended), errors.Is(answer, store.ErrCanceled):
		w.stop(answer)
	}
}

// expire ends the contexts of works whose lease has ended by the clock of this process, since no heartbeat was answered:
// another worker may have claimed the task.
func (e *Engine) expire() {
	for _, w := range e.claimed() {
		if w.expired() {
			w.lose(store.ErrLeaseLost)
		}
	}
}

func (w *work) expired() bool {
	now := w.now()
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.until <= now
}

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
