package tasklet

import "errors"

// With runs a phase of t now, on the calling goroutine, under s, and then follows its answer. t need not be
// a member; if it is, it is taken from where it is. In a SYNC phase of s it is a part of that phase. On
// another goroutine during a Run of s it counts as an ASYNC phase, and Run waits for it. Under an Inline that
// another goroutine is about it counts as one, too: it is not put off, and runs beside the phases there. Withs
// nest, also those of one scheduler in those of another.
//
// It returns ErrInPhase, without a phase, if t is in one already; ErrIncomparable; and ErrNotRunning if the
// answer is Async and s does not run: t is then forgotten. A panic in the phase goes on to the caller; t is
// forgotten, and s goes on as if it had answered Done.
func With(s *Scheduler, t Tasklet) error {
	if err := identify(t); err != nil {
		return err
	}
	c := s.core
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrNotRunning
	}
	e := c.known[t]
	known := e != nil
	if !known {
		e = c.admit(t)
	}
	if e.place == inPhase || !occupied.enter(t, e.hash, nil) {
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
	err := e.with(drains)
	if drains {
		err = errors.Join(err, c.drain())
	}
	return err
}

func (e *entry) with(drains bool) error {
	if drains {
		defer e.core.drained()
	}
	return e.finish(e.phase(false, nil), true)
}

// Inline returns a scheduler for a goroutine that has none. It has no Run: what is scheduled SYNC runs on
// the caller, with all that follows from it, before Schedule returns; within a phase Schedule only queues,
// and the outermost call runs it, so the stack does not grow. What waits is run by whoever resumes it. ASYNC is
// ErrNotRunning, also as the answer of a phase: Schedule returns it then, and the tasklet is forgotten. A
// panic goes on to the caller; what is left in the queue runs with the next call.
//
// It is meant for one goroutine at a time. What others Schedule and Resume meanwhile is only queued: the one that
// is there runs their phases, too, and gets their errors. Their With is not: it runs its phase at once, beside
// those. (To wait would be to wait for oneself in a phase that calls With, and Go does not tell one goroutine from
// another.) Orders are for those who run; an Inline obeys none.
func Inline() *Scheduler { return newCore(API{}, inline).root() }

// drain runs what is queued, unless somebody is about it.
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

// next takes the head of the queue into a phase. Without one somebody else may drain from here on.
func (c *core) next(err *error) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.queue.head; e != nil; e = c.queue.head {
		if c.begin(e, Sync) {
			return e
		}
		*err = errors.Join(*err, ErrInPhase)
	}
	c.draining = false // here, so that nobody queues between the look and this
	return nil
}

// drained lets others drain. It is for who does.
func (c *core) drained() {
	c.mu.Lock()
	c.draining = false
	c.mu.Unlock()
}
