package tasklet

import (
	"errors"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
)

// phase calls work, or the tasklet's Task if work is nil, and returns its Directive. After a panic or Goexit it returns
// 0 and e is forgotten. With alone it recovers and reports a panic, since no caller would.
func (e *entry) phase(alone bool, work func() Directive) (d Directive) {
	defer func() {
		if d != 0 {
			return
		}
		var err error
		if alone {
			v := recover()
			if v == nil {
				v = errors.New("runtime.Goexit")
			}
			err = panics.Recovered(v)
		}
		e.abort(err)
	}()
	if work != nil {
		return work()
	}
	next := e.tasklet.Task(&e.view)
	next.require()
	return next
}

// finish ends a phase outside of a turn that has returned d.
func (e *entry) finish(d Directive, with bool) error {
	c := e.core
	blocked := active.leave(e.tasklet, e.hash)
	c.mu.Lock()
	err := c.end(e, d, with)
	c.unlock()
	retry(blocked)
	return err
}

// abort ends a phase that has returned no Directive.
func (e *entry) abort(err error) {
	c, t := e.core, e.tasklet
	blocked := active.leave(t, e.hash)
	c.mu.Lock()
	e.place = nowhere
	if c.turning == e {
		c.turning = nil
	}
	c.lose(e, err)
	retry(blocked)
}

// lose forgets e because of err, reports err once, and unlocks.
func (c *core) lose(e *entry, err error) {
	t, logger := e.tasklet, c.logger
	if e.gone {
		c.release(e)
	} else {
		c.forget(e, err)
	}
	unseen := e.err == nil || !e.tasked // no task fails with it
	c.unlock()
	if err != nil && unseen {
		report(logger, t, err)
	}
}

// retry continues entries whose tasklet was in a phase under another Runner.
func retry(entries []*entry) {
	for _, e := range entries {
		c := e.core
		c.mu.Lock()
		e.retried = false
		switch {
		case e.gone:
		case e.place == blocked:
			c.put(e, e.blocked)
		case e.untold != nil:
			c.touch(e)
		}
		c.unlock()
	}
}

// report logs a failure that belongs to no task, as act logs failures of tasks.
func report(l *zap.Logger, t Tasklet, err error) {
	l.Error("a task failed", panics.Fields(err, zap.String("task", act.Name(t)))...)
}
