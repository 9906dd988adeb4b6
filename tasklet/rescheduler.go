package tasklet

// Rescheduler resumes a tasklet that was suspended: see [Runner.Suspend]. Once the tasklet has been Done it does
// nothing, even if the tasklet was scheduled again. It may be used on any goroutine, any number of times. It does not
// keep the tasklet alive. The zero Rescheduler does nothing.
type Rescheduler struct {
	e   *entry
	err error // of Suspend
}

// Resume makes a waiting tasklet go on with d. If the tasklet does not wait, d is kept for its next Wait; only the
// latest is kept. Done ends the tasklet at once, Wait does nothing.
//
// Async outside of Run is kept until Run is called. Under Inline, Async fails with [ErrNotRunning], and Sync runs the
// phase before Resume returns. If Suspend failed, Resume returns its error. Any goroutine.
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
