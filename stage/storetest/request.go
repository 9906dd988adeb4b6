package storetest

import (
	"time"

	"github.com/daimon-go/daimon/stage"
)

func testSuspendResume(f *fixture) {
	id := f.enqueue("a")
	want := f.get(id)
	f.advance(time.Second)
	f.yes(f.suspend(id))
	want.Status, want.Due, want.Changed = stage.Suspended, time.Time{}, want.Created.Add(time.Second)
	f.same(want)
	f.advance(time.Second)
	f.no(f.suspend(id))
	f.same(want)
	f.Empty(f.claims(1, "a"))
	f.yes(f.resume(id))
	want.Status, want.Changed = stage.Resumed, want.Changed.Add(time.Second)
	want.Due = want.Changed
	f.same(want)
	f.advance(time.Second)
	f.no(f.resume(id))
	f.same(want)

	// A task that has failed keeps its attempts when it is resumed from a suspension. It loses them when it is resumed from
	// the error, whether it was to be tried again or not.
	for _, row := range []struct{ runs, suspended bool }{{true, true}, {true, false}, {false, false}} {
		r := failed
		r.Runs, r.After = row.runs, time.Hour
		want = f.returned(f.claim("a"), r)
		f.no(f.resume(id))
		f.same(want)
		if row.suspended {
			f.yes(f.suspend(id))
		} else {
			want.Attempt = 0
		}
		f.yes(f.resumeFailed(id))
		want.Status, want.Due = stage.Resumed, want.Changed
		f.same(want)
	}
}
