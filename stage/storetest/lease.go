package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage"
)

// ends are ways in which a function does not return.
var ends = map[string]func(){
	"panic":  func() { panic("on purpose") },
	"Goexit": runtime.Goexit,
}

// escapes calls do on a goroutine of its own, and says that it does not return.
func escapes(f *fixture, name string, do func()) {
	returned := false
	together(1, func(int) {
		defer func() { _ = recover() }()
		do()
		returned = true
	})
	f.False(returned, name)
}

// failed is what the task was returned as by its worker before.
var failed = stage.Return{Stage: created, Status: stage.Error, Attempt: 2, Failure: "no luck", Runs: true}

// claimedAgain is a task that is claimed, and has failed before.
func (f *fixture) claimedAgain(kind string) stage.Task {
	first := f.claimed(kind)
	f.returned(first, failed)
	t := f.claim(kind)
	f.Equal(2, t.Attempt)
	f.Equal("no luck", t.Failure)
	f.Greater(t.Token, first.Token)
	return t
}

func testEnter(f *fixture) {
	t := f.claimedAgain("a")
	f.advance(time.Second)
	got, err := f.b.Enter(f.ctx, t.Lease(), "ELSEWHERE", 5)
	f.NoError(err)
	want := t
	want.Stage, want.Attempt, want.Changed = "ELSEWHERE", 5, t.Changed.Add(time.Second)
	f.Equal(plain(want), plain(got), "the stage, the attempt, and nothing else")
	f.same(want)

}

func testFinish(f *fixture) {
	t := f.claimedAgain("a")
	f.advance(time.Second)
	f.NoError(f.b.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx stage.Tx) error {
		tx.SetData([]byte("half of it"))
		return nil
	}))
	want := t
	want.Stage, want.Data, want.Attempt, want.Failure = done, []byte("half of it"), 0, ""
	want.Changed = t.Changed.Add(time.Second)
	f.Equal(plain(want), plain(f.get(t.ID)), "the holder goes on with it, under the same lease")

	entered, err := f.b.Enter(f.ctx, t.Lease(), "ENDING", 0)
	f.NoError(err)
	f.advance(time.Second)
	f.NoError(f.b.Finish(f.ctx, t.Lease(), stage.Passage{From: "ENDING", To: "ENDED", Last: true}, func(_ context.Context, tx stage.Tx) error {
		tx.SetData([]byte("all of it"))
		return nil
	}))
	want = entered
	want.Stage, want.Status, want.Data = "ENDED", stage.Normal, []byte("all of it")
	want.Due, want.Changed = time.Time{}, entered.Changed.Add(time.Second)
	f.Equal(plain(want), plain(f.get(t.ID)), "normal, never due, and given back")
	f.advance(100 * length)
	f.Empty(f.claims(1, "a"))
}

// testFinishAgain is about late calls: an answer was lost, and the holder has repeated its call, or has gone on.
func testFinishAgain(f *fixture) {
	never := func(context.Context, stage.Tx) error {
		f.Fail("nothing is to be written")
		return nil
	}
	for _, p := range []stage.Passage{passage, last} {
		t := f.claimed("a")
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, nil))
		was := f.get(t.ID)
		f.Equal(t.Data, was.Data, "without a commit the data stay")
		f.advance(time.Second)
		f.NoError(f.b.Finish(f.ctx, t.Lease(), p, never))
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, nil))
		elsewhere := stage.Passage{From: p.From, To: "ELSEWHERE", Last: p.Last}
		f.ErrorIs(f.a.Finish(f.ctx, t.Lease(), elsewhere, never), stage.ErrLeaseLost, "that was another passage")
		f.same(was)
	}
}

func testCommitFails(f *fixture) {
	for _, p := range []stage.Passage{passage, last} {
		t := f.claimedAgain("a")
		f.advance(time.Second)
		refused := errors.New("on purpose")
		err := f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx stage.Tx) error {
			tx.SetData([]byte("lost"))
			return refused
		})
		f.Equal(refused, err, "as it is")
		f.same(t)
		wrapped := fmt.Errorf("wrapped: %w", stage.ErrNotFound)
		f.Equal(wrapped, f.a.Finish(f.ctx, t.Lease(), p, func(context.Context, stage.Tx) error { return wrapped }), "as it is")
		f.same(t)
		for name, end := range ends {
			escapes(f, name, func() {
				_ = f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx stage.Tx) error {
					tx.SetData([]byte("lost"))
					end()
					return nil
				})
			})
			f.same(t)
		}
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx stage.Tx) error {
			tx.SetData([]byte("at last"))
			return nil
		}), "the holder still has it")
		f.Equal("at last", string(f.get(t.ID).Data))
		f.Equal(done, f.get(t.ID).Stage)
		if !p.Last {
			_, err = f.a.Return(f.ctx, t.Lease(), stage.Return{Stage: done, Status: stage.Normal})
			f.NoError(err)
		}
	}
}

