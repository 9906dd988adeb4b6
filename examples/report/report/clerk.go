package report

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

const often = 100 * time.Millisecond // between two looks at all tasks

// clerk is the demon beside the engine: it adds the files, says what has become of the tasks, and orders the end when
// nothing is left. All of that is done off the thread, since the database may block, and who reads Out as well.
type clerk struct {
	work  *Work
	round *act.Call[bool] // under way; whether something is left
	due   time.Duration   // of the next
	timer act.Timer
	told  bool
}

// Act has a turn before each round and one behind it.
func (c *clerk) Act(t *act.Task) act.Directive {
	now := t.Scheduler().Now()
	if c.round != nil {
		d := c.round.Act(t)
		if d == act.Wait {
			return d
		}
		if d == act.Failed {
			c.work.failure = t.Err()
		}
		if d == act.Failed || !c.round.Value && !c.work.Stay {
			t.Scheduler().Group().Shutdown(shutdown.Now{Terms: Terms})
		}
		c.round = nil
	}
	switch {
	case c.told:
		return act.Done
	case now < c.due:
		t.WakeAt(&c.timer, c.due)
		return act.Wait
	}
	c.due = now + often
	c.round = stage.Ask(c.work.engine, c.work.round)
	return c.round.Act(t)
}

// String is for whoever hears that the clerk does not end: it waits for the database, or for who reads Out.
func (c *clerk) String() string { return "report.clerk" }

// Stop ends the clerk when it has put down its pen.
func (c *clerk) Stop(*act.Task, shutdown.Order) { c.told = true }

// round adds the files, if that is still to be done, says what is new, and returns whether something is left to be done, here or
// elsewhere. ctx ends with the engine, which is no failure.
func (w *Work) round(ctx context.Context) (left bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left, err = w.proceed(ctx); ctx.Err() != nil {
		return true, nil
	}
	return left, err
}

// proceed is round while there is the engine. A look that fails is made again: that the database does not answer is
// the engine's to say.
func (w *Work) proceed(ctx context.Context) (left bool, err error) {
	if w.news == nil { // before anything is added
		tasks, err := w.Reports.Store.List(ctx, stage.Filter{Kind: kind})
		if err != nil {
			return true, err
		}
		w.news = newNews(w.Out, tasks)
	}
	if err := w.add(ctx); err != nil {
		return true, fmt.Errorf("%s: %w", w.notAdded(), err)
	}
	left, err = w.look(ctx)
	return left || err != nil, nil
}

// add makes tasks of the files. Their paths are kept from the root, since who works on them may be somewhere else.
func (w *Work) add(ctx context.Context) error {
	if len(w.files) == 0 {
		return nil
	}
	paths := make([]string, len(w.files))
	for i, file := range w.files {
		var err error
		if paths[i], err = filepath.Abs(file); err != nil {
			return err
		}
	}
	ids, err := w.Reports.add(ctx, paths)
	if err != nil {
		return err
	}
	w.files = nil
	_, _ = w.engine.Fire(ctx) // which finds them at once; otherwise it does when it polls
	for i, id := range ids {
		w.news.added(id, paths[i])
	}
	return nil
}

// notAdded names what is still to be added.
func (w *Work) notAdded() string {
	return fmt.Sprintf("not added: %d, from %s on", len(w.files), oneLine(w.files[0]))
}

// look says what is new, and returns whether something is left.
func (w *Work) look(ctx context.Context) (left bool, err error) {
	tasks, err := w.Reports.Store.List(ctx, stage.Filter{Kind: kind, After: w.news.over})
	if err != nil {
		return false, err
	}
	return w.news.look(tasks), nil
}

// Failure is what has ended the work before its time, when the Group's Run has returned.
func (w *Work) Failure() error { return w.failure }

// Conclude says how it has ended, when the Group's Run has returned and nothing was cut. That some files have no report
// is an error; that an order has come before everything was done is not.
func (w *Work) Conclude(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.news == nil { // an order came before the first look
		w.news = newNews(w.Out, nil)
	} else if _, err := w.look(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w.Out, w.news.summary())
	if len(w.files) > 0 { // an order came before they were added
		fmt.Fprintln(w.Out, w.notAdded())
	}
	if n := w.news.failures(); n > 0 {
		return fmt.Errorf("no report on %d of the files; see report list", n)
	}
	return nil
}
