package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
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
var failed = store.Return{Stage: created, Status: store.Failed, Attempt: 2, Failure: "no luck", Runs: true}

// claimedAgain is a task that is claimed, and has failed before.
func (f *fixture) claimedAgain(kind string) store.Task {
	first := f.claimed(kind)
	f.returned(first, failed)
	t := f.claim(kind)
	f.Equal(2, t.Attempt)
	f.Equal("no luck", t.Failure)
	f.Greater(t.Token, first.Token)
	return t
}

func testFinish(f *fixture) {
	t := f.claimedAgain("a")
	f.advance(time.Second)
	f.NoError(f.b.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx store.Tx) error {
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
	f.NoError(f.b.Finish(f.ctx, t.Lease(), store.Passage{From: "ENDING", To: "ENDED", Last: true}, func(_ context.Context, tx store.Tx) error {
		tx.SetData([]byte("all of it"))
		return nil
	}))
	want = entered
	want.Stage, want.Status, want.Data = "ENDED", store.Normal, []byte("all of it")
	want.Due, want.Changed = time.Time{}, entered.Changed.Add(time.Second)
	f.Equal(plain(want), plain(f.get(t.ID)), "normal, never due, and given back")
	f.advance(100 * length)
	f.Empty(f.claims(1, "a"))
}

func testCommitFails(f *fixture) {
	for _, p := range []store.Passage{passage, last} {
		t := f.claimedAgain("a")
		f.advance(time.Second)
		refused := errors.New("on purpose")
		err := f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx store.Tx) error {
			tx.SetData([]byte("lost"))
			return refused
		})
		f.Equal(refused, err, "as it is")
		f.same(t)
		wrapped := fmt.Errorf("wrapped: %w", store.ErrNotFound)
		f.Equal(wrapped, f.a.Finish(f.ctx, t.Lease(), p, func(context.Context, store.Tx) error { return wrapped }), "as it is")
		f.same(t)
		for name, end := range ends {
			escapes(f, name, func() {
				_ = f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx store.Tx) error {
					tx.SetData([]byte("lost"))
					end()
					return nil
				})
			})
			f.same(t)
		}
		f.NoError(f.a.Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx store.Tx) error {
			tx.SetData([]byte("at last"))
			return nil
		}), "the holder still has it")
		f.Equal("at last", string(f.get(t.ID).Data))
		f.Equal(done, f.get(t.ID).Stage)
		if !p.Last {
			f.returned(t, store.Return{Stage: done, Status: store.Normal})
		}
	}
}