func testReturn(f *fixture) {
	type ask = []func(stage.ID) (bool, error)
	interrupted := stage.Return{Stage: created, Status: stage.Normal, Attempt: 1, Failure: "an earlier one", Runs: true}
	again := stage.Return{Stage: created, Status: stage.Error, Attempt: 3, Failure: "no luck", Runs: true, After: time.Hour}
	gone := stage.Return{Stage: done, Status: stage.Normal}
	never := stage.Return{Stage: created, Status: stage.Error, Attempt: 5, Failure: "no more"}
	for _, row := range []struct {
		name string
		r    stage.Return
		ask  ask
		want stage.Status
		due  time.Duration // from now on; below 0: never
	}{
		{"interrupted", interrupted, nil, stage.Normal, 0},
		{"interrupted, in a while", stage.Return{Stage: created, Status: stage.Normal, Runs: true, After: time.Minute}, nil, stage.Normal, time.Minute},
		{"resumed", stage.Return{Stage: created, Status: stage.Resumed, Runs: true}, nil, stage.Resumed, 0},
		{"to be tried again", again, nil, stage.Error, time.Hour},
		{"failed for good", never, nil, stage.Error, -1},
		{"failed for good: After is nothing by itself", stage.Return{Stage: created, Status: stage.Error, After: time.Hour}, nil, stage.Error, -1},
		{"suspended by itself", stage.Return{Stage: created, Status: stage.Suspended, Attempt: 1}, nil, stage.Suspended, -1},
		{"cancelled by itself", stage.Return{Stage: created, Status: stage.Cancelled}, nil, stage.Cancelled, -1},
		{"finished", gone, nil, stage.Normal, -1},
		{"at a stage that the chain does not know", stage.Return{Stage: "GONE", Status: stage.Error, Failure: "?"}, nil, stage.Error, -1},

		{"interrupted, and suspended", interrupted, ask{f.suspend}, stage.Suspended, -1},
		{"to be tried again, but suspended", again, ask{f.suspend}, stage.Suspended, -1},
		{"to be tried again, but cancelled", again, ask{f.cancel}, stage.Cancelled, -1},
		{"failed for good, and suspended", never, ask{f.suspend}, stage.Error, -1},
		{"failed for good, but cancelled", never, ask{f.cancel}, stage.Cancelled, -1},
		{"finished, and suspended", gone, ask{f.suspend}, stage.Suspended, -1},
		{"finished, and cancelled", gone, ask{f.cancel}, stage.Cancelled, -1},
		{"cancelled after a suspension", interrupted, ask{f.suspend, f.cancel}, stage.Cancelled, -1},
		{"the suspension is withdrawn", again, ask{f.suspend, f.resume}, stage.Error, time.Hour},
	} {
		t := f.claimedAgain(row.name)
		for _, ask := range row.ask {
			f.yes(ask(t.ID))
		}
		f.advance(time.Second)
		status, err := f.b.Return(f.ctx, t.Lease(), row.r)
		f.NoError(err, row.name)
		f.Equal(row.want, status, row.name)
		want := t
		want.Stage, want.Status, want.Attempt, want.Failure = row.r.Stage, row.want, row.r.Attempt, row.r.Failure
		want.Changed = t.Changed.Add(time.Second)
		want.Due = time.Time{}
		if row.due >= 0 {
			want.Due = want.Changed.Add(row.due)
		}
		f.Equal(plain(want), plain(f.get(t.ID)), row.name)

		f.ErrorIs(failure(f.a.Return(f.ctx, t.Lease(), row.r)), stage.ErrLeaseLost, row.name)
		f.same(want)
		if row.due > 0 {
			f.advance(row.due - time.Millisecond)
			f.Empty(f.claims(1, row.name), row.name)
			f.advance(time.Millisecond)
		}
		if row.due < 0 {
			f.advance(100 * length)
		}
		f.Len(f.claims(1, row.name), map[bool]int{true: 1}[row.due >= 0], row.name)
	}
}

func (f *fixture) suspend(id stage.ID) (bool, error) { return f.b.Suspend(f.ctx, id) }

func (f *fixture) resume(id stage.ID) (bool, error) { return f.b.Resume(f.ctx, id, false) }

func (f *fixture) resumeFailed(id stage.ID) (bool, error) { return f.b.Resume(f.ctx, id, true) }

func (f *fixture) cancel(id stage.ID) (bool, error) { return f.b.Cancel(f.ctx, id) }

