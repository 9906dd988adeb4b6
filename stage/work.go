package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// work is a claimed task on its way along its chain, one step after another. Its host decides on which goroutine each
// step is taken; a step may block. Only between two steps can a work be dropped.
//
//	claimed ─▶ begin ─▶ process ─▶ finish ─▶ enter ─▶ process ─▶ … ─▶ finish, and over
//	              │        │          │         │
//	              └────────┴──────────┴─────────┴──────▶ giveBack, and over
//
// A step that finds that the lease is lost is the last.
type work struct {
	e     *Engine
	kind  string
	terms Kind
	lease store.Lease
	name  string
	now   func() time.Duration // the clock of the host that has claimed it
	log   *zap.Logger

	// Only for the goroutine that takes the steps.
	task    store.Task // as it is in the store
	next    step       // nil if the work is over
	commit  store.Commit
	back    store.Return
	refused int  // how often in a row the store has not answered
	due     bool // the task has been given back, and is due at once

	// held ends when the lease is lost; ctx, the processor's, ends then and when the stage has to stop.
	held context.Context
	ctx  context.Context
	lose context.CancelCauseFunc
	stop context.CancelCauseFunc

	// Under the engine's mu.
	until   time.Duration // the end of the lease, by the clock now
	parting bool          // the task is being given back, so its lease ends without being lost
	leaves  bool          // the store is only told of its end: it keeps no place among the Workers
	at      string        // task.Stage, for other goroutines
	notes   *notes        // of the latest try, until its stage has finished
}

// step does one thing, and returns the next step and after how long to take it.
type step func(*work) (step, time.Duration)

func newWork(e *Engine, t store.Task, now func() time.Duration, until time.Duration) *work {
	w := &work{
		e: e, kind: t.Kind, terms: e.cfg.Kinds[t.Kind], lease: t.Lease(), name: t.String(), now: now, task: t, next: (*work).begin,
		until: until, at: t.Stage,
	}
	w.held, w.lose = context.WithCancelCause(context.Background())
	w.ctx, w.stop = context.WithCancelCause(w.held)
	w.log = e.cfg.Logger.With(zap.String("kind", t.Kind), zap.Int64("task", int64(t.ID)))
	return w
}

// String names the task and its stage.
func (w *work) String() string {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.text()
}

// text is String, under the engine's mu.
func (w *work) text() string { return w.name + " at " + w.at }

// step takes the next step, and returns after how long to take the one after it. If the processor calls Goexit, step
// does not return, and another goroutine takes the step that is next then.
func (w *work) step() (after time.Duration) {
	f := w.next
	w.next = (*work).escaped
	w.next, after = f(w)
	return after
}

func (w *work) over() bool { return w.next == nil }

// begin decides by the stage at which the claim has found the task.
func (w *work) begin() (step, time.Duration) {
	s, err := w.terms.Chain.at(w.task.Stage, 0)
	switch {
	case err != nil:
		return w.failed(err) // and an engine of another release may know the stage
	case s.dynamic():
		return (*work).process, 0
	case s == w.terms.Chain.last():
		return w.giveBackAs(w.unharmed(store.Normal))
	case w.task.Attempt >= w.terms.Attempts:
		return w.failedFor(w.task.Attempt, Permanent(errWorkerLost))
	}
	return (*work).enter, 0
}

func (w *work) enter() (step, time.Duration) {
	if why := context.Cause(w.ctx); why != nil {
		return w.stopped(why)
	}
	next, err := w.terms.Chain.at(w.task.Stage, +1)
	if err != nil {
		return w.failed(Permanent(err))
	}
	ctx, cancel := w.call()
	defer cancel()
	t, err := w.e.cfg.Store.Enter(ctx, w.lease, next.name, w.task.Attempt)
	switch {
	case err == nil:
		w.refused = 0
		w.reach(t)
		return (*work).process, 0
	case refusal(err):
		return w.stopped(err)
	case errors.Is(err, store.ErrPermanent):
		return w.failed(err)
	}
	return w.again((*work).enter, err)
}

