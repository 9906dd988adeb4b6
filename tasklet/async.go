package tasklet

// launch has e handed to the executor, if it has not got it already.
func (c *core) launch(e *entry) {
	if !e.sent {
		e.sent = true
		c.launches = append(c.launches, e)
	}
}

// execute hands entries to the executor.
func execute(entries []*entry, api API, d *desk) {
	for _, e := range entries {
		if api.Executor != nil {
			api.Executor.Execute(e.async)
		} else {
			d.s.Execute(e.async)
		}
	}
}

// async is called by the executor: an ASYNC phase, if e is still due for one. Who has been scheduled
// otherwise meanwhile, or whose Run has ended, is not, nor who has yet to be told of an order: that ends in put.
func (e *entry) async() {
	c := e.core
	here := c.here()
	c.mu.Lock()
	e.sent = false
	switch {
	case c.desk == nil, e.place != handed, e.untold != nil:
		c.mu.Unlock()
	case here:
		e.refused, c.refused = true, ErrSynchronous
		c.lose(e, ErrSynchronous)
	case !c.begin(e, Async):
		c.unlock()
	default:
		c.unlock()
		if d := e.phase(true, nil); d != 0 {
			_ = e.finish(d, false)
		}
	}
}

// refusal is what Schedule has to tell of an executor that was too quick.
func (e *entry) refusal() error {
	e.core.mu.Lock()
	defer e.core.mu.Unlock()
	if e.refused {
		return ErrSynchronous
	}
	return nil
}
