package enginetest

import (
	"context"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// testRetention has two engines that keep none of the tasks that have finished, and those that were cancelled for long.
func testRetention(w *world) {
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if string(t.Data) == "fails" {
			return nil, stage.Permanent(errors.New("never"))
		}
		return nil, nil
	}})
	cfg.Retention = map[stage.Status]time.Duration{stage.Normal: 0, stage.Cancelled: never}
	r, _ := w.start(cfg), w.start(cfg)
	cancelled := w.enqueue("unknown")
	w.yes(r.Cancel(w.ctx, cancelled))
	waiting := w.enqueue("unknown")
	failed, err := r.Enqueue(w.ctx, "short", []byte("fails"))
	w.NoError(err)
	for range 3 {
		r.enqueue("short")
	}
	w.becomes(failed, created+", ERROR")
	w.eventually("what has finished is deleted", func() bool {
		left, err := w.other.List(w.ctx, stage.Selection{})
		w.NoError(err)
		return len(left) == 3
	})
	w.Equal(created+", CANCELLED", w.see(cancelled))
	w.Equal(isNew, w.see(waiting))
	w.Equal(created+", ERROR", w.see(failed))
}