func (w *work) process() (step, time.Duration) {
	if why := context.Cause(w.ctx); why != nil {
		return w.stopped(why)
	}
	ctx, cancel := w.ctx, func() {}
	if w.terms.Timeout > 0 {
		late := fmt.Errorf("%w: %v", ErrTimeout, w.terms.Timeout)
		ctx, cancel = context.WithTimeoutCause(ctx, w.terms.Timeout, late)
	}
	defer cancel()
	commit, err := w.compute(ctx)
	if why := context.Cause(w.ctx); why != nil {
		return w.stopped(why) // whatever it has returned
	}
	if late := context.Cause(ctx); late != nil {
		return w.failed(errors.Join(late, err))
	}
	if err != nil {
		return w.endedBy(err)
	}
	w.commit = commit
	return (*work).finish, 0
}

// compute calls the processor in its middleware. A panic is an error.
func (w *work) compute(ctx context.Context) (commit store.Commit, err error) {
	err = guarded(func() error {
		s, err := w.terms.Chain.at(w.task.Stage, 0)
		if err != nil {
			return err
		}
		p := w.e.cfg.Processors[s.processor]
		if p == nil {
			return fmt.Errorf("stage: no processor %q", s.processor)
		}
		t := w.task // the processor's own
		if t.ProgressStage != t.Stage {
			t.Progress, t.ProgressStage = nil, ""
		}
		n := w.noting(&notes{stage: t.Stage})
		defer n.end()
		ctx := context.WithValue(ctx, noted{}, n)
		for _, m := range slices.Backward(w.e.cfg.Middleware) {
			p = m(p)
		}
		commit, err = p(ctx, &t)
		return err
	})
	return commit, err
}

// finish makes the store write the results of the processor, together with the static stage. From here on only the
// store refuses because of a request: whether the stage has finished is not known before it answers.
func (w *work) finish() (step, time.Duration) {
	next, err := w.terms.Chain.at(w.task.Stage, +1)
	if err != nil {
		return w.failed(Permanent(err))
	}
	last := next == w.terms.Chain.last()
	if last {
		w.part() // even if there is an error: the next step gives the task back, or asks again
	}
	var refused error // the commit's last error, not the store's
	commit := w.commit
	if commit != nil {
		commit = func(ctx context.Context, tx store.Tx) error {
			refused = guarded(func() error { return w.commit(ctx, tx) })
			return refused
		}
	}
	ctx, cancel := w.call()
	defer cancel()
	err = w.e.cfg.Store.Finish(ctx, w.lease, store.Passage{From: w.task.Stage, To: next.name, Last: last}, commit)
	if err == nil {
		w.e.counts.finished.Add(1)
	}
	switch {
	case err == nil && last:
		return w.left(store.Return{Stage: next.name, Status: store.Normal})
	case err == nil:
		w.refused, w.commit = 0, nil
		w.task.Stage, w.task.Attempt, w.task.Failure = next.name, 0, ""
		w.task.Progress, w.task.ProgressStage = nil, ""
		w.noting(nil)
		w.reach(w.task)
		return (*work).enter, 0
	case errors.Is(err, store.ErrUnavailable), refused != nil && ctx.Err() != nil && w.held.Err() == nil:
		return w.again((*work).finish, err)
	case refused != nil:
		return w.endedBy(refused)
	case refusal(err):
		return w.stopped(err)
	case errors.Is(err, store.ErrPermanent): // the store's, of a commit that has spoilt the transaction
		return w.failed(err)
	}
	return w.again((*work).finish, err)
}

// endedBy handles the error of a processor, or of its commit.
func (w *work) endedBy(err error) (step, time.Duration) {
	if why := context.Cause(w.ctx); why != nil {
		return w.stopped(why)
	}
	if errors.Is(err, store.ErrSuspended) {
		return w.giveBackAs(w.unharmed(store.Suspended))
	}
	if after, ok := errors.AsType[snooze](err); ok {
		r := w.unharmed(store.Normal)
		r.Runs, r.After = true, time.Duration(after)
		return w.giveBackAs(r)
	}
	return w.failed(err)
}

