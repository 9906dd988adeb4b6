package storetest

import (
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// tick makes a call with one tick, and returns the record, and how many tasks of the name there are then.
func (f *fixture) tick(t store.Tick) (last time.Time, tasks int) {
	f.t.Helper()
	if t.Tasks == nil {
		t.Tasks = []store.NewTask{{Kind: t.Name, Stage: created, Data: []byte("data")}}
	}
	_, records, err := f.a.Tick(f.ctx, t)
	f.NoError(err)
	f.Len(records, 1)
	all, err := f.b.List(f.ctx, store.Selection{Kind: t.Name})
	f.NoError(err)
	return records[0], len(all)
}

func testTicks(f *fixture) {
	begun := f.get(f.enqueue("now")).Created
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	tick := func(last, next time.Duration) store.Tick {
		return store.Tick{Name: "t", Last: at(last), Next: at(next)}
	}
	is := func(t store.Tick, want time.Duration, tasks int) {
		f.t.Helper()
		last, n := f.tick(t)
		f.True(last.Equal(at(want)), "%v after %v", last, begun)
		f.Equal(tasks, n)
	}
	now, none, err := f.a.Tick(f.ctx)
	f.NoError(err)
	f.True(now.Equal(begun))
	f.Empty(none)

	is(store.Tick{Name: "t", Next: at(0)}, 0, 0) // a new name begins now, whatever is asked
	f.advance(length)
	is(store.Tick{Name: "t"}, 0, 0)                 // it is known now
	is(store.Tick{Name: "t", Next: at(1000)}, 0, 0) // and not by an engine that does not know the record
	is(tick(length, length), 0, 0)                  // nor by one that has another record
	is(tick(0, length+time.Millisecond), 0, 0)      // it is not time yet
	is(tick(0, 0), 0, 0)                            // it is the same one
	is(tick(0, -length), 0, 0)                      // or an earlier one
	is(tick(0, length-time.Millisecond), length-time.Millisecond, 1)
	is(tick(0, length-time.Millisecond), length-time.Millisecond, 1) // repeated: the answer may have been lost
	is(tick(0, length), length-time.Millisecond, 1)
	is(tick(length-time.Millisecond, length), length, 2) // just in time
	f.advance(time.Hour)
	empty := tick(length, length+time.Minute)
	empty.Tasks = []store.NewTask{}
	is(empty, length+time.Minute, 2) // without tasks
	several := tick(length+time.Minute, time.Hour)
	several.Next = several.Next.In(time.FixedZone("", 3600))
	several.Tasks = []store.NewTask{{Kind: "t", Stage: created, Key: "k"}, {Kind: "t", Stage: created}, {Kind: "t", Stage: created, Key: "k"}}
	is(several, time.Hour, 4)
	all, err := f.b.List(f.ctx, store.Selection{Kind: "t"})
	f.NoError(err)
	t := all[0]
	f.Equal(plain(store.Task{
		ID: t.ID, Kind: "t", Stage: created, Status: store.Normal, Data: []byte("data"),
		Due: at(length), Created: at(length), Changed: at(length),
	}), plain(t))

	bad := tick(time.Hour, time.Hour+1e9)
	bad.Tasks = []store.NewTask{{Kind: "t", Stage: created, Key: "a\x00b"}}
	_, _, err = f.a.Tick(f.ctx, bad)
	f.Error(err)
	is(tick(0, 0), time.Hour, 4)

	f.advance(-time.Hour)
	is(tick(time.Hour, length+time.Millisecond), time.Hour, 4) // the record is ahead, but it is not time yet
	is(tick(0, time.Second), time.Hour, 4)                     // another record
	is(tick(time.Hour, time.Second), time.Second, 5)           // and so it goes back,
	is(tick(time.Second, 0), time.Second, 5)                   // but no further
	is(tick(time.Second, length), length, 6)
}
