package enginetest

import (
	"context"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// watches is a processor that the first time waits until it is not to go on.
func (w *world) watches(id string) stage.ProcessorFunc {
	return func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, id) == 1 {
			<-ctx.Done()
		}
		return nil, stage.CheckSuspended(ctx)
	}
}

// swallows is a processor that the first time waits for that too, and then returns what would be written.
func (w *world) swallows(id string) stage.ProcessorFunc {
	return func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, id) > 1 {
			return nil, nil
		}
		<-ctx.Done()
		return w.writes("swallowed"), nil
	}
}

// writes is a commit that leaves something.
func (w *world) writes(data string) stage.Commit {
	return func(_ context.Context, tx stage.Tx) error {
		w.note("committed")
		tx.SetData([]byte(data))
		return nil
	}
}

// begins waits until a processor has begun so many times with a task.
func (w *world) begins(id stage.ID, processor string, n int) {
	w.t.Helper()
	w.eventually(processor+" begins", func() bool { return w.times(id, processor) == n })
}

func testSuspend(w *world) {
	r := w.start(heartless(w.config(processors{"build": w.watches("build")}))) // a request to this engine reaches the processor at once
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.yes(r.Suspend(w.ctx, id))
	w.no(r.Suspend(w.ctx, id))
	w.becomes(id, isSuspended)
	w.no(r.Suspend(w.ctx, id))
	t := w.get(id)
	w.Zero(t.Attempt)
	w.Empty(t.Failure)
	w.Equal(stage.Nothing, t.Wanted)
	w.True(t.Due.IsZero())
	w.yes(r.Resume(w.ctx, id))
	w.no(r.Resume(w.ctx, id))
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"))
	w.Equal(2, w.times(id, "build"))
}

func testSuspendQueued(w *world) {
	id := w.enqueue("report")
	e := w.engine(w.config(nil))
	w.yes(e.Suspend(w.ctx, id))
	w.no(e.Suspend(w.ctx, id))
	w.Equal(created+", SUSPENDED", w.see(id), "no worker holds it")
	r := w.host.start(w, e)
	w.becomes(r.enqueue("report"), isFinished)
	w.becomes(w.enqueue("report"), isFinished)
	w.Equal(created+", SUSPENDED", w.see(id))
	r.resume(id)
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"))
	w.Equal(1, w.times(id, "build"))
}

// fails is a processor that fails that many times.
func (w *world) fails(id string, times int) stage.ProcessorFunc {
	return func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, id) <= times {
			return nil, errors.New("no luck")
		}
		return nil, nil
	}
}

func testSuspendBackoff(w *world) {
	cfg := w.config(processors{"build": w.fails("build", 1)})
	cfg.Backoff = func(int) time.Duration { return never }
	r := w.start(cfg)
	id := r.enqueue("report")
	w.becomes(id, loaded+", ERROR")
	w.False(w.get(id).Due.IsZero(), "it would be tried again")
	w.yes(r.Suspend(w.ctx, id))
	w.no(r.Suspend(w.ctx, id))
	t := w.get(id)
	w.Equal(isSuspended, state(t))
	w.Equal(1, t.Attempt)
	w.Equal("no luck", t.Failure)
	r.resume(id)
	w.becomes(id, isFinished)
	w.Equal(2, w.times(id, "build"))
}

func testNothingToSuspend(w *world) {
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if t.Kind == "report" {
			return nil, stage.Permanent(errors.New("never"))
		}
		return nil, nil
	}})
	r := w.start(cfg)
	ended, failed := r.enqueue("short"), r.enqueue("report")
	w.becomes(ended, isFinished)
	w.becomes(failed, created+", ERROR")
	cancelled := w.enqueue("unknown kind")
	w.yes(r.Cancel(w.ctx, cancelled))
	for what, id := range map[string]stage.ID{"finished": ended, "failed": failed, "cancelled": cancelled} {
		before := w.get(id)
		for _, ask := range []func(context.Context, stage.ID) (bool, error){r.Suspend, r.Resume} {
			ok, err := ask(w.ctx, id)
			w.NoError(err)
			w.False(ok, what)
		}
		w.Equal(before, w.get(id), what)
	}
	for _, ask := range []func(context.Context, stage.ID) (bool, error){r.Suspend, r.Resume, r.ResumeFailed, r.Cancel} {
		ok, err := ask(w.ctx, 4711)
		w.ErrorIs(err, stage.ErrNotFound)
		w.False(ok)
	}
	_, err := r.Get(w.ctx, 4711)
	w.ErrorIs(err, stage.ErrNotFound)
}

