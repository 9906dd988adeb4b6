package storetest

import (
	"fmt"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// failures returns the records of a task, as the other connection sees them.
func (f *fixture) failures(id store.ID) []store.Failure {
	f.t.Helper()
	all, err := f.b.Failures(f.ctx, id)
	f.NoError(err)
	for i := range all {
		all[i].Time = all[i].Time.Round(0).UTC()
	}
	return all
}

// testFailures follows a task that fails again and again, in two stages.
func testFailures(f *fixture) {
	t, other := f.claimed("a"), f.claimed("b")
	f.Empty(f.failures(t.ID))
	var want []store.Failure
	fails := func(at string, i int) {
		text := fmt.Sprint("no luck ", i)
		t = plain(f.returned(t, store.Return{Stage: created, Status: store.Failed, Attempt: i, Failure: text, Runs: true}))
		want = append(want, store.Failure{Stage: at, Attempt: i, Time: t.Changed, Text: text})
		f.Equal(want, f.failures(t.ID))
		f.advance(length / 4)
		t = f.claim("a")
	}
	for i := range transition.MaxFailures - 1 {
		fails(working, i+1)
	}
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
	f.Equal(want, f.failures(t.ID), "a stage that finishes keeps them")
	fails(done, 1)
	f.Len(want, transition.MaxFailures)
	for i := range 3 {
		want = want[1:]
		fails(working, i+2)
	}
	f.Empty(f.failures(other.ID))
	all := f.failures(t.ID)
	all[0].Text = "another"
	f.Equal(want, f.failures(t.ID))
	f.ErrorIs(failure(f.a.Failures(f.ctx, t.ID+1000)), store.ErrNotFound)
	f.ErrorIs(failure(f.a.Failures(f.ctx, 0)), store.ErrNotFound)
}

// testFailuresOfLost loses the workers of a task one after the other.
func testFailuresOfLost(f *fixture) {
	id, attempt := f.enqueue("a"), 0
	var want []store.Failure
	for i := range transition.MaxFailures + 3 {
		tasks, err := f.a.Claim(f.ctx, store.Claim{Worker: "ann", Kinds: []string{"a"}, Limit: 1, Length: length, Shows: []store.Show{
			{Kind: "a", Found: created, Stage: working, Attempts: 1}, {Kind: "a", Found: working, Lost: true, Stage: working, Attempts: 1},
		}})
		f.NoError(err)
		f.Len(tasks, 1)
		if attempt++; i > 0 {
			want = append(want, store.Failure{Stage: working, Attempt: attempt, Time: plain(tasks[0]).Changed, Text: "stage: the worker was lost"})
		}
		f.Equal(want[max(0, len(want)-transition.MaxFailures):], append([]store.Failure(nil), f.failures(id)...))
		f.advance(length)
	}
}
