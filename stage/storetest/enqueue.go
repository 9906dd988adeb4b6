package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

func testEnqueue(f *fixture) {
	id := f.enqueue("report")
	f.Positive(id)
	t := f.get(id)
	f.False(t.Created.IsZero())
	f.Equal(plain(store.Task{
		ID: id, Kind: "report", Stage: created, Status: store.Normal, Data: []byte("data of report"),
		Due: t.Created, Created: t.Created, Changed: t.Created,
	}), plain(t), "normal, due at once, with no attempts, no worker, no token")

	f.advance(length)
	second := f.enqueue("report")
	f.NotEqual(id, second)
	f.Equal(length, f.get(second).Created.Sub(t.Created), "the clock is the store's")
	f.same(t)

	none, err := f.a.Enqueue(f.ctx)
	f.NoError(err)
	f.Empty(none)
	var many []store.NewTask
	for i := range 1000 {
		many = append(many, store.NewTask{Kind: fmt.Sprint("kind ", i%3), Stage: fmt.Sprint("STAGE ", i), Data: []byte{byte(i)}})
	}
	ids, err := f.a.Enqueue(f.ctx, many...)
	f.NoError(err)
	f.Len(ids, len(many))
	f.IsIncreasing(ids)
	for i, id := range ids {
		t := f.get(id)
		f.Equal(many[i], store.NewTask{Kind: t.Kind, Stage: t.Stage, Data: t.Data})
	}
}

// testLater has tasks that are not due at once. They are claimed in the order in which they become due.
func testLater(f *fixture) {
	now := f.get(f.enqueue("now")).Created
	due := map[store.ID]time.Duration{}
	for _, row := range []struct {
		after, at, due time.Duration
	}{
		{after: 3 * length, due: 3 * length},
		{at: 2 * length, due: 2 * length},
		{after: -length, due: 0},
		{at: -length, due: 0},
		{after: length, at: 4 * length, due: 4 * length},
		{after: length, at: -length, due: length},
	} {
		n := store.NewTask{Kind: "later", Stage: created, After: row.after}
		if row.at != 0 {
			n.At = now.Add(row.at).In(time.FixedZone("", 3600))
		}
		id := f.enqueued(n)
		due[id] = row.due
		t := f.get(id)
		f.Equal(row.due, t.Due.Sub(now), "%v", row)
		f.Equal(now, t.Created)
		f.True(t.Runs())
		f.False(t.Finished())
	}
	for step := range time.Duration(5) {
		for _, t := range f.claims(9, "later") {
			f.Equal(step*length, due[t.ID])
			delete(due, t.ID)
			f.returned(t, store.Return{Stage: created, Status: store.Failed})
		}
		f.advance(length)
	}
	f.Empty(due)

	suspended := f.enqueued(store.NewTask{Kind: "later", Stage: created, After: length})
	f.yes(f.a.Suspend(f.ctx, suspended))
	f.yes(f.a.Resume(f.ctx, suspended, false))
	f.Len(f.claims(9, "later"), 1, "resumed means at once")
}

// testFarTimes has times that no database has, and the longest durations: what is far away is not due.
func testFarTimes(f *fixture) {
	begun := f.get(f.enqueue("now")).Created
	end := time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC)
	for at, due := range map[time.Time]time.Time{
		time.Unix(1<<62, 0): end, time.Unix(math.MaxInt64, 0): end, end.Add(1): end, end.AddDate(-1, 0, 0): end.AddDate(-1, 0, 0),
		time.Unix(-1<<62, 0): begun, time.Unix(-9e12, 0): begun, time.Unix(0, 0): begun, time.Time{}.Add(1): begun, {}: begun,
	} {
		f.Equal(due, f.get(f.enqueued(store.NewTask{Kind: "at", Stage: created, At: at})).Due, "%v", at)
	}
	const long = time.Duration(math.MaxInt64)
	f.Len(f.claims(9, "at"), 5)
	task := store.NewTask{Kind: "after", Stage: created, After: long, Key: "k", Within: long}
	first := f.enqueued(task)

	held, back := f.claimed("held"), f.claimed("back")
	f.returned(back, store.Return{Stage: created, Status: store.Failed, Runs: true, After: long})
	_, err := f.a.Heartbeat(f.ctx, renewals(held.Lease()), long)
	f.NoError(err)
	f.enqueue("leased")
	leased, err := f.a.Claim(f.ctx, store.Claim{Kinds: []string{"leased"}, Limit: 1, Length: long})
	f.NoError(err)
	f.Len(leased, 1)
	f.advance(200 * 365 * 24 * time.Hour)
	f.Empty(f.claims(9, "after", "held", "back", "leased"))
	f.Equal(first, f.enqueued(task), "the key")
	f.yes(f.a.Cancel(f.ctx, first))
	n, err := f.a.Purge(f.ctx, store.Canceled, long, 9)
	f.NoError(err)
	f.Zero(n)
}