// testSuspendBetween suspends while the next stage is about to be entered: here, and from elsewhere.
func testSuspendBetween(w *world) {
	for _, elsewhere := range []bool{false, true} {
		h := newHold(enter)
		h.arm()
		g, p := w.gate(), w.tape()
		g.Store, g.before = p, h.before
		cfg := heartless(w.config(nil)) // the store says so
		cfg.Store = g
		r := w.start(cfg)
		id := r.enqueue("report")
		w.comes("it is between two stages", h.arrived)
		w.Equal(loaded+", IN_PROCESSING", w.see(id))
		if elsewhere {
			w.yes(w.other.Suspend(w.ctx, id))
		} else {
			r.suspend(id)
		}
		close(h.release)
		w.becomes(id, isSuspended)
		w.Equal([]string{isNew, isLoading, loaded + ", IN_PROCESSING", isSuspended}, p.history(id))
		w.Zero(w.times(id, "build"))
		r.resume(id)
		w.becomes(id, isFinished)
		w.Equal(1, w.times(id, "load"))
		w.Equal(1, w.times(id, "build"))
		w.NoError(r.stop(shutdown10))
	}
}

// testSuspendFinish suspends when a processor has returned and its end is about to be written.
func testSuspendFinish(w *world) {
	for _, elsewhere := range []bool{false, true} {
		h := newHold(finish)
		g := w.gate()
		g.before = h.before
		cfg := heartless(w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			if w.times(t.ID, "build") == 1 {
				h.arm()
			}
			return w.writes("built"), nil
		}})) // the store says so
		cfg.Store = g
		r := w.start(cfg)
		id := r.enqueue("report")
		w.comes("its end is about to be written", h.arrived)
		if elsewhere {
			w.yes(w.other.Suspend(w.ctx, id))
		} else {
			r.suspend(id)
		}
		close(h.release)
		w.becomes(id, isSuspended)
		w.Empty(w.noted(), "no commit is called")
		w.Empty(w.get(id).Data)
		r.resume(id)
		w.becomes(id, isFinished)
		w.Equal([]string{"committed"}, w.noted())
		w.Equal("built", string(w.get(id).Data))
		w.NoError(r.stop(shutdown10))
	}
}

func testSuspendAfter(w *world) {
	h := newHold(finish)
	g := w.gate()
	g.after = h.after
	cfg := w.config(processors{"build": func(context.Context, *stage.Task) (stage.Commit, error) {
		h.arm()
		return nil, nil
	}})
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("report")
	w.comes("the last stage has ended", h.arrived)
	w.no(r.Suspend(w.ctx, id))
	w.no(r.Cancel(w.ctx, id))
	close(h.release)
	w.Equal(isFinished, w.see(id))
	w.NoError(r.stop(shutdown10))
	w.Equal(isFinished, w.see(id))
}

// testIgnored is about a processor that returns results after it was suspended or cancelled, here or elsewhere.
func testIgnored(w *world) {
	for _, elsewhere := range []bool{false, true} {
		for _, cancelled := range []bool{false, true} {
			cfg := w.config(processors{"build": w.swallows("build")})
			if !elsewhere {
				cfg = heartless(cfg) // a request to this engine reaches the processor at once
			}
			r := w.start(cfg)
			suspend, cancel := r.Suspend, r.Cancel
			if elsewhere {
				suspend, cancel = w.other.Suspend, w.other.Cancel
			}
			id := r.enqueue("report")
			w.begins(id, "build", 1)
			if cancelled {
				w.yes(cancel(w.ctx, id))
				w.becomes(id, loaded+", CANCELLED")
			} else {
				w.yes(suspend(w.ctx, id))
				w.becomes(id, isSuspended)
			}
			w.Empty(w.noted(), "its commit is not called")
			w.Empty(w.get(id).Data)
			if !cancelled {
				r.resume(id)
				w.becomes(id, isFinished)
			}
			w.NoError(r.stop(shutdown10))
		}
	}
}

// testSuspendError is about processors that make something else of their suspension. It is no failure all the same.
func testSuspendError(w *world) {
	for name, ends := range map[string]func() error{
		"error": func() error { return stage.Permanent(context.Canceled) }, "panic": panics, "exit": goexits,
	} {
		r := w.start(w.config(processors{"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			<-ctx.Done()
			return nil, ends()
		}}))
		id := r.enqueue("report")
		w.begins(id, "build", 1)
		r.suspend(id)
		w.becomes(id, isSuspended)
		t := w.get(id)
		w.Zero(t.Attempt, name)
		w.Empty(t.Failure, name)
		w.NoError(r.stop(shutdown10))
	}
}

