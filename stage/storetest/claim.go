package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

func testClaim(f *fixture) {
	id := f.enqueue("report")
	f.advance(time.Second)
	was := f.get(id)
	now := was.Created.Add(time.Second)
	tasks, err := f.a.Claim(f.ctx, store.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 1, Length: length,
		Shows: []store.Show{{Kind: "report", Found: created, Stage: working, Attempts: 3}},
	})
	f.NoError(err)
	f.Len(tasks, 1)
	want := was
	want.Stage, want.Status, want.Attempt = working, store.InProcessing, 3
	want.Worker, want.Token = "ann", tasks[0].Token
	want.Due, want.Changed = now.Add(length), now
	f.Equal(plain(want), plain(tasks[0]))
	f.Positive(want.Token)
	f.same(want)
	f.Empty(f.claims(1, "report"), "it is given once")
	f.same(want)
}

func testClaimOrder(f *fixture) {
	claim := func(worker string) store.Task {
		tasks, err := f.a.Claim(f.ctx, store.Claim{Worker: worker, Kinds: []string{"a"}, Limit: 1, Length: length})
		f.NoError(err)
		f.Len(tasks, 1)
		return tasks[0]
	}
	giveBack := func(t store.Task, status store.Status, after time.Duration) {
		f.returned(t, store.Return{Stage: created, Status: status, Runs: true, After: after})
	}
	first := f.enqueue("a")
	f.advance(time.Millisecond)
	f.enqueue("a")
	third := f.enqueue("a")
	fourth := f.enqueue("a")
	backlog := f.enqueue("a") // due before all others

	lost := claim("left by it") // the first; due when its lease has ended, in 10 s
	f.Equal(first, lost.ID)
	failed := claim("fails")
	giveBack(failed, store.Failed, 5*time.Second)
	interrupted := claim("stops")
	f.Equal(third, interrupted.ID, "that one rests")
	giveBack(interrupted, store.Normal, 7*time.Second)
	f.yes(f.suspend(fourth))
	f.advance(6 * time.Second)
	f.yes(f.resume(fourth)) // due in 6 s, and never claimed
	f.advance(5 * time.Second)
	other := f.enqueue("b") // due in 11 s
	fresh := f.enqueue("a")

	order := []store.ID{failed.ID, fourth, interrupted.ID, lost.ID, backlog, other, fresh}
	f.Equal(order[:2], ids(f.claims(2, "b", "a")), "the longest due first, but new ones last")
	f.Equal(order[2:5], ids(f.claims(3, "a", "b")), "whatever the order of the kinds")
	f.Equal(order[5:], ids(f.claims(3, "a", "b")))

	f.advance(length) // all at once: the lower numbers first
	f.Equal([]store.ID{first, failed.ID, third, fourth, backlog, other, fresh}, ids(f.claims(10, "b", "a")))

	// Tasks that rest do not delay new ones, and a request that was withdrawn has no effect on a new task.
	giveBack(f.claimed("c"), store.Failed, time.Hour)
	new1, new2 := f.enqueue("c"), f.enqueue("c")
	f.Equal([]store.ID{new1, new2}, ids(f.claims(10, "c")))
}

// testPriorities has old and new tasks of three kinds.
func testPriorities(f *fixture) {
	again, lost := f.claimed("low"), f.claimed("mid")
	f.returned(again, store.Return{Stage: created, Status: store.Failed, Runs: true})
	f.advance(length)
	old := f.returned(f.claimed("high"), store.Return{Stage: created, Status: store.Normal, Runs: true})
	f.advance(time.Second)
	low, mid1, high1 := f.enqueue("low"), f.enqueue("mid"), f.enqueue("high")
	mid2, high2, high3 := f.enqueue("mid"), f.enqueue("high"), f.enqueue("high")
	claim := func(limit int, most, priorities map[string]int) []store.ID {
		f.t.Helper()
		tasks, err := f.a.Claim(f.ctx, store.Claim{
			Kinds: []string{"low", "high", "mid"}, Limit: limit, Most: most, Priorities: priorities, Length: time.Hour,
		})
		f.NoError(err)
		return ids(tasks)
	}
	priorities := map[string]int{"low": -1, "high": 1, "none": 9}
	f.Equal([]store.ID{old.ID, high1}, claim(2, nil, priorities), "old ones of the same priority first")
	f.Equal([]store.ID{high2}, claim(1, nil, priorities), "those of lower ones leave room for new ones")
	f.Equal([]store.ID{lost.ID}, claim(1, map[string]int{"high": 0}, priorities), "and those of higher ones do not")
	f.Equal([]store.ID{high3, mid1}, claim(2, map[string]int{"mid": 1}, priorities))
	f.Equal([]store.ID{again.ID}, claim(1, nil, map[string]int{"low": 0}), "0 is as good as none")
	f.Equal([]store.ID{low, mid2}, claim(9, nil, map[string]int{"low": math.MaxInt, "mid": math.MinInt}))
}

// testClaimShows has a row for each stage, lost and not, but for one kind.
func testClaimShows(f *fixture) {
	claim := store.Claim{
		Worker: "ann", Kinds: []string{"a", "b"}, Limit: 10, Length: length,
		Shows: []store.Show{
			{Kind: "a", Found: "X", Stage: "XING", Attempts: 2},
			{Kind: "a", Found: "XING", Lost: true, Stage: "X", Attempts: 1},
			{Kind: "a", Found: "Y", Lost: true, Stage: "YING"},
			{Kind: "c", Found: "X", Stage: "of another kind", Attempts: 9},
			{Kind: "b", Found: "Y", Stage: "of another stage", Attempts: 9},
		},
	}
	x := f.enqueued(store.NewTask{Kind: "a", Stage: "X"})
	y := f.enqueued(store.NewTask{Kind: "a", Stage: "Y"})
	b := f.enqueued(store.NewTask{Kind: "b", Stage: "X"})
	shows := func(want ...string) {
		f.t.Helper()
		tasks, err := f.a.Claim(f.ctx, claim)
		f.NoError(err)
		var got []string
		for _, t := range tasks {
			f.same(t)
			got = append(got, fmt.Sprintf("%d at %s, %d", t.ID, t.Stage, t.Attempt))
		}
		f.Equal(want, got)
	}
	at := func(id store.ID, s string, attempt int) string { return fmt.Sprintf("%d at %s, %d", id, s, attempt) }
	shows(at(x, "XING", 2), at(y, "Y", 0), at(b, "X", 0)) // without a row, a task stays where it is found
	f.advance(length)
	shows(at(x, "X", 3), at(y, "YING", 0), at(b, "X", 0))
	f.advance(length)
	shows(at(x, "X", 3), at(y, "YING", 0), at(b, "X", 0)) // X has a row, but not for a task that was lost
}

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