func testData(f *fixture) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, row := range []struct {
		name string
		data []byte
	}{
		{"none", nil},
		{"empty", []byte{}},
		{"a NUL", []byte{0}},
		{"every byte", every},
		{"no text", []byte{0xff, 0xfe, 0}},
		{"1 MiB", bytes.Repeat(every, 4096)},
	} {
		same := func(got []byte) {
			f.True(bytes.Equal(row.data, got), row.name) // Equal would print it
			if len(row.data) == 0 {
				f.Nil(got, row.name)
			}
		}
		id := f.enqueued(store.NewTask{Kind: row.name, Stage: created, Data: row.data})
		same(f.get(id).Data)
		t := f.claim(row.name)
		same(t.Data)
		for _, data := range [][]byte{[]byte("something else"), row.data} {
			f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx store.Tx) error {
				tx.SetData([]byte("the latest counts"))
				tx.SetData(data)
				return nil
			}), row.name)
			f.True(bytes.Equal(data, f.get(id).Data), row.name)
			_, err := f.a.Enter(f.ctx, t.Lease(), working, 0)
			f.NoError(err)
		}
		same(f.get(id).Data)
		listed, err := f.b.List(f.ctx, store.Selection{Kind: row.name})
		f.NoError(err)
		f.Len(listed, 1)
		same(listed[0].Data)
	}
}

// testBytes writes into all bytes that it has given, and that it was given.
func testBytes(f *fixture) {
	spoil := func(data []byte) {
		for i := range data {
			data[i] = 'x'
		}
	}
	given := []byte("as enqueued")
	id := f.enqueued(store.NewTask{Kind: "report", Stage: created, Data: given})
	spoil(given)

	tasks := f.claims(1, "report")
	f.Equal("as enqueued", string(tasks[0].Data))
	f.Equal(plain(f.get(id)), plain(tasks[0]))
	spoil(tasks[0].Data)
	f.Equal("as enqueued", string(f.get(id).Data))

	t, err := f.a.Enter(f.ctx, tasks[0].Lease(), working, 0)
	f.NoError(err)
	spoil(t.Data)
	f.Equal("as enqueued", string(f.get(id).Data))

	given = []byte("as finished")
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx store.Tx) error {
		tx.SetData(given)
		spoil(given)
		return nil
	}))
	for _, s := range []store.Store{f.a, f.b} {
		t, err = s.Get(f.ctx, id)
		f.NoError(err)
		tasks, err = s.List(f.ctx, store.Selection{})
		f.NoError(err)
		for _, data := range [][]byte{t.Data, tasks[0].Data, f.get(id).Data} {
			f.Equal("as finished", string(data))
			spoil(data)
		}
	}
	f.Equal("as finished", string(f.get(id).Data))
}

