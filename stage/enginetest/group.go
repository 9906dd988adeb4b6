package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
)

// asks has an action of the Group ask f, and returns what came of it.
func asks[T any](r *run, f func(context.Context) (T, error)) (T, error) {
	r.w.t.Helper()
	var v T
	var err error
	done := make(chan struct{})
	spawn := func(s *act.Scheduler) {
		call := stage.Call(r.Engine, f)
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			d := call.Act(t)
			if d != act.Wait {
				v, err = call.Value, t.Err()
				close(done)
				return act.Done
			}
			return d
		}))
	}
	r.w.NoError(r.group.Schedulers()[1].Post(spawn))
	r.w.comes("an answer", done)
	return v, err
}

// testAsk has turns of an action call the methods of an engine.
func testAsk(w *world) {
	r := w.start(w.config(processors{"build": w.watches("build")}))
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.Suspend(ctx, id) }))
	w.becomes(id, isSuspended)
	t, err := asks(r, func(ctx context.Context) (stage.Task, error) { return r.Get(ctx, id) })
	w.NoError(err)
	w.Equal(isSuspended, state(t))
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.Resume(ctx, id) }))
	w.becomes(id, isFinished)
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.PauseKind(ctx, "short") }))
	n, err := asks(r, func(ctx context.Context) (stage.NewTask, error) { return r.NewTask("short", nil) })
	w.NoError(err)
	n.Key, n.After = "k", time.Millisecond
	ids, err := asks(r, func(ctx context.Context) ([]stage.ID, error) { return r.EnqueueAll(ctx, n, n) })
	w.NoError(err)
	w.Equal(ids[0], ids[1])
	counts, err := asks(r, func(ctx context.Context) ([]stage.Count, error) { return r.Counts(ctx) })
	w.NoError(err)
	w.ElementsMatch([]stage.Count{
		{Kind: "report", Stage: finished, Status: stage.Normal, N: 1},
		{Kind: "short", Stage: created, Status: stage.Normal, N: 1},
	}, counts)
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.ResumeKind(ctx, "short") }))
	w.becomes(ids[0], isFinished)
	purged, err := asks(r, func(ctx context.Context) (int, error) {
		return r.Purge(ctx, stage.Purge{Status: stage.Normal, Limit: 10})
	})
	w.NoError(err)
	w.Equal(2, purged)
	_, err = asks(r, func(ctx context.Context) (bool, error) { return r.Cancel(ctx, 4711) })
	w.ErrorIs(err, stage.ErrNotFound)
	_, err = asks(r, func(context.Context) (int, error) { return 0, errors.New("as it is") })
	w.ErrorContains(err, "as it is")
}

// testAskLong asks what takes longer than a lease.
func testAskLong(w *world) {
	cfg := w.config(nil)
	cfg.Lease = 100 * time.Millisecond
	r := w.start(cfg)
	_, err := asks(r, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	w.ErrorIs(err, context.DeadlineExceeded)
	n, err := asks(r, func(context.Context) (int, error) { return 42, nil })
	w.NoError(err)
	w.Equal(42, n)
}

// testAskBeside asks while three others wait for their answers: one more is answered.
func testAskBeside(w *world) {
	r := w.start(w.config(nil))
	release, asked := make(chan struct{}), make(chan struct{}, 3)
	defer close(release)
	for range cap(asked) {
		w.aside(func() {
			_, _ = asks(r, func(context.Context) (int, error) {
				asked <- struct{}{}
				<-release
				return 0, nil
			})
		})
	}
	for range cap(asked) {
		<-asked
	}
	n, err := asks(r, func(context.Context) (int, error) { return 42, nil })
	w.NoError(err)
	w.Equal(42, n)
}

// testSlots takes all places of the Group's executor, and all that the engine has for processors, for several leases.
func testSlots(w *world) {
	release := make(chan struct{})
	ps := processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
		<-release
		return nil, nil
	}}
	cfg := w.config(ps)
	cfg.Workers, cfg.Lease, cfg.Heartbeat = 2, kept, kept/10
	r := inAGroup(w, w.engine(cfg), act.Config{Offloads: 2})
	for range 2 {
		r.group.Schedulers()[0].Execute(func() { <-release })
	}
	one, two := r.enqueue("short"), r.enqueue("short")
	w.begins(one, "load", 1)
	w.begins(two, "load", 1)
	three := r.enqueue("short")
	time.Sleep(150 * time.Millisecond)
	w.Equal(isNew, w.see(three), "there is no room for it")
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.Suspend(ctx, three) }))
	w.start(w.elsewhere(ps))
	time.Sleep(2 * kept)
	close(release)
	for _, id := range []stage.ID{one, two} {
		w.becomes(id, isFinished)
		w.Equal(1, w.times(id, "load"), "its lease was not lost")
	}
	w.Equal(created+", SUSPENDED", w.see(three))
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.Resume(ctx, three) }))
	w.becomes(three, isFinished)
}

// counts is an Executor that cannot reserve goroutines.
type counts struct{ n atomic.Int32 }

func (x *counts) Execute(f func()) {
	x.n.Add(1)
	begin(f)
}

func testExecutor(w *world) {
	x := &counts{}
	r := inAGroup(w, w.engine(w.config(processors{"build": w.watches("build")})), act.Config{Executor: x})
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.yes(asks(r, func(ctx context.Context) (bool, error) { return r.Suspend(ctx, id) }))
	w.becomes(id, isSuspended)
	r.resume(id)
	w.becomes(id, isFinished)
	w.NoError(r.stop(shutdown10))
	w.Greater(x.n.Load(), int32(5), "everything goes through it")
}
