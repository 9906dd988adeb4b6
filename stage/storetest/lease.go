package storetest

import (
	"errors"
	"fmt"
	"runtime"
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
	t := f.claimed(kind)
	_, err := f.a.Return(f.ctx, t.Lease(), failed)
	f.NoError(err)
	t = f.claim(kind)
	f.Equal(2, t.Attempt)
	f.Equal("no luck", t.Failure)
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

	_, err = f.a.Suspend(f.ctx, t.ID)
	f.NoError(err)
	wanted := f.get(t.ID)
	_, err = f.b.Enter(f.ctx, t.Lease(), working, 0)
	f.ErrorIs(err, stage.ErrSuspended)
	f.same(wanted)
	_, err = f.a.Cancel(f.ctx, t.ID)
	f.NoError(err)
	wanted = f.get(t.ID)
	_, err = f.b.Enter(f.ctx, t.Lease(), working, 0)
	f.ErrorIs(err, stage.ErrCancelled)
	f.same(wanted)
}

func testFinish(f *fixture) {
	t := f.claimedAgain("a")
	f.advance(time.Second)
	f.NoError(f.b.Finish(f.ctx, t.Lease(), passage, func(tx stage.Tx) error {
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
	f.NoError(f.b.Finish(f.ctx, t.Lease(), stage.Passage{From: "ENDING", To: "ENDED", Last: true}, func(tx stage.Tx) error {
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

func testFinishNil(f *fixture) {
	for _, p := range []stage.Passage{passage, last} {
		t := f.claimed("a")
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, nil))
		f.Equal(done, f.get(t.ID).Stage)
		f.Equal(t.Data, f.get(t.ID).Data, "what was there stays")
		t = f.claimed("b")
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, func(stage.Tx) error { return nil }))
		f.Equal(done, f.get(t.ID).Stage)
		f.Equal(t.Data, f.get(t.ID).Data, "what was there stays")
		f.advance(length)
		f.claims(10, "a", "b")
	}
}

// testFinishAgain is about answers that were lost.
func testFinishAgain(f *fixture) {
	never := func(stage.Tx) error {
		f.Fail("it has finished, so nothing is to be written")
		return nil
	}
	for _, p := range []stage.Passage{passage, last} {
		t := f.claimed("a")
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, nil))
		was := f.get(t.ID)
		f.advance(time.Second)
		f.NoError(f.b.Finish(f.ctx, t.Lease(), p, never))
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, nil))
		f.same(was)
		stale := stage.Lease{Task: t.ID, Token: t.Token - 1}
		f.ErrorIs(f.a.Finish(f.ctx, stale, p, never), stage.ErrLeaseLost, "that was another holder")
		for _, other := range []stage.Passage{{From: p.From, To: p.To, Last: !p.Last}, {From: p.From, To: "ELSEWHERE", Last: p.Last}} {
			f.ErrorIs(f.a.Finish(f.ctx, t.Lease(), other, never), stage.ErrLeaseLost, "that was another passage")
		}
		f.same(was)

		// What somebody wants now comes too late for this stage.
		for _, request := range []func() (bool, error){
			func() (bool, error) { return f.a.Suspend(f.ctx, t.ID) },
			func() (bool, error) { return f.a.Cancel(f.ctx, t.ID) },
		} {
			made, err := request()
			f.NoError(err)
			f.Equal(!p.Last, made)
			was = f.get(t.ID)
			f.NoError(f.b.Finish(f.ctx, t.Lease(), p, never))
			f.same(was)
		}

		f.advance(length)
		if p.Last {
			f.NoError(f.b.Finish(f.ctx, t.Lease(), p, never), "there is no lease any more that could end")
			f.same(was)
			continue
		}
		f.ErrorIs(f.b.Finish(f.ctx, t.Lease(), p, never), stage.ErrLeaseLost)
		f.same(was)
		again := f.claim("a")
		f.ErrorIs(f.b.Finish(f.ctx, t.Lease(), p, never), stage.ErrLeaseLost)
		f.same(again)
		_, err := f.a.Return(f.ctx, again.Lease(), stage.Return{Stage: done, Status: stage.Normal})
		f.NoError(err)
	}
}

// testFinishElsewhere is about a call that comes late, when its holder has repeated it and gone on.
func testFinishElsewhere(f *fixture) {
	t := f.claimed("a")
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
	was, err := f.a.Enter(f.ctx, t.Lease(), "ENDING", 0)
	f.NoError(err)
	for _, p := range []stage.Passage{passage, last} {
		err := f.b.Finish(f.ctx, t.Lease(), p, func(stage.Tx) error {
			f.Fail("it is not at this stage")
			return nil
		})
		f.ErrorIs(err, stage.ErrLeaseLost)
		f.same(was)
	}
}