// testNames uses names that would do harm where texts are put together.
func testNames(f *fixture) {
	for _, name := range []string{
		`it's`, `"; DROP TABLE daimon_task; --`, "%_*?", "Überblick 報告 😀", " ", "  ", `{a,"b\\c"}`, "NULL", strings.Repeat("long ", 100),
	} {
		n := store.NewTask{Kind: name, Stage: name, Key: name[:min(len(name), store.MaxKey)]}
		id := f.enqueued(n)
		f.Equal(id, f.enqueued(n), "the same key")
		same := n
		same.Kind = "keys"
		f.Greater(f.enqueued(same), id, "all keys are different")
		tasks, err := f.a.Claim(f.ctx, store.Claim{
			Worker: name, Kinds: []string{name}, Limit: 10, Length: length,
			Shows: []store.Show{{Kind: name, Found: name, Stage: name + "ING"}},
		})
		f.NoError(err, name)
		f.Equal([]store.ID{id}, ids(tasks), name)
		t := f.get(id)
		f.Equal(plain(t), plain(tasks[0]))
		f.Equal([]string{name, name + "ING", name}, []string{t.Kind, t.Stage, t.Worker})
		listed, err := f.b.List(f.ctx, store.Selection{Kind: name, Stage: name + "ING"})
		f.NoError(err, name)
		f.Equal([]store.ID{id}, ids(listed), name)
		_, err = f.a.Return(f.ctx, t.Lease(), store.Return{Stage: name + "ED", Status: store.Failed, Failure: name})
		f.NoError(err)
		t = f.get(id)
		f.Equal([]string{name + "ED", name}, []string{t.Stage, t.Failure})
	}
}

func testList(f *fixture) {
	none, err := f.a.List(f.ctx, store.Selection{})
	f.NoError(err)
	f.Empty(none)

	a1, b2, a3, b4, a5 := f.enqueue("a"), f.enqueue("b"), f.enqueue("a"), f.enqueue("b"), f.enqueue("a")
	_, err = f.a.Suspend(f.ctx, a3)
	f.NoError(err)
	_, err = f.a.Suspend(f.ctx, b4)
	f.NoError(err)
	f.Len(f.claims(1, "a"), 1) // a1
	many := []store.ID{a3, b4, a5}
	for i := range store.ID(5000) {
		many = append(many, b2-i)
	}
	for _, row := range []struct {
		name      string
		selection store.Selection
		want      []store.ID
	}{
		{"all", store.Selection{}, []store.ID{a1, b2, a3, b4, a5}},
		{"a kind", store.Selection{Kind: "a"}, []store.ID{a1, a3, a5}},
		{"a stage", store.Selection{Stage: working}, []store.ID{a1}},
		{"a status", store.Selection{Status: store.Suspended}, []store.ID{a3, b4}},
		{"tasks that run", store.Selection{Running: true}, []store.ID{a1, b2, a5}},
		{"after a number", store.Selection{After: b2}, []store.ID{a3, b4, a5}},
		{"behind less than the first", store.Selection{After: math.MinInt64}, []store.ID{a1, b2, a3, b4, a5}},
		{"before a number", store.Selection{Before: a3}, []store.ID{a1, b2}},
		{"before a number that is none", store.Selection{Before: -1}, []store.ID{}},
		{"the newest", store.Selection{Newest: true}, []store.ID{a5, b4, a3, b2, a1}},
		{"the newest of a kind", store.Selection{Newest: true, Kind: "a", Limit: 2}, []store.ID{a5, a3}},
		{"those with some numbers", store.Selection{IDs: []store.ID{a5, b2, a5, a1}}, []store.ID{a1, b2, a5}},
		{"very many numbers", store.Selection{IDs: many}, []store.ID{a1, b2, a3, b4, a5}},
		{"none", store.Selection{IDs: []store.ID{}}, []store.ID{}},
		{"numbers that no task has", store.Selection{IDs: []store.ID{0, -1, a5 + 1000, math.MaxInt64, math.MinInt64, b4}}, []store.ID{b4}},
		{"some numbers, a page", store.Selection{IDs: []store.ID{a5, b4, b2, a1}, After: a1, Before: a5, Limit: 1}, []store.ID{b2}},
		{"some", store.Selection{Limit: 2}, []store.ID{a1, b2}},
		{"a page of a kind: the limit counts what passes", store.Selection{Kind: "a", After: a1, Limit: 1}, []store.ID{a3}},
	} {
		tasks, err := f.b.List(f.ctx, row.selection)
		f.NoError(err, row.name)
		f.Equal(row.want, ids(tasks), row.name)
		for _, t := range tasks {
			f.same(t)
		}
	}
	f.yes(f.cancel(a5))
	tasks, err := f.b.List(f.ctx, store.Selection{Ended: true})
	f.NoError(err)
	f.Equal([]store.ID{a5}, ids(tasks), "a suspended task has not ended")
}