// errWorkerLost is the failure of a task whose workers have been lost too often: perhaps the task kills them.
var errWorkerLost = errors.New("stage: too many workers were lost with it")

// failed gives the task back with the failure of its stage.
func (w *work) failed(err error) (step, time.Duration) { return w.failedFor(w.task.Attempt+1, err) }

// failedFor is failed, with the number of the attempt.
func (w *work) failedFor(attempt int, err error) (step, time.Duration) {
	w.e.counts.failed.Add(1)
	r := store.Return{Status: store.Failed, Attempt: attempt, Failure: failure(err)}
	if !errors.Is(err, store.ErrPermanent) && attempt < w.terms.Attempts {
		r.Runs, r.After = true, w.backoff(attempt)
	}
	fields := []zap.Field{zap.String("stage", w.task.Stage), zap.Int("attempt", attempt), zap.Bool("again", r.Runs), zap.Error(err)}
	if p := (*act.Panic)(nil); errors.As(err, &p) {
		w.log.Error("a stage has panicked", append(fields, zap.ByteString("stack", p.Stack))...)
	} else {
		w.log.Warn("a stage has failed", fields...)
	}
	return w.giveBackAs(r)
}

// failure returns the text of err and, if that is a panic, the stack below the call of panic.
func failure(err error) string {
	text := fmt.Sprint(err) // which survives an Error that panics
	if p, ok := errors.AsType[*act.Panic](err); ok {
		stack := string(p.Stack)
		if _, below, ok := strings.Cut(stack, "\npanic("); ok { // above it there are only functions that recover
			_, below, _ = strings.Cut(below, "\n")
			_, stack, _ = strings.Cut(below, "\n")
		}
		text += "\n\n" + stack
	}
	return text[:min(len(text), transition.MaxFailure)]
}

// backoff calls Backoff. If that panics, the default takes its place.
func (w *work) backoff(n int) (d time.Duration) {
	err := guarded(func() error { d = w.terms.Backoff(n); return nil })
	if err != nil {
		w.log.Error("Backoff has panicked", zap.Error(err))
		d = doubling(n)
	}
	return max(0, d)
}

// escaped is the step after a Goexit.
func (w *work) escaped() (step, time.Duration) { return w.endedBy(errGoexit) }

var errGoexit = errors.New("stage: the processor has called runtime.Goexit")

// stopped gives up the stage, which counts neither as an attempt nor as a failure.
func (w *work) stopped(why error) (step, time.Duration) {
	r := w.unharmed(store.Normal)
	r.Runs = true
	switch {
	case errors.Is(why, store.ErrLeaseLost):
		return w.lost()
	case errors.Is(why, store.ErrSuspended):
		r.Status = store.Resumed // if the request was withdrawn; else the store makes it Suspended
	}
	return w.giveBackAs(r)
}

// unharmed returns a Return with the attempt and failure that the task has.
func (w *work) unharmed(s store.Status) store.Return {
	return store.Return{Status: s, Attempt: w.task.Attempt, Failure: w.task.Failure}
}

// giveBackAs gives the task back at its last static stage.
func (w *work) giveBackAs(r store.Return) (step, time.Duration) {
	r.Stage = w.task.Stage
	if s, err := w.terms.Chain.at(r.Stage, 0); err == nil && s.dynamic() {
		before, _ := w.terms.Chain.at(r.Stage, -1)
		r.Stage = before.name
	}
	r.Progress = w.noted().latest()
	w.back, w.commit = r, nil
	return (*work).giveBack, 0
}

