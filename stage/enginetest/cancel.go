package enginetest

import (
	"context"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// testCancel cancels a task in every condition, and then asks for everything else in vain.
func testCancel(w *world) {
	cfg := w.config(processors{
		"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			switch string(t.Data) {
			case "failed":
				return nil, stage.Permanent(errors.New("never"))
			case "in back-off":
				return nil, errors.New("not yet")
			}
			return nil, nil
		},
		"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			if string(t.Data) == "running" {
				<-ctx.Done()
				w.note("%v", stage.CheckSuspended(ctx))
			}
			return nil, stage.CheckSuspended(ctx)
		},
	})
	cfg.Backoff = func(int) time.Duration { return never }
	r := w.start(cfg)
	for _, row := range []struct {
		name, before, after string
		answer              bool
	}{
		{"running", isBuilding, loaded + ", CANCELLED", true},
		{"failed", created + ", ERROR", created + ", CANCELLED", true},
		{"in back-off", created + ", ERROR", created + ", CANCELLED", true},
		{"suspended", created + ", SUSPENDED", created + ", CANCELLED", true},
		{"queued", isNew, created + ", CANCELLED", true},
		{"finished", isFinished, isFinished, false},
	} {
		id := w.prepared(row.name)
		w.becomes(id, row.before)
		if row.before == isBuilding { // as the store shows before the processor is called
			w.begins(id, "build", 1)
		}
		ok, err := r.Cancel(w.ctx, id)
		w.NoError(err)
		w.Equal(row.answer, ok, row.name)
		w.becomes(id, row.after)
		t := w.get(id)
		w.True(t.Due.IsZero(), row.name)
		for _, ask := range []func(context.Context, stage.ID) (bool, error){r.Cancel, r.Suspend, r.Resume, r.ResumeFailed} {
			ok, err := ask(w.ctx, id)
			w.NoError(err)
			w.False(ok, row.name)
		}
		w.Equal(t, w.get(id), row.name)
	}
	w.Equal([]string{stage.ErrCanceled.Error()}, w.noted())
}

// prepared is a task that is on its way to the condition.
func (w *world) prepared(condition string) stage.ID {
	w.t.Helper()
	kind := "report"
	if condition == "queued" || condition == "suspended" {
		kind = "unknown here"
	}
	id := w.enqueued(stage.NewTask{Kind: kind, Stage: created, Data: []byte(condition)})
	if condition == "suspended" {
		w.yes(w.other.Suspend(w.ctx, id))
	}
	return id
}
