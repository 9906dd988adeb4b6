package enginetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
)

// end is what a wait for a task has brought.
type end struct {
	task stage.Task
	err  error
}

// awaits begins to wait for a task in each way: on a goroutine, and in a Group also in an action of it. get returns the end,
// which is the same.
func (w *world) awaits(ctx context.Context, e *stage.Engine, g *act.Group, id stage.ID) (get func() (stage.Task, error)) {
	c := make(chan end, 1)
	ways := []chan end{c}
	w.aside(func() {
		t, err := e.Await(ctx, id)
		c <- end{t, err}
	})
	if g != nil {
		c := make(chan end, 1)
		ways = append(ways, c)
		w.NoError(g.Schedulers()[1].Post(func(s *act.Scheduler) {
			f := e.Future(ctx, s, id)
			f.Handle(func(t stage.Task, err error) { c <- end{t, err} })
		}))
	}
	return func() (stage.Task, error) {
		w.t.Helper()
		var all []end
		for _, c := range ways {
			select {
			case x := <-c:
				all = append(all, x)
			case <-time.After(patience):
				w.FailNow("the wait does not end")
			}
			w.Equal(all[0], all[len(all)-1])
		}
		return all[0].task, all[0].err
	}
}

// endsAs waits for a task that is to end like that.
func (w *world) endsAs(get func() (stage.Task, error), id stage.ID, what string, err error) {
	w.t.Helper()
	t, wrong := get()
	w.NoError(wrong)
	w.Equal(what, state(t))
	w.True(t.Ended())
	w.Equal(w.get(id), t)
	w.ErrorIs(t.Err(), err)
}

// awaited are processors whose tasks end in each way.
func (w *world) awaited() processors {
	return processors{"load": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		switch string(t.Data) {
		case "fails":
			return nil, stage.Permanent(errors.New("no luck"))
		case "is stopped":
			<-ctx.Done()
		case "suspends itself":
			if w.times(t.ID, "load") == 1 {
				return nil, stage.ErrSuspended
			}
		}
		return func(_ context.Context, tx stage.Tx) error {
			tx.SetData([]byte("the result"))
			return nil
		}, nil
	}}
}

// testAwaitHere waits for tasks that end under the engine, or that it cancels, without looks but at the beginning.
func testAwaitHere(w *world) {
	cfg := w.config(w.awaited())
	cfg.Poll = never
	r := w.start(cfg)
	begin := func(data string) (stage.ID, func() (stage.Task, error)) {
		n, err := r.NewTask("short", []byte(data))
		w.NoError(err)
		if data == "waits" {
			n.After = never
		}
		ids, err := r.EnqueueAll(w.ctx, n)
		w.NoError(err)
		return ids[0], w.awaits(w.ctx, r.Engine, r.group, ids[0])
	}
	id, get := begin("finishes")
	w.endsAs(get, id, isFinished, nil)
	w.Equal("the result", string(w.get(id).Data))
	w.endsAs(w.awaits(w.ctx, r.Engine, r.group, id), id, isFinished, nil)

	id, get = begin("fails")
	w.endsAs(get, id, created+", ERROR", stage.ErrFailed)

	id, get = begin("is stopped")
	w.begins(id, "load", 1)
	w.yes(r.Cancel(w.ctx, id))
	w.endsAs(get, id, created+", CANCELLED", stage.ErrCanceled)

	id, get = begin("waits")
	w.yes(r.Cancel(w.ctx, id))
	w.endsAs(get, id, created+", CANCELLED", stage.ErrCanceled)

	id, get = begin("suspends itself")
	w.becomes(id, created+", SUSPENDED")
	w.yes(r.Resume(w.ctx, id))
	w.endsAs(get, id, isFinished, nil)

	id, get = begin("fails")
	w.endsAs(get, id, created+", ERROR", stage.ErrFailed)
	w.yes(r.ResumeFailed(w.ctx, id))
	w.endsAs(w.awaits(w.ctx, r.Engine, r.group, id), id, created+", ERROR", stage.ErrFailed)
}

