package storetest

import (
	"time"

	"github.com/daimon-go/daimon/stage"
)

func testSuspendResume(f *fixture) {
	id := f.enqueue("a")
	was := f.get(id)
	f.advance(time.Second)
	made, err := f.suspend(id)
	f.NoError(err)
	f.True(made)
	want := was
	want.Status, want.Due, want.Changed = stage.Suspended, time.Time{}, was.Created.Add(time.Second)
	f.same(want)
	made, err = f.suspend(id)
	f.NoError(err)
	f.False(made, "the second time")
	f.same(want)
	f.advance(time.Second)
	f.Empty(f.claims(1, "a"))
	made, err = f.resume(id)
	f.NoError(err)
	f.True(made)
	want.Status, want.Changed = stage.Resumed, want.Changed.Add(time.Second)
	want.Due = want.Changed
	f.same(want)
	made, err = f.resume(id)
	f.NoError(err)
	f.False(made, "the second time")
	f.same(want)

	// One that failed before keeps its attempts when it is resumed from a suspension; it loses them when it is
	// resumed from the error, whether it was to be tried again or not.
	for _, runs := range []bool{true, false} {
		t := f.claim("a")
		r := failed
		r.Runs, r.After = runs, time.Hour
		_, err = f.a.Return(f.ctx, t.Lease(), r)
		f.NoError(err)
		was = f.get(id)
		made, err = f.resume(id)
		f.NoError(err)
		f.False(made, "only if failed")
		f.same(was)
		want = was
		if runs {
			_, err = f.suspend(id)
			f.NoError(err)
			_, err = f.resumeFailed(id)
		} else {
			want.Attempt = 0
			_, err = f.resumeFailed(id)
		}
		f.NoError(err)
		want.Status, want.Due, want.Changed = stage.Resumed, was.Changed, was.Changed
		f.same(want)
	}
	t := f.claim("a")
	r := failed
	r.After = time.Hour
	_, err = f.a.Return(f.ctx, t.Lease(), r)
	f.NoError(err)
	want = f.get(id)
	made, err = f.resumeFailed(id)
	f.NoError(err)
	f.True(made)
	want.Status, want.Due, want.Attempt = stage.Resumed, want.Changed, 0
	f.same(want)

	// While a worker has it, it is wanted, or not, and that is all.
	t = f.claim("a")
	want = t
	now := t.Changed
	for _, row := range []struct {
		ask    func(stage.ID) (bool, error)
		made   bool
		wanted stage.Wanted
	}{
		{f.resume, false, stage.Nothing},
		{f.suspend, true, stage.Suspension},
		{f.suspend, false, stage.Suspension},
		{f.resume, true, stage.Nothing},
		{f.resume, false, stage.Nothing},
		{f.suspend, true, stage.Suspension},
		{f.resumeFailed, true, stage.Nothing},
		{f.resumeFailed, false, stage.Nothing},
		{f.suspend, true, stage.Suspension},
		{f.cancel, true, stage.Ending},
		{f.suspend, false, stage.Ending},
		{f.resume, false, stage.Ending},
		{f.resumeFailed, false, stage.Ending},
		{f.cancel, false, stage.Ending},
	} {
		f.advance(time.Millisecond)
		now = now.Add(time.Millisecond)
		made, err = row.ask(id)
		f.NoError(err)
		f.Equal(row.made, made)
		if made {
			want.Changed = now
		}
		want.Wanted = row.wanted
		f.same(want)
	}
}

func testCancel(f *fixture) {
	for _, row := range conditions {
		t := row.make(f, "cancel "+row.name)
		made, err := f.cancel(t.ID)
		f.NoError(err, row.name)
		if !made {
			f.same(t)
			continue
		}
		want := t
		want.Changed = f.get(t.ID).Changed
		if t.Status == stage.InProcessing {
			want.Wanted = stage.Ending
		} else {
			want.Status, want.Due = stage.Cancelled, time.Time{}
		}
		f.same(want)
		for _, ask := range []func(stage.ID) (bool, error){f.suspend, f.resume, f.resumeFailed, f.cancel} {
			made, err := ask(t.ID)
			f.NoError(err, row.name)
			f.False(made, "%s: it is for good", row.name)
		}
		f.same(want)
		if t.Status != stage.InProcessing {
			f.advance(100 * time.Hour)
			f.Empty(f.claims(1, t.Kind), row.name)
		}
	}
}