// keyed is a task with a key.
func keyed(kind, key string, within time.Duration) store.NewTask {
	return store.NewTask{Kind: kind, Stage: created, Data: []byte("data"), Key: key, Within: within}
}

func testKeys(f *fixture) {
	first := f.enqueued(keyed("a", "k", 0))
	was := f.get(first)
	f.advance(length)
	again := keyed("a", "k", 0)
	again.Stage, again.Data, again.After = "ELSEWHERE", []byte("other data"), time.Hour
	f.Equal(first, f.enqueued(again))
	f.same(was)

	f.Greater(f.enqueued(keyed("b", "k", 0)), first, "another kind")
	f.Greater(f.enqueued(keyed("a", "K", 0)), first, "another key")
	f.Greater(f.enqueue("a"), first, "no key")
	f.Greater(f.enqueued(keyed("ak", "", time.Hour)), first, "no key, whatever the time")
	f.Greater(f.enqueued(keyed("ak", "", time.Hour)), first)

	// Whatever has become of the task.
	f.yes(f.suspend(first))
	f.Equal(first, f.enqueued(keyed("a", "k", 0)))
	f.yes(f.resume(first))
	f.yes(f.a.Cancel(f.ctx, first))
	f.advance(time.Hour)
	f.Equal(first, f.enqueued(keyed("a", "k", 0)))
	f.Equal(store.Canceled, f.get(first).Status)
}

// testKeyWindow has windows that begin when a task is added, and not when another one was not.
func testKeyWindow(f *fixture) {
	first := f.enqueued(keyed("a", "k", length))
	f.advance(length - time.Millisecond)
	f.Equal(first, f.enqueued(keyed("a", "k", length)))
	f.Equal(first, f.enqueued(keyed("a", "k", length-time.Millisecond+1)))
	f.advance(time.Millisecond)
	f.Equal(first, f.enqueued(keyed("a", "k", length+1)), "it is the new task that says how long")
	second := f.enqueued(keyed("a", "k", length))
	f.Greater(second, first, "exactly that long ago is too long")
	f.Equal(second, f.enqueued(keyed("a", "k", 0)))
	f.Equal(second, f.enqueued(keyed("a", "k", 2*length)), "the latest one")
	f.advance(time.Millisecond)
	third := f.enqueued(keyed("a", "k", time.Millisecond))
	f.Greater(third, second)
	f.advance(time.Millisecond)
	f.Equal(third, f.enqueued(keyed("a", "k", time.Millisecond+1)))
	f.Equal(third, f.enqueued(keyed("a", "k", 1<<63-1)))
}

func testKeyNames(f *fixture) {
	for name, bad := range map[string]store.NewTask{
		"bytes": keyed("a", strings.Repeat("k", store.MaxKey+1), 0), "NUL": keyed("a", "a\x00b", 0),
		"UTF-8": keyed("a", "a\xffb", 0), "negative": keyed("a", "k", -1),
	} {
		ids, err := f.a.Enqueue(f.ctx, keyed("a", "", 0), bad)
		f.ErrorContains(err, name)
		f.Empty(ids)
	}
	all, err := f.a.List(f.ctx, store.Selection{})
	f.NoError(err)
	f.Empty(all, "all or none")
}

// testKeysAtOnce has many enqueue the same keys at once, in different orders. None waits for another one in a circle.
func testKeysAtOnce(f *fixture) {
	const keys = 20
	for round := range 10 {
		within := []time.Duration{0, time.Hour}[round%2]
		var got [goroutines]map[string]store.ID
		var errs [goroutines]error
		together(goroutines, func(i int) {
			var tasks []store.NewTask
			for _, k := range rand.Perm(keys) {
				tasks = append(tasks, keyed("a", fmt.Sprintf("%d of %d", k, round), within))
			}
			ids, err := f.side(i).Enqueue(polite{f.ctx}, tasks...)
			got[i], errs[i] = map[string]store.ID{}, err
			for j, id := range ids {
				got[i][tasks[j].Key] = id
			}
		})
		for i := range goroutines {
			f.NoError(errs[i])
			f.Len(got[i], keys)
			f.Equal(got[0], got[i], "one task for each key")
		}
	}
	all, err := f.a.List(f.ctx, store.Selection{})
	f.NoError(err)
	f.Len(all, 10*keys)
}

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
