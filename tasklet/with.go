package tasklet

import (
	"errors"

	"github.com/daimon-go/daimon/act"
)

// With runs a phase of t at once, on the calling goroutine, and then carries out its Directive under r. If t is a
// member, it is taken from its place first. Called in a SYNC phase of r, it is a part of that phase. Called on another
// goroutine during a Run of r, it counts as an ASYNC phase, and Run waits for it. Under an Inline that another
// goroutine uses, it runs in parallel with the phases there. Calls may nest, even for different runners.
//
// The error is [ErrInPhase] if t is in a phase already, or [ErrNotRunning] if the phase returns Async and r is not
// running; then t is forgotten. A panic in the phase reaches the caller, and t is forgotten.
func With(r *Runner, t Tasklet) error {
	requireComparable(t)
	c := r.core
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrNotRunning
	}
	known := c.known[t] != nil
	e := c.admit(t)
	if e.place == inPhase || !active.enter(t, e.hash, nil) {
		if !known {
			c.forget(e, nil)
		}
		c.unlock()
		return ErrInPhase
	}
	c.takeOut(e)
	e.place = inPhase
	c.touch(e)
	drains := c.kind == inline && !c.draining
	c.draining = c.draining || drains
	c.unlock()
	if !drains {
		return e.finish(e.phase(false, nil), true)
	}
	err := func() error {
		defer c.drained() // even if it panics
		return e.finish(e.phase(false, nil), true)
	}()
	return errors.Join(err, c.drain())
}

// Inline returns a Runner without a Run, for code outside of a scheduler. A tasklet that is scheduled with Sync runs on
// the calling goroutine, with all phases that follow, before Schedule returns. Within a phase Schedule only queues, and
// the outermost call runs the queue, so the stack does not grow. A waiting tasklet is run by the call of Resume. Async
// fails with [ErrNotRunning], even if a phase returns it: Schedule then returns the error, and the tasklet is
// forgotten. A panic reaches the caller; the rest of the queue runs with the next call.
//
// An Inline is meant for one goroutine at a time. If other goroutines schedule and resume tasklets meanwhile, these are
// queued, and the active goroutine runs them and gets the errors. But With runs its phase at once, in parallel with the
// others, since it cannot tell whether it was called in a phase. An Inline ignores shutdown.
func Inline() *Runner { return &Runner{core: newCore(act.Config{}, inline)} }

// drain runs the queue, unless another call does.
func (c *core) drain() (err error) {
	if c.kind != inline {
		return nil
	}
	c.mu.Lock()
	if c.draining {
		c.mu.Unlock()
		return nil
	}
	c.draining = true
	c.mu.Unlock()
	panicking := true
	defer func() {
		if panicking {
			c.drained()
		}
	}()
	for e := c.next(&err); e != nil; e = c.next(&err) {
		err = errors.Join(err, e.finish(e.phase(false, nil), false))
	}
	panicking = false
	return err
}

// next takes the head of the queue into a phase. If the queue is empty, others may drain from here on.
func (c *core) next(err *error) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := c.queue.First; n != nil; n = c.queue.First {
		if c.begin(n.Of, Sync) {
			return n.Of
		}
		*err = errors.Join(*err, ErrInPhase)
	}
	c.draining = false // under the lock, so that nothing is queued in between
	return nil
}

// drained lets other calls drain.
func (c *core) drained() {
	c.mu.Lock()
	c.draining = false
	c.mu.Unlock()
}