// testAwaitElsewhere waits through an engine that does not run, and through one that does, for what others do.
func testAwaitElsewhere(w *world) {
	other := w.start(w.elsewhere(w.awaited()))
	cfg := w.config(nil)
	cfg.Kinds = map[string]stage.Kind{"none": {Chain: short}}
	r := w.start(cfg)
	idle := w.engine(cfg)
	begin := func(n stage.NewTask) (stage.ID, func(what string, err error)) {
		id := w.enqueued(n)
		one, two := w.awaits(w.ctx, r.Engine, r.group, id), w.awaits(w.ctx, idle, r.group, id)
		return id, func(what string, err error) {
			w.t.Helper()
			w.endsAs(one, id, what, err)
			w.endsAs(two, id, what, err)
		}
	}
	new := func(data string) stage.NewTask {
		return stage.NewTask{Kind: "short", Stage: created, Data: []byte(data)}
	}
	_, ends := begin(new("finishes"))
	ends(isFinished, nil)
	_, ends = begin(new("fails"))
	ends(created+", ERROR", stage.ErrFailed)
	id, ends := begin(new("is stopped"))
	w.begins(id, "load", 1)
	w.yes(other.Cancel(w.ctx, id))
	ends(created+", CANCELLED", stage.ErrCanceled)
	id, ends = begin(stage.NewTask{Kind: "unknown", Stage: created})
	w.yes(idle.Cancel(w.ctx, id))
	ends(created+", CANCELLED", stage.ErrCanceled)
	id, ends = begin(new("suspends itself"))
	w.becomes(id, created+", SUSPENDED")
	w.yes(w.other.Resume(w.ctx, id, false))
	ends(isFinished, nil)
}

// purges deletes tasks that are cancelled, before a List sees them.
type purges struct {
	stage.Store
	w  *world
	mu sync.Mutex
}

func (s *purges) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.List(ctx, sel)
}

func (s *purges) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, err := s.Store.Cancel(ctx, id)
	n, wrong := s.Purge(ctx, stage.Purge{Status: stage.Cancelled, Limit: 1})
	s.w.NoError(wrong)
	s.w.Equal(1, n)
	return ok, err
}

// testAwaitInVain waits for tasks that are not there, that are deleted meanwhile, and until the context ends.
func testAwaitInVain(w *world) {
	cfg := w.config(nil)
	cfg.Store = &purges{Store: w.store, w: w}
	r := w.start(cfg)
	gone := func(get func() (stage.Task, error)) {
		w.t.Helper()
		t, err := get()
		w.Zero(t)
		w.ErrorIs(err, stage.ErrNotFound)
	}
	gone(w.awaits(w.ctx, r.Engine, r.group, 0))
	gone(w.awaits(w.ctx, r.Engine, r.group, 4711))
	id := w.enqueue("unknown")
	get := w.awaits(w.ctx, r.Engine, r.group, id)
	w.yes(r.Cancel(w.ctx, id))
	gone(get)

	id = w.enqueue("unknown")
	why := errors.New("no more patience")
	ctx, cancel := context.WithCancelCause(w.ctx)
	get = w.awaits(ctx, r.Engine, r.group, id)
	other := w.awaits(w.ctx, r.Engine, r.group, id)
	cancel(why)
	for range 2 { // the second is in vain from the beginning
		t, err := get()
		w.Zero(t)
		w.Equal(why, err)
		get = w.awaits(ctx, r.Engine, r.group, id)
	}
	_, err := get()
	w.Equal(why, err)
	w.yes(w.other.Cancel(w.ctx, id))
	t, err := other()
	w.NoError(err)
	w.Equal(created+", CANCELLED", state(t))
}

// testAwaitStopped has an engine stop while callers wait. Another one finishes the task.
func testAwaitStopped(w *world) {
	cfg := w.config(w.awaited())
	cfg.Kinds = map[string]stage.Kind{"none": {Chain: short}}
	r := w.start(cfg)
	id := w.enqueue("short")
	get := w.awaits(w.ctx, r.Engine, nil, id)
	w.NoError(r.stop(shutdown10))
	w.start(w.elsewhere(w.awaited()))
	w.endsAs(get, id, isFinished, nil)
}
