package tasklet

// launch hands e to the executor, unless the executor has it already.
func (c *core) launch(e *entry) {
	if !e.sent {
		e.sent = true
		c.launches = append(c.launches, e)
	}
}

// async is called by the executor. It runs an ASYNC phase, unless e was scheduled otherwise meanwhile, its Run has
// ended, or e is still to be told of a shutdown, which puts it in its place again.
func (e *entry) async() {
	c := e.core
	here := c.here()
	c.mu.Lock()
	e.sent = false
	switch {
	case c.monitor == nil, e.place != handed, e.untold != nil:
		c.mu.Unlock()
	case here:
		e.refused, c.refused = true, errSynchronous
		c.lose(e, errSynchronous)
	case !c.begin(e, Async):
		c.unlock()
	default:
		c.unlock()
		if d := e.phase(true, nil); d != 0 {
			_ = e.finish(d, false)
		}
	}
}