// giveBack ends the lease, and with it the work.
func (w *work) giveBack() (step, time.Duration) {
	w.part()
	ctx, cancel := w.call()
	defer cancel()
	status, err := w.e.cfg.Store.Return(ctx, w.lease, w.back)
	switch {
	case err == nil:
		w.back.Status = status
		w.due = w.back.Runs && w.back.After == 0 && status != store.Suspended && status != store.Canceled
		return w.left(w.back)
	case refusal(err), errors.Is(err, store.ErrPermanent):
		return w.lost()
	}
	return w.again((*work).giveBack, err)
}

// left ends the work when the store has the task as r says. If that is the end of the task, callers that wait for it are to be
// told, and it calls Config.OnEnd, in the same step, so that a shutdown cannot come in between.
func (w *work) left(r store.Return) (step, time.Duration) {
	if r.Status == store.Suspended {
		w.e.counts.suspended.Add(1)
	}
	continues := r.Status == store.Suspended || r.Runs && r.Status != store.Canceled
	if !continues {
		w.e.mayHaveEnded(w.lease.Task)
	}
	if w.e.cfg.OnEnd == nil || continues {
		return nil, 0
	}
	w.next = nil               // even if OnEnd calls Goexit
	w.lose(store.ErrLeaseLost) // so no heartbeat is sent for it
	t := w.task
	t.Stage, t.Status, t.Attempt, t.Failure = r.Stage, r.Status, r.Attempt, r.Failure
	t.Wanted, t.Due, t.Changed = "", time.Time{}, time.Time{}
	if p := r.Progress; p.Stage != "" || t.Finished() {
		t.Progress, t.ProgressStage = p.Data, p.Stage
	}
	w.reach(t)
	w.e.mu.Lock()
	w.leave(false)
	w.e.mu.Unlock()
	if err := guarded(func() error { w.e.cfg.OnEnd(t); return nil }); err != nil {
		w.log.Error("Config.OnEnd has panicked", panics.Fields(err)...)
	}
	return nil, 0
}

// lost ends the work: another worker may hold the task.
func (w *work) lost() (step, time.Duration) {
	w.e.counts.lost.Add(1)
	w.log.Warn("a lease is lost", zap.String("stage", w.task.Stage), zap.Int64("token", w.lease.Token))
	return nil, 0
}

// call returns the context for a call of the store. A call that is not answered for the time of a lease is made again: perhaps
// its connection is silent, and others, on which the lease is renewed, are not.
func (w *work) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.held, w.e.cfg.Lease)
}

// again repeats a step that the store has not answered, after 50 ms, later after 1 s, as long as the lease lasts.
func (w *work) again(same step, err error) (step, time.Duration) {
	if context.Cause(w.held) != nil || w.expired() {
		return w.lost()
	}
	w.refused++
	w.e.unanswered(w.log, "step at "+w.task.Stage, err)
	return same, min(time.Second, 50*time.Millisecond<<min(w.refused-1, 5))
}

// refusal reports whether err is an answer of the store, and no failure of it.
func refusal(err error) bool {
	return errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrSuspended) || errors.Is(err, store.ErrCanceled)
}

// reach notes the task as it is in the store now.
func (w *work) reach(t store.Task) {
	w.task = t
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.at = t.Stage
}

// noting begins with the notes of another try, or with none.
func (w *work) noting(n *notes) *notes {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.notes = n
	return n
}

// noted returns the notes of the latest try, unless its stage has finished.
func (w *work) noted() *notes {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.notes
}

// part notes that the task is being given back.
func (w *work) part() {
	w.e.mu.Lock()
	w.parting = true
	if w.commit == nil {
		w.leave(true)
	}
	ring := w.leaves && w.e.more
	w.e.mu.Unlock()
	if ring {
		w.e.where().ring()
	}
}

// leave notes whether the task keeps no place among the Workers. Under the engine's mu.
func (w *work) leave(leaves bool) {
	switch {
	case leaves == w.leaves:
		return
	case leaves:
		w.e.leaving++
	default:
		w.e.leaving--
	}
	w.leaves = leaves
}

// guarded calls f, and makes an error of its panic.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panics.Recovered(v)
		}
	}()
	return f()
}