func testSuspendsItself(w *world) {
	p := w.tape()
	cfg := w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		switch w.times(t.ID, "build") {
		case 1:
			return nil, errors.New("once")
		case 2:
			return w.writes("itself"), errors.Join(errors.New("wait for paper"), stage.ErrSuspended)
		}
		w.note("attempt %d after %q", t.Attempt, t.Failure)
		return nil, nil
	}})
	cfg.Store = p
	r := w.start(cfg)
	id := r.enqueue("report")
	w.becomes(id, isSuspended)
	t := w.get(id)
	w.Equal(1, t.Attempt, "what has failed before is not forgotten")
	w.Equal("once", t.Failure)
	w.Empty(t.Data)
	w.no(r.Suspend(w.ctx, id))
	r.resume(id)
	w.becomes(id, isFinished)
	w.Equal([]string{
		isNew, isLoading, loaded + ", IN_PROCESSING", isBuilding, loaded + ", ERROR: once", isBuilding, isSuspended,
		loaded + ", RESUMED", isBuilding, isFinished,
	}, p.history(id))
	w.Contains(w.noted(), `attempt 1 after "once"`)
}

// testSuspendFailing has the attempts of a task fail while a suspension is pending of which the worker does not know. After the
// first one it is suspended, and after the last one it has failed for good.
func testSuspendFailing(w *world) {
	release := make(chan struct{})
	g := w.gate()
	g.before = func(_ context.Context, op string) error {
		if op == heartbeat {
			return errTrouble
		}
		return nil
	}
	ended := make(chan stage.Task, 1)
	cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
		<-release
		return nil, errors.New("no luck")
	}})
	cfg.Store, cfg.Attempts, cfg.OnEnd = g, 2, func(t stage.Task) { ended <- t }
	r := w.start(cfg)
	id := r.enqueue("short")
	for n, status := range []stage.Status{stage.Suspended, stage.Error} {
		w.begins(id, "load", n+1)
		w.yes(w.other.Suspend(w.ctx, id))
		release <- struct{}{}
		w.becomes(id, created+", "+string(status))
		t := w.get(id)
		w.Equal(n+1, t.Attempt)
		w.Equal("no luck", t.Failure)
		w.True(t.Due.IsZero())
		ok, err := r.Resume(w.ctx, id)
		w.NoError(err)
		w.Equal(status == stage.Suspended, ok)
	}
	w.Equal(2, (<-ended).Attempt)
	all, err := r.Failures(w.ctx, id)
	w.NoError(err)
	w.Len(all, 2)
	w.yes(r.ResumeFailed(w.ctx, id))
	w.begins(id, "load", 3)
	close(release)
	w.NoError(r.stop(shutdown10))
}

// testWithdraw suspends from elsewhere, and resumes before the worker has seen it.
func testWithdraw(w *world) {
	h := newHold(heartbeat)
	h.arm()
	g := w.gate()
	g.before = h.before
	release := make(chan struct{})
	cfg := w.config(processors{"build": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		<-release
		return nil, stage.CheckSuspended(ctx)
	}})
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.comes("a heartbeat before the request", h.arrived)
	w.yes(w.other.Suspend(w.ctx, id))
	w.Equal(stage.Suspension, w.get(id).Wanted)
	r.resume(id)
	w.no(r.Resume(w.ctx, id))
	w.Equal(isBuilding, w.see(id), "nothing has happened")
	close(h.release)
	close(release)
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "build"))
}

// testWithdrawSeen resumes when the processor has seen the suspension: its work is lost, the task goes on.
func testWithdrawSeen(w *world) {
	heard, release := make(chan struct{}), make(chan struct{})
	r := w.start(w.config(processors{"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, "build") == 1 {
			<-ctx.Done()
			close(heard)
			<-release
		}
		return nil, stage.CheckSuspended(ctx)
	}}))
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	r.suspend(id)
	w.comes("the processor has seen it", heard)
	r.resume(id)
	close(release)
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"))
	w.Equal(2, w.times(id, "build"))
}

func testResumeFailed(w *world) {
	cfg := w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("attempt %d", t.Attempt)
		if w.times(t.ID, "build") <= 4 {
			return nil, errors.New("no luck")
		}
		return nil, nil
	}})
	cfg.Attempts = 2
	r := w.start(cfg)
	id := r.enqueue("report")
	for _, times := range []int{2, 4} {
		w.eventually("it has failed for good", func() bool {
			t := w.get(id)
			return state(t) == loaded+", ERROR" && t.Due.IsZero()
		})
		w.Equal(times, w.times(id, "build"))
		w.no(r.Resume(w.ctx, id))
		w.yes(r.ResumeFailed(w.ctx, id))
	}
	w.becomes(id, isFinished)
	w.Equal([]string{"attempt 0", "attempt 1", "attempt 0", "attempt 1", "attempt 0"}, w.noted())
	w.no(r.ResumeFailed(w.ctx, id))
	t := w.get(id)
	w.Zero(t.Attempt)
	w.Empty(t.Failure)
}