func testReturn(f *fixture) {
	type ask = []func(store.ID) (bool, error)
	interrupted := store.Return{Stage: created, Status: store.Normal, Attempt: 1, Failure: "an earlier one", Runs: true}
	again := store.Return{Stage: created, Status: store.Failed, Attempt: 3, Failure: "no luck", Runs: true, After: time.Hour}
	gone := store.Return{Stage: done, Status: store.Normal}
	never := store.Return{Stage: created, Status: store.Failed, Attempt: 5, Failure: "no more"}
	for _, row := range []struct {
		name string
		r    store.Return
		ask  ask
		want store.Status
		due  time.Duration // from now on; below 0: never
	}{
		{"interrupted", interrupted, nil, store.Normal, 0},
		{"interrupted, in a while", store.Return{Stage: created, Status: store.Normal, Runs: true, After: time.Minute}, nil, store.Normal, time.Minute},
		{"no failure, whatever the attempt", store.Return{Stage: created, Status: store.Normal, Attempt: 7, Runs: true}, nil, store.Normal, 0},
		{"resumed", store.Return{Stage: created, Status: store.Resumed, Runs: true}, nil, store.Resumed, 0},
		{"to be tried again", again, nil, store.Failed, time.Hour},
		{"failed for good", never, nil, store.Failed, -1},
		{"failed for good: After is nothing by itself", store.Return{Stage: created, Status: store.Failed, After: time.Hour}, nil, store.Failed, -1},
		{"suspended by itself", store.Return{Stage: created, Status: store.Suspended, Attempt: 1}, nil, store.Suspended, -1},
		{"cancelled by itself", store.Return{Stage: created, Status: store.Canceled}, nil, store.Canceled, -1},
		{"finished", gone, nil, store.Normal, -1},
		{"at a stage that the chain does not know", store.Return{Stage: "GONE", Status: store.Failed, Failure: "?"}, nil, store.Failed, -1},

		{"interrupted, and suspended", interrupted, ask{f.suspend}, store.Suspended, -1},
		{"to be tried again, but suspended", again, ask{f.suspend}, store.Suspended, -1},
		{"to be tried again, but cancelled", again, ask{f.cancel}, store.Canceled, -1},
		{"failed for good, and suspended", never, ask{f.suspend}, store.Failed, -1},
		{"failed for good, but cancelled", never, ask{f.cancel}, store.Canceled, -1},
		{"finished, and suspended", gone, ask{f.suspend}, store.Suspended, -1},
		{"finished, and cancelled", gone, ask{f.cancel}, store.Canceled, -1},
		{"cancelled after a suspension", interrupted, ask{f.suspend, f.cancel}, store.Canceled, -1},
		{"the suspension is withdrawn", again, ask{f.suspend, f.resume}, store.Failed, time.Hour},
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
		records := 1 // of the failure before
		if row.r.Status == store.Failed && row.r.Attempt > t.Attempt {
			records++
		}
		f.Len(f.failures(t.ID), records, row.name)

		f.ErrorIs(failure(f.a.Return(f.ctx, t.Lease(), row.r)), store.ErrLeaseLost, row.name)
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

func (f *fixture) suspend(id store.ID) (bool, error) { return f.b.Suspend(f.ctx, id) }

func (f *fixture) resume(id store.ID) (bool, error) { return f.b.Resume(f.ctx, id, false) }

func (f *fixture) resumeFailed(id store.ID) (bool, error) { return f.b.Resume(f.ctx, id, true) }

func (f *fixture) cancel(id store.ID) (bool, error) { return f.b.Cancel(f.ctx, id) }

func testFailure(f *fixture) {
	const most = transition.MaxFailure
	x := strings.Repeat("x", most)
	for _, row := range []struct{ name, failure, want string }{
		{"lines", "one\ntwo\r\n\tthree", "one\ntwo\r\n\tthree"},
		{"as long as may be", x, x},
		{"much too long", strings.Repeat(x, 300), x},
		{"the end fits", x[:most-4] + "😀", x[:most-4] + "😀"},
		{"cut before a rune", x[:most-3] + "😀😀", x[:most-3]},
		{"a NUL, and what is invalid", "a\x00b\xffc", "a\uFFFDb\uFFFDc"},
		{"half a rune at the end", "a\xe5\xa0", "a\uFFFD"},
		{"NULs", strings.Repeat("\x00", 2*most), strings.Repeat("\uFFFD", most/3)},
	} {
		t := f.claimed(row.name)
		_, err := f.a.Return(f.ctx, t.Lease(), store.Return{Stage: created, Status: store.Failed, Failure: row.failure})
		f.NoError(err, row.name)
		f.Equal(row.want, f.get(t.ID).Failure, row.name)
	}
}

// renewals are for leases, without progress.
func renewals(leases ...store.Lease) (all []store.Renewal) {
	for _, l := range leases {
		all = append(all, store.Renewal{Lease: l})
	}
	return all
}

func testHeartbeatRenews(f *fixture) {
	t, other := f.claimed("a"), f.claimed("b")
	t = f.asked(t, f.suspend)
	for range 20 {
		f.advance(length - time.Millisecond)
		beats, err := f.b.Heartbeat(f.ctx, renewals(t.Lease()), length)
		f.NoError(err)
		f.Equal([]error{store.ErrSuspended}, beats)
		t.Due = t.Due.Add(length - time.Millisecond)
		f.same(t) // so it does not count as a change either
		f.Empty(f.claims(1, "a"))
	}
	f.same(other)

	beats, err := f.b.Heartbeat(f.ctx, renewals(t.Lease(), other.Lease()), time.Second)
	f.NoError(err)
	f.Equal([]error{store.ErrSuspended, store.ErrLeaseLost}, beats)
	f.same(other) // a lease that has ended does not come back
	t.Due = t.Due.Add(time.Second - length)
	f.same(t) // so long from now, not longer
	f.advance(time.Second)
	beats, err = f.b.Heartbeat(f.ctx, renewals(t.Lease()), length)
	f.NoError(err)
	f.Equal([]error{store.ErrLeaseLost}, beats)
	f.same(t)

	t = f.claimed("c")
	beats, err = f.b.Heartbeat(f.ctx, renewals(t.Lease(), t.Lease()), 0)
	f.NoError(err)
	f.Equal([]error{nil, nil}, beats, "one answer, however often it is asked, even if that ends it")
	f.claim("c")
}

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

// beat renews a lease, and notes progress at a stage.
func (f *fixture) beat(l store.Lease, at, data string) error {
	f.t.Helper()
	beats, err := f.b.Heartbeat(f.ctx, []store.Renewal{{Lease: l, Progress: store.Progress{Stage: at, Data: []byte(data)}}}, length)
	f.NoError(err)
	f.Len(beats, 1)
	return beats[0]
}

// testProgress has a row for each way in which the progress of a task changes, or does not. Its holder notes "old" first. In
// every condition testLeases notes some.
func testProgress(f *fixture) {
	p := func(at, data string) store.Progress { return store.Progress{Stage: at, Data: []byte(data)} }
	back := store.Return{Stage: created, Status: store.Normal, Runs: true}
	returns := func(p store.Progress) func(store.Task) error {
		r := back
		r.Progress = p
		return func(t store.Task) error { return failure(f.b.Return(f.ctx, t.Lease(), r)) }
	}
	large := strings.Repeat("\x00\xff", 2048)
	for _, row := range []struct {
		name string
		do   func(t store.Task) error
		want string // with the stage it is of
	}{
		{"noted again", func(t store.Task) error { f.beat(t.Lease(), working, "new"); return nil }, "WORKING new"},
		{"as many bytes as may be", func(t store.Task) error { f.beat(t.Lease(), working, large); return nil }, "WORKING " + large},
		{"no bytes", func(t store.Task) error { f.beat(t.Lease(), working, ""); return nil }, "WORKING "},
		{"of another stage", func(t store.Task) error { f.beat(t.Lease(), "ELSEWHERE", "new"); return nil }, "WORKING old"},
		{"a heartbeat without any", func(t store.Task) error { f.beat(t.Lease(), "", ""); return nil }, "WORKING old"},
		{"a lost worker", func(t store.Task) error {
			f.advance(length)
			f.Equal(store.ErrLeaseLost, f.beat(t.Lease(), working, "new"))
			f.ErrorIs(returns(p(working, "new"))(t), store.ErrLeaseLost)
			return nil
		}, "WORKING old"},
		{"a claim after a lost worker", func(t store.Task) error { f.advance(length); f.claim(t.Kind); return nil }, "WORKING old"},
		{"given back with some", returns(p(working, "new")), "WORKING new"},
		{"given back with some of another stage", returns(p(created, "new")), "WORKING old"},
		{"given back without", returns(store.Progress{}), "WORKING old"},
		{"given back, suspended and resumed", func(t store.Task) error {
			f.asked(f.asked(f.returned(t, back), f.suspend), f.resume)
			return nil
		}, "WORKING old"},
		{"a commit that fails", func(t store.Task) error {
			f.Error(f.a.Finish(f.ctx, t.Lease(), passage, func(context.Context, store.Tx) error { return context.Canceled }))
			return nil
		}, "WORKING old"},
		{"a stage that has finished", func(t store.Task) error { return f.a.Finish(f.ctx, t.Lease(), passage, nil) }, " "},
		{"noted late", func(t store.Task) error {
			f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
			f.beat(t.Lease(), working, "new")
			return nil
		}, " "},
		{"the end", func(t store.Task) error { return f.a.Finish(f.ctx, t.Lease(), last, nil) }, " "},
	} {
		t := f.claimed(row.name)
		other := f.claimed(row.name + ", another")
		f.NoError(f.beat(t.Lease(), working, "old"))
		t.ProgressStage, t.Progress = working, []byte("old")
		f.same(t) // which has not changed otherwise
		f.NoError(row.do(t), row.name)
		now := f.get(t.ID)
		f.Equal(row.want, now.ProgressStage+" "+string(now.Progress), row.name)
		if len(now.Progress) > 0 { // the bytes are the reader's own
			now.Progress[0] = '?'
			f.Equal(row.want, working+" "+string(f.get(t.ID).Progress), row.name)
		}
		f.same(other)
	}
}
