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

const often = 100 * time.Millisecond // between two rounds

// poller is a demon beside the engine. In each round it adds the files that are still to be added, prints what has changed,
// and orders the end if nothing is left. Rounds run off the thread, since the database and Out may block.
type poller struct {
	work     *Work
	round    *act.Call[bool] // the round under way; its value reports whether something is left
	due      time.Duration   // when the next begins
	timer    act.Timer
	stopping bool
}

// Act has a turn before each round and one after it.
func (p *poller) Act(t *act.Task) act.Directive {
	now := t.Scheduler().Now()
	if p.round != nil {
		d := p.round.Act(t)
		if d == act.Wait {
			return d
		}
		if d == act.Failed {
			p.work.failure = t.Err()
		}
		if d == act.Failed || !p.round.Value && !p.work.Stay {
			t.Scheduler().Group().Shutdown(shutdown.Now{Terms: Terms})
		}
		p.round = nil
	}
	switch {
	case p.stopping:
		return act.Done
	case now < p.due:
		t.WakeAt(&p.timer, p.due)
		return act.Wait
	}
	p.due = now + often
	p.round = stage.Call(p.work.engine, p.work.round)
	return p.round.Act(t)
}

// String is the name that a Cut gives it, if it does not end because the database or Out blocks.
func (p *poller) String() string { return "report.poller" }

// Stop ends the poller after the round under way.
func (p *poller) Stop(*act.Task, shutdown.Order) { p.stopping = true }

// round adds the files that are still to be added, prints what has changed, and returns whether something is left to do, by
// this program or another. ctx ends with the engine, which is not a failure.
func (w *Work) round(ctx context.Context) (left bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left, err = w.proceed(ctx); ctx.Err() != nil {
		return true, nil
	}
	return left, err
}

// proceed is round before ctx ends. If it cannot read the tasks, it leaves that to the next round: the engine logs that the
// database does not answer.
func (w *Work) proceed(ctx context.Context) (left bool, err error) {
	if w.progress == nil { // before anything is added
		tasks, err := w.Reports.Store.List(ctx, stage.Selection{Kind: kind})
		if err != nil {
			return true, err
		}
		w.progress = newProgress(w.Out, tasks)
	}
	if err := w.add(ctx); err != nil {
		return true, fmt.Errorf("%s: %w", w.notAdded(), err)
	}
	left, err = w.look(ctx)
	return left || err != nil, nil
}

// add makes tasks for the files. It stores absolute paths, since other programs may work on them.
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
	ids, err := w.Reports.add(ctx, w.name, paths)
	if err != nil {
		return err
	}
	w.files = nil
	_, _ = w.engine.Fire(ctx) // the engine finds them at once; otherwise when it polls
	for i, id := range ids {
		w.progress.added(id, paths[i])
	}
	return nil
}

// notAdded says how many files are still to be added, and names the first.
func (w *Work) notAdded() string {
	return fmt.Sprintf("not added: %d, from %s on", len(w.files), oneLine(w.files[0]))
}

// look prints what has changed, and returns whether something is left to do.
func (w *Work) look(ctx context.Context) (left bool, err error) {
	tasks, err := w.Reports.Store.List(ctx, stage.Selection{Kind: kind, After: w.progress.over})
	if err != nil {
		return false, err
	}
	return w.progress.look(tasks), nil
}

// Failure returns the error that ended the work early. It is called after the Group's Run has returned.
func (w *Work) Failure() error { return w.failure }

// Conclude prints a summary. It is called after the Group's Run has returned, unless something was cut. It returns an error
// if files have failed, but not if an order ended the work early.
func (w *Work) Conclude(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress == nil { // ended before the first look
		w.progress = newProgress(w.Out, nil)
	} else if _, err := w.look(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w.Out, w.progress.summary())
	if len(w.files) > 0 { // ended before they were added
		fmt.Fprintln(w.Out, w.notAdded())
	}
	if n := w.progress.failures(); n > 0 {
		return fmt.Errorf("no report on %d of the files; see report list", n)
	}
	return nil
}
