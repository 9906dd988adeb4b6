package enginetest

import (
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// testDueLater has tasks that are due at once, later, and not during the test: by After and by At.
func testDueLater(w *world) {
	const later = 300 * time.Millisecond
	elapsed := since()
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if string(t.Data) == "later" {
			w.note("early: %t", elapsed() < later-time.Millisecond) // stores have whole milliseconds
		}
		return nil, nil
	}})
	r := w.start(cfg)
	at := time.Now().Add(never)
	ids, err := r.EnqueueAll(w.ctx,
		stage.NewTask{Kind: "short", Stage: created, Data: []byte("later"), After: later},
		stage.NewTask{Kind: "short", Stage: created, After: never},
		stage.NewTask{Kind: "short", Stage: created, At: at},
		stage.NewTask{Kind: "short", Stage: created, At: time.Now().Add(-never)},
		stage.NewTask{Kind: "short", Stage: created})
	w.NoError(err)
	w.become([]stage.ID{ids[0], ids[3], ids[4]}, isFinished)
	w.Equal([]string{"early: false"}, w.noted())
	for _, id := range ids[1:3] {
		t := w.get(id)
		w.Equal(isNew, state(t))
		w.WithinDuration(at, t.Due, patience)
		w.yes(r.Cancel(w.ctx, id)) // also what is not due
	}
}

// testKeyOfEngines has engines that enqueue the same at once, again and again, also when it has finished. It is run once.
func testKeyOfEngines(w *world) {
	const times = 10
	cfg := w.config(nil)
	engines := []*run{w.start(cfg), w.start(cfg), w.start(cfg)}
	ids := make([]stage.ID, len(engines)*times)
	enqueue := func() {
		together(len(engines), func(i int) {
			for k := range times {
				n, err := engines[i].NewTask("report", nil)
				w.NoError(err)
				n.Key = "sales"
				all, err := engines[i].EnqueueAll(w.ctx, n)
				w.NoError(err)
				ids[i*times+k] = all[0]
			}
		})
	}
	enqueue()
	w.becomes(ids[0], isFinished)
	enqueue()
	for _, id := range ids {
		w.Equal(ids[0], id)
	}
	w.Equal(1, w.times(ids[0], "load"))
	w.Equal(1, w.times(ids[0], "build"))
	tasks, err := w.other.List(w.ctx, stage.Selection{})
	w.NoError(err)
	w.Len(tasks, 1)
}

// sum is the data of testTyped.
type sum struct{ A, B, Sum int }

// testTyped has a value that goes from stage to stage, and data that is no such value.
func testTyped(w *world) {
	sums := stage.Typed[sum]{Kind: "report"}
	cfg := w.config(nil)
	cfg.Attempts = 1
	cfg.Provider = stage.Processors{
		"load": sums.Processor(func(_ context.Context, _ *stage.Task, v sum) (stage.Commit, error) {
			v.Sum = v.A + v.B
			return func(_ context.Context, tx stage.Tx) error { return sums.SetData(tx, v) }, nil
		}),
		"build": sums.Processor(func(_ context.Context, _ *stage.Task, v sum) (stage.Commit, error) {
			v.Sum *= 10
			return func(_ context.Context, tx stage.Tx) error { return sums.SetData(tx, v) }, nil
		}),
	}
	r := w.start(cfg)
	id, err := sums.Enqueue(w.ctx, r.Engine, sum{A: 3, B: 4})
	w.NoError(err)
	v, err := sums.Await(w.ctx, r.Engine, id)
	w.NoError(err)
	w.Equal(sum{3, 4, 70}, v)

	id = w.enqueued(stage.NewTask{Kind: "report", Stage: created, Data: []byte("seven")})
	_, err = sums.Await(w.ctx, r.Engine, id)
	w.ErrorIs(err, stage.ErrFailed)
	w.ErrorContains(err, fmt.Sprint("stage: data of report ", id, ": invalid character"))
}