func testCommitFails(f *fixture) {
	for _, p := range []stage.Passage{passage, last} {
		t := f.claimedAgain("a")
		f.advance(time.Second)
		refused := errors.New("on purpose")
		err := f.a.Finish(f.ctx, t.Lease(), p, func(tx stage.Tx) error {
			tx.SetData([]byte("lost"))
			return refused
		})
		f.Equal(refused, err, "as it is")
		f.same(t)
		wrapped := fmt.Errorf("wrapped: %w", stage.ErrNotFound)
		f.Equal(wrapped, f.a.Finish(f.ctx, t.Lease(), p, func(stage.Tx) error { return wrapped }), "as it is")
		f.same(t)
		for name, end := range ends {
			escapes(f, name, func() {
				_ = f.a.Finish(f.ctx, t.Lease(), p, func(tx stage.Tx) error {
					tx.SetData([]byte("lost"))
					end()
					return nil
				})
			})
			f.same(t)
		}
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, func(tx stage.Tx) error {
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
	for _, row := range []struct {
		name string
		r    stage.Return
		due  time.Duration // from now on; below 0: never
	}{
		{"interrupted", stage.Return{Stage: created, Status: stage.Normal, Attempt: 1, Failure: "an earlier one", Runs: true}, 0},
		{"interrupted, in a while", stage.Return{Stage: created, Status: stage.Normal, Runs: true, After: time.Minute}, time.Minute},
		{"resumed", stage.Return{Stage: created, Status: stage.Resumed, Runs: true}, 0},
		{"to be tried again", stage.Return{Stage: created, Status: stage.Error, Attempt: 3, Failure: "no luck", Runs: true, After: time.Hour}, time.Hour},
		{"failed for good", stage.Return{Stage: created, Status: stage.Error, Attempt: 5, Failure: "no more"}, -1},
		{"failed for good: After is nothing by itself", stage.Return{Stage: created, Status: stage.Error, After: time.Hour}, -1},
		{"suspended by itself", stage.Return{Stage: created, Status: stage.Suspended, Attempt: 1}, -1},
		{"cancelled by itself", stage.Return{Stage: created, Status: stage.Cancelled}, -1},
		{"finished", stage.Return{Stage: done, Status: stage.Normal}, -1},
		{"at a stage that the chain does not know", stage.Return{Stage: "GONE", Status: stage.Error, Failure: "?"}, -1},
	} {
		t := f.claimedAgain(row.name)
		f.advance(time.Second)
		status, err := f.b.Return(f.ctx, t.Lease(), row.r)
		f.NoError(err, row.name)
		f.Equal(row.r.Status, status, row.name)
		want := t
		want.Stage, want.Status, want.Attempt, want.Failure = row.r.Stage, row.r.Status, row.r.Attempt, row.r.Failure
		want.Changed = t.Changed.Add(time.Second)
		want.Due = time.Time{}
		if row.due >= 0 {
			want.Due = want.Changed.Add(row.due)
		}
		f.Equal(plain(want), plain(f.get(t.ID)), row.name)

		_, err = f.a.Return(f.ctx, t.Lease(), row.r)
		f.ErrorIs(err, stage.ErrLeaseLost, row.name)
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

func testReturnWanted(f *fixture) {
	for _, r := range []stage.Return{
		{Stage: created, Status: stage.Normal, Attempt: 1, Failure: "an earlier one", Runs: true},
		{Stage: created, Status: stage.Resumed, Runs: true, After: time.Minute},
		{Stage: created, Status: stage.Error, Attempt: 3, Failure: "no luck", Runs: true, After: time.Hour},
		{Stage: created, Status: stage.Error, Attempt: 5, Failure: "no more"},
		{Stage: done, Status: stage.Normal},
	} {
		for _, row := range []struct {
			name string
			ask  []func(id stage.ID) (bool, error)
			want stage.Status
		}{
			{"suspension", []func(stage.ID) (bool, error){f.suspend}, stage.Suspended},
			{"ending", []func(stage.ID) (bool, error){f.cancel}, stage.Cancelled},
			{"ending instead", []func(stage.ID) (bool, error){f.suspend, f.cancel}, stage.Cancelled},
			{"nothing any more", []func(stage.ID) (bool, error){f.suspend, f.resume}, r.Status},
		} {
			t := f.claimedAgain("a")
			for _, ask := range row.ask {
				made, err := ask(t.ID)
				f.NoError(err)
				f.True(made)
			}
			status, err := f.b.Return(f.ctx, t.Lease(), r)
			f.NoError(err)
			f.Equal(row.want, status, row.name)
			want := t
			want.Stage, want.Status, want.Attempt, want.Failure = r.Stage, row.want, r.Attempt, r.Failure
			want.Due = time.Time{}
			if row.want == r.Status && r.Runs {
				want.Due = t.Changed.Add(r.After)
			}
			f.Equal(plain(want), plain(f.get(t.ID)), row.name)
			_, err = f.a.Cancel(f.ctx, t.ID)
			f.NoError(err)
		}
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

func testHeartbeat(f *fixture) {
	beat := func(leases ...stage.Lease) []stage.Beat {
		f.t.Helper()
		beats, err := f.b.Heartbeat(f.ctx, leases, length)
		f.NoError(err)
		return beats
	}
	f.Empty(beat())
	var (
		good      = f.claimed("good")
		stop      = f.claimed("stop")
		end       = f.claimed("end")
		returned  = f.claimed("returned")
		finished  = f.claimed("finished")
		lost      = f.claimed("lost")
		withdrawn = f.claimed("withdrawn")
		fresh     = f.enqueue("new")
		gone      = stage.Lease{Task: fresh + 1000, Token: 1}
		never     = stage.Lease{Task: fresh, Token: 0}
		taken     stage.Task
	)
	for _, t := range []stage.Task{good, stop, end, withdrawn} {
		_, err := f.a.Heartbeat(f.ctx, []stage.Lease{t.Lease()}, 100*length)
		f.NoError(err)
	}
	f.NoError(f.a.Finish(f.ctx, finished.Lease(), last, nil))
	_, err := f.a.Return(f.ctx, returned.Lease(), stage.Return{Stage: created, Status: stage.Suspended})
	f.NoError(err)
	f.advance(length)
	taken = f.claim("lost")
	for _, ask := range []func() (bool, error){
		func() (bool, error) { return f.suspend(stop.ID) },
		func() (bool, error) { return f.cancel(end.ID) },
		func() (bool, error) { return f.suspend(withdrawn.ID) },
		func() (bool, error) { return f.resume(withdrawn.ID) },
	} {
		made, err := ask()
		f.NoError(err)
		f.True(made)
	}
	isLost := stage.Beat{Lost: true}
	f.Equal([]stage.Beat{
		isLost, {}, {Wanted: stage.Suspension}, isLost, {Wanted: stage.Ending}, isLost, isLost, isLost, {}, {}, {},
	}, beat(
		lost.Lease(), good.Lease(), stop.Lease(), returned.Lease(), end.Lease(), finished.Lease(), gone, never, taken.Lease(),
		withdrawn.Lease(), good.Lease(),
	), "in order")

	var many []stage.Lease
	for range 300 {
		f.enqueue("many")
	}
	for _, t := range f.claims(1000, "many") {
		many = append(many, t.Lease())
	}
	f.Len(many, 300)
	many[150].Token++
	want := make([]stage.Beat, 300)
	want[150].Lost = true
	f.Equal(want, beat(many...))
}

func testHeartbeatRenews(f *fixture) {
	t, other := f.claimed("a"), f.claimed("b")
	_, err := f.a.Suspend(f.ctx, t.ID)
	f.NoError(err)
	t = f.get(t.ID)
	for range 20 {
		f.advance(length - time.Millisecond)
		beats, err := f.b.Heartbeat(f.ctx, []stage.Lease{t.Lease()}, length)
		f.NoError(err)
		f.Equal([]stage.Beat{{Wanted: stage.Suspension}}, beats)
		t.Due = t.Due.Add(length - time.Millisecond)
		f.same(t) // so it does not count as a change either
		f.Empty(f.claims(1, "a"))
	}
	f.same(other)

	beats, err := f.b.Heartbeat(f.ctx, []stage.Lease{t.Lease(), other.Lease()}, time.Second)
	f.NoError(err)
	f.Equal([]stage.Beat{{Wanted: stage.Suspension}, {Lost: true}}, beats)
	f.same(other) // a lease that has ended does not come back
	t.Due = t.Due.Add(time.Second - length)
	f.same(t) // so long from now, not longer
	f.advance(time.Second)
	beats, err = f.b.Heartbeat(f.ctx, []stage.Lease{t.Lease()}, length)
	f.NoError(err)
	f.Equal([]stage.Beat{{Lost: true}}, beats)
	f.same(t)

	t = f.claimed("c")
	beats, err = f.b.Heartbeat(f.ctx, []stage.Lease{t.Lease(), t.Lease()}, 0)
	f.NoError(err)
	f.Equal([]stage.Beat{{}, {}}, beats, "one answer, however often it is asked, even if that ends it")
	f.claim("c")
}
