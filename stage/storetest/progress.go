package storetest

import (
	"context"
	"strings"

	"github.com/daimon-go/daimon/stage/store"
)

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
