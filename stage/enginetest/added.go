package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// testPages counts tasks that have ended in each way, goes through them in pages, and deletes them.
func testPages(w *world) {
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if string(t.Data) == "fails" {
			return nil, stage.Permanent(errors.New("no luck"))
		}
		return nil, nil
	}})
	r := w.start(cfg)
	add := func(n int, kind, data string, after time.Duration) (ids []stage.ID) {
		all := slices.Repeat([]stage.NewTask{{Kind: kind, Stage: created, Data: []byte(data), After: after}}, n)
		ids, err := r.EnqueueAll(w.ctx, all...)
		w.NoError(err)
		return ids
	}
	fail, cancelled, short, long := add(4, "short", "fails", 0), add(3, "short", "", never), add(6, "short", "", 0), add(5, "report", "", 0)
	for _, id := range cancelled {
		w.yes(r.Cancel(w.ctx, id))
	}
	all := slices.Concat(fail, cancelled, short, long)
	for _, id := range all {
		_, err := r.Await(w.ctx, id)
		w.NoError(err)
	}
	rows := []stage.Count{
		{Kind: "short", Stage: created, Status: stage.Error, N: len(fail)},
		{Kind: "short", Stage: created, Status: stage.Cancelled, N: len(cancelled)},
		{Kind: "short", Stage: finished, Status: stage.Normal, N: len(short)},
		{Kind: "report", Stage: finished, Status: stage.Normal, N: len(long)},
	}
	counts, err := r.Counts(w.ctx)
	w.NoError(err)
	w.ElementsMatch(rows, counts)

	pages := func(sel stage.Selection) (ids []stage.ID) {
		for sel.Newest, sel.Limit = true, 4; ; sel.Before = ids[len(ids)-1] {
			page, err := r.List(w.ctx, sel)
			w.NoError(err)
			for _, t := range page {
				ids = append(ids, t.ID)
			}
			if len(page) < sel.Limit {
				slices.Reverse(ids)
				return ids
			}
		}
	}
	w.Equal(all, pages(stage.Selection{}))
	w.Equal(all, pages(stage.Selection{Ended: true}))
	w.Empty(pages(stage.Selection{Running: true}))
	w.Equal(fail, pages(stage.Selection{Status: stage.Error}))
	w.Equal(long, pages(stage.Selection{Kind: "report"}))

	for _, row := range []struct {
		status stage.Status
		n      int
	}{{stage.Error, len(fail)}, {stage.Cancelled, len(cancelled)}, {stage.Normal, len(short) + len(long)}} {
		n, err := r.Purge(w.ctx, stage.Purge{Status: row.status, Limit: 100})
		w.NoError(err)
		w.Equal(row.n, n, row.status)
	}
	counts, err = r.Counts(w.ctx)
	w.NoError(err)
	w.Empty(counts)
}
