package storetest

import (
	"fmt"
	"strings"

	"github.com/daimon-go/daimon/stage"
)

// failures returns the records of a task, as the other connection sees them.
func (f *fixture) failures(id stage.ID) []stage.Failure {
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
	var want []stage.Failure
	fails := func(at string, i int) {
		text := fmt.Sprint("no luck ", i)
		t = plain(f.returned(t, stage.Return{Stage: created, Status: stage.Error, Attempt: i, Failure: text, Runs: true}))
		want = append(want, stage.Failure{Stage: at, Attempt: i, Time: t.Changed, Text: text})
		f.Equal(want, f.failures(t.ID))
		f.advance(length / 4)
		t = f.claim("a")
	}
	for i := range stage.MaxFailures - 1 {
		fails(working, i+1)
	}
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
	f.Equal(want, f.failures(t.ID), "a stage that finishes keeps them")
	fails(done, 1)
	f.Len(want, stage.MaxFailures)
	for i := range 3 {
		want = want[1:]
		fails(working, i+2)
	}
	f.Empty(f.failures(other.ID))
	all := f.failures(t.ID)
	all[0].Text = "another"
	f.Equal(want, f.failures(t.ID))
	f.ErrorIs(failure(f.a.Failures(f.ctx, t.ID+1000)), stage.ErrNotFound)
	f.ErrorIs(failure(f.a.Failures(f.ctx, 0)), stage.ErrNotFound)
}

// testFailuresOfLost loses the workers of a task one after the other.
func testFailuresOfLost(f *fixture) {
	id, attempt := f.enqueue("a"), 0
	var want []stage.Failure
	for i := range stage.MaxFailures + 3 {
		tasks, err := f.a.Claim(f.ctx, stage.Claim{Worker: "ann", Kinds: []string{"a"}, Limit: 1, Length: length, Shows: []stage.Show{
			{Kind: "a", Found: created, Stage: working, Attempts: 1}, {Kind: "a", Found: working, Lost: true, Stage: working, Attempts: 1},
		}})
		f.NoError(err)
		f.Len(tasks, 1)
		if attempt++; i > 0 {
			want = append(want, stage.Failure{Stage: working, Attempt: attempt, Time: plain(tasks[0]).Changed, Text: "stage: the worker was lost"})
		}
		f.Equal(want[max(0, len(want)-stage.MaxFailures):], append([]stage.Failure(nil), f.failures(id)...))
		f.advance(length)
	}
}

// testFailuresOfReturns has a task that is given back in each way, with and without a request, and under a lease that was lost.
func testFailuresOfReturns(f *fixture) {
	for i, row := range []struct {
		status  stage.Status
		request func(stage.ID) (bool, error)
		lost    bool
		failed  bool
	}{
		{status: stage.Error, failed: true},
		{status: stage.Error, request: f.suspend, failed: true},
		{status: stage.Error, request: f.cancel, failed: true},
		{status: stage.Error, lost: true},
		{status: stage.Normal},
		{status: stage.Normal, request: f.suspend},
		{status: stage.Suspended},
		{status: stage.Cancelled},
	} {
		t := f.claimed(fmt.Sprint("kind ", i))
		if row.request != nil {
			f.yes(row.request(t.ID))
		}
		if row.lost {
			f.advance(length)
		}
		long := strings.Repeat("€", stage.MaxFailure) + "\x00"
		_, err := f.a.Return(f.ctx, t.Lease(), stage.Return{Stage: created, Status: row.status, Attempt: 7, Failure: long})
		if row.lost {
			f.ErrorIs(err, stage.ErrLeaseLost)
		} else {
			f.NoError(err)
		}
		if !row.failed {
			f.Empty(f.failures(t.ID), "%+v", row)
			continue
		}
		now := plain(f.get(t.ID))
		f.Equal([]stage.Failure{{Stage: working, Attempt: 7, Time: now.Changed, Text: now.Failure}}, f.failures(t.ID))
		f.Len(now.Failure, stage.MaxFailure/3*3)
	}
}
