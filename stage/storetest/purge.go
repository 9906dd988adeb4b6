package storetest

import (
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

func testPurge(f *fixture) {
	purge := func(want int, status store.Status, age time.Duration, limit int) {
		f.t.Helper()
		n, err := f.a.Purge(f.ctx, status, age, limit)
		f.NoError(err)
		f.Equal(want, n, "%s", status)
	}
	left := func(want ...store.ID) {
		f.t.Helper()
		all, err := f.b.List(f.ctx, store.Selection{})
		f.NoError(err)
		f.Equal(append([]store.ID{}, want...), ids(all))
	}
	keyed := store.NewTask{Kind: "end", Stage: created, Key: "k"}
	first := f.enqueued(keyed)
	t1 := f.claim("end")
	second := f.claimed("end")
	f.NoError(f.a.Finish(f.ctx, second.Lease(), last, nil))
	f.advance(time.Second)
	f.NoError(f.a.Finish(f.ctx, t1.Lease(), last, nil))

	fresh := f.enqueue("new")
	held, suspended, again, failedTask, cancelled := f.claimed("held"), f.claimed("s"), f.claimed("again"), f.claimed("failed"), f.enqueue("cancelled")
	f.returned(suspended, store.Return{Stage: created, Status: store.Suspended})
	f.returned(failedTask, store.Return{Stage: created, Status: store.Failed})
	f.returned(again, store.Return{Stage: created, Status: store.Failed, Runs: true, After: time.Hour})
	f.yes(f.a.Cancel(f.ctx, cancelled))
	f.advance(time.Second)

	for _, status := range []store.Status{store.InProcessing, store.Suspended, store.Resumed, "", "DONE"} {
		purge(0, status, 0, 100)
	}
	purge(0, store.Normal, 0, 0)
	purge(0, store.Normal, 3*time.Second, 100)
	purge(0, store.Failed, time.Second+time.Millisecond, 100)
	left(first, second.ID, fresh, held.ID, suspended.ID, again.ID, failedTask.ID, cancelled)
	purge(1, store.Normal, time.Second, 1)
	left(first, fresh, held.ID, suspended.ID, again.ID, failedTask.ID, cancelled) // the second ended before
	purge(0, store.Normal, time.Second+time.Millisecond, 100)
	same, err := f.b.Enqueue(f.ctx, keyed)
	f.NoError(err)
	f.Equal([]store.ID{first}, same, "its key stands")
	purge(1, store.Normal, time.Second, 100)
	f.ErrorIs(failure(f.b.Get(f.ctx, first)), store.ErrNotFound)
	f.ErrorIs(f.a.Finish(f.ctx, t1.Lease(), last, nil), store.ErrLeaseLost)
	purge(1, store.Failed, time.Second, 100)
	purge(1, store.Canceled, 0, 100)
	left(fresh, held.ID, suspended.ID, again.ID)

	next := f.enqueued(keyed)
	f.Greater(next, cancelled, "its key has gone with it, and its number is not given again")
	counts, err := f.b.Counts(f.ctx)
	f.NoError(err)
	f.Len(counts, 5)
}
