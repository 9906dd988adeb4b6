package tasklet

import (
	"errors"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
)

// phase calls work, or the tasklet's Task if it is nil, and returns the answer. Without one, after a panic or
// Goexit, it is 0 and e is forgotten. alone keeps a panic from going on: nobody else would report it.
func (e *entry) phase(alone bool, work func() Directive) (d Directive) {
	defer func() {
		if d != 0 {
			return
		}
		var err error
		if alone {
			err = caught(recover())
		}
		e.abort(err)
	}()
	if work != nil {
		return work()
	}
	answer := e.tasklet.Task(&e.view)
	answer.require()
	return answer
}

// caught is the error of what recover has returned: nil after a Goexit.
func caught(v any) error {
	if v == nil {
		v = errors.New("runtime.Goexit")
	}
	return act.Recovered(v)
}

// finish ends a phase that was none of a turn, and that has answered d.
func (e *entry) finish(d Directive, with bool) error {
	c := e.core
	blocked := occupied.leave(e.tasklet, e.hash)
	c.mu.Lock()
	err := c.end(e, d, with)
	c.unlock()
	retry(blocked)
	return err
}

// abort ends a phase that has not answered.
func (e *entry) abort(err error) {
	c, t := e.core, e.tasklet
	blocked := occupied.leave(t, e.hash)
	c.mu.Lock()
	e.place = nowhere
	if c.turning == e {
		c.turning = nil
	}
	c.lose(e, err)
	retry(blocked)
}

// lose forgets e because of err, sees to it that err is reported, once, and unlocks.
func (c *core) lose(e *entry, err error) {
	t, logger := e.tasklet, c.logger
	if e.gone {
		c.release(e)
	} else {
		c.forget(e, err)
	}
	unseen := e.err == nil || !e.tasked // there is no task that would fail with it
	c.unlock()
	if err != nil && unseen {
		report(logger, t, err)
	}
}

// retry lets those go on whose tasklet was in a phase elsewhere.
func retry(entries []*entry) {
	for _, e := range entries {
		c := e.core
		c.mu.Lock()
		e.patient = false
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

// report makes a failure seen that no task fails with, as act does it.
func report(l *zap.Logger, t Tasklet, err error) {
	fields := []zap.Field{zap.String("task", name(t)), zap.Error(err)}
	var p *act.Panic
	if errors.As(err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	l.Error("a task failed", fields...)
}
