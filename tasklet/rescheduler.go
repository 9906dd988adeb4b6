package tasklet

// Rescheduler is the right to resume a tasklet that was suspended, in that life of it: once it has been Done,
// also if it was scheduled again, a Rescheduler does nothing. It may be used from any goroutine, as often as
// wanted. It does not keep the tasklet alive. The zero Rescheduler does nothing.
type Rescheduler struct {
	e   *entry
	err error // why Suspend has come to nothing
}

// Resume has the tasklet go on with d if it waits. Otherwise d is kept, the latest only, for the next Wait:
// of the phase under way, or of a later one. Done ends it at once, Wait does nothing.
//
// Async outside of Run is kept until there is one; under Inline it is ErrNotRunning. An error of Suspend is
// returned here. Under Inline the phase is run here.
func (r Rescheduler) Resume(d Directive) error {
	d.require()
	if r.e == nil {
		return r.err
	}
	c := r.e.core
	if d == Async && c.kind == inline {
		return ErrNotRunning
	}
	c.mu.Lock()
	c.resume(r.e, d)
	c.unlock()
	return c.drain()
}

// ResumeLater returns a function that resumes with d: for a timer, or whoever calls back. Its error goes
// unseen.
func (r Rescheduler) ResumeLater(d Directive) func() {
	d.require()
	return func() { _ = r.Resume(d) }
}