func testFailure(f *fixture) {
	const most = stage.MaxFailure
	x := strings.Repeat("x", most)
	for _, row := range []struct{ name, failure, want string }{
		{"none", "", ""},
		{"lines", "one\ntwo\r\n\tthree", "one\ntwo\r\n\tthree"},
		{"not ASCII", "naïve 😀", "naïve 😀"},
		{"as long as may be", x, x},
		{"a byte too long", x + "y", x},
		{"much too long", strings.Repeat(x, 300), x},
		{"the end fits", x[:most-4] + "😀", x[:most-4] + "😀"},
		{"cut before a rune of 2 bytes", x[:most-1] + "é", x[:most-1]},
		{"cut before a rune of 3 bytes", x[:most-2] + "報告", x[:most-2]},
		{"cut before a rune of 4 bytes", x[:most-3] + "😀😀", x[:most-3]},
		{"cut behind a rune", x[:most-3] + "報告", x[:most-3] + "報"},
		{"a replacement is as good as any", "a\uFFFDb", "a\uFFFDb"},
		{"a NUL", "a\x00b", "a\uFFFDb"},
		{"invalid", "a\xffb", "a\uFFFDb"},
		{"half a rune at the end", "a\xe5\xa0", "a\uFFFD"},
		{"a surrogate", "a\xed\xa0\x80b", "a\uFFFDb"},
	} {
		t := f.claimed(row.name)
		_, err := f.a.Return(f.ctx, t.Lease(), stage.Return{Stage: created, Status: stage.Error, Failure: row.failure})
		f.NoError(err, row.name)
		f.Equal(row.want, f.get(t.ID).Failure, row.name)
	}
	for name, failure := range map[string]string{
		"NULs": strings.Repeat("\x00", 2*most), "invalid": strings.Repeat("a\xff", most),
		"binary": strings.Repeat("\xe5\xa0\x00\x80", most),
	} {
		t := f.claimed(name)
		_, err := f.a.Return(f.ctx, t.Lease(), stage.Return{Stage: created, Status: stage.Error, Failure: failure})
		f.NoError(err, name)
		got := f.get(t.ID).Failure
		f.NotEmpty(got, name)
		f.LessOrEqual(len(got), most, name)
		f.True(utf8.ValidString(got), name)
		f.NotContains(got, "\x00", name)
	}
}

// renewals are for leases, without progress.
func renewals(leases ...stage.Lease) (all []stage.Renewal) {
	for _, l := range leases {
		all = append(all, stage.Renewal{Lease: l})
	}
	return all
}

// testHeartbeat wants the answers in order. The table of leases has those of each condition.
func testHeartbeat(f *fixture) {
	beat := func(leases ...stage.Lease) []stage.Beat {
		f.t.Helper()
		beats, err := f.b.Heartbeat(f.ctx, renewals(leases...), length)
		f.NoError(err)
		return beats
	}
	f.Empty(beat())
	lost := f.claimed("lost")
	f.advance(length)
	taken, good, stop, end := f.claim("lost"), f.claimed("good"), f.claimed("stop"), f.claimed("end")
	gone := stage.Lease{Task: end.ID + 1000, Token: 1}
	f.yes(f.suspend(stop.ID))
	f.yes(f.cancel(end.ID))
	isLost, renewed := stage.Beat{Lost: true}, stage.Beat{Renewed: true}
	f.Equal([]stage.Beat{isLost, renewed, {Renewed: true, Wanted: stage.Suspension}, isLost, {Renewed: true, Wanted: stage.Ending}, renewed, renewed},
		beat(lost.Lease(), good.Lease(), stop.Lease(), gone, end.Lease(), taken.Lease(), good.Lease()))

	var many []stage.Lease
	for range 300 {
		f.enqueue("many")
	}
	for _, t := range f.claims(1000, "many") {
		many = append(many, t.Lease())
	}
	f.Len(many, 300)
	many[150].Token++
	want := slices.Repeat([]stage.Beat{renewed}, 300)
	want[150] = isLost
	f.Equal(want, beat(many...))
}

func testHeartbeatRenews(f *fixture) {
	t, other := f.claimed("a"), f.claimed("b")
	t = f.asked(t, f.suspend)
	for range 20 {
		f.advance(length - time.Millisecond)
		beats, err := f.b.Heartbeat(f.ctx, renewals(t.Lease()), length)
		f.NoError(err)
		f.Equal([]stage.Beat{{Renewed: true, Wanted: stage.Suspension}}, beats)
		t.Due = t.Due.Add(length - time.Millisecond)
		f.same(t) // so it does not count as a change either
		f.Empty(f.claims(1, "a"))
	}
	f.same(other)

	beats, err := f.b.Heartbeat(f.ctx, renewals(t.Lease(), other.Lease()), time.Second)
	f.NoError(err)
	f.Equal([]stage.Beat{{Renewed: true, Wanted: stage.Suspension}, {Lost: true}}, beats)
	f.same(other) // a lease that has ended does not come back
	t.Due = t.Due.Add(time.Second - length)
	f.same(t) // so long from now, not longer
	f.advance(time.Second)
	beats, err = f.b.Heartbeat(f.ctx, renewals(t.Lease()), length)
	f.NoError(err)
	f.Equal([]stage.Beat{{Lost: true}}, beats)
	f.same(t)

	t = f.claimed("c")
	beats, err = f.b.Heartbeat(f.ctx, renewals(t.Lease(), t.Lease()), 0)
	f.NoError(err)
	f.Equal([]stage.Beat{{Renewed: true}, {Renewed: true}}, beats, "one answer, however often it is asked, even if that ends it")
	f.claim("c")
}
