package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage"
)

func testEnqueue(f *fixture) {
	id := f.enqueue("report")
	f.Positive(id)
	t := f.get(id)
	f.False(t.Created.IsZero())
	f.Equal(plain(stage.Task{
		ID: id, Kind: "report", Stage: created, Status: stage.Normal, Data: []byte("data of report"),
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
	var many []stage.NewTask
	for i := range 1000 {
		many = append(many, stage.NewTask{Kind: fmt.Sprint("kind ", i%3), Stage: fmt.Sprint("STAGE ", i), Data: []byte{byte(i)}})
	}
	ids, err := f.a.Enqueue(f.ctx, many...)
	f.NoError(err)
	f.Len(ids, len(many))
	f.IsIncreasing(ids)
	for i, id := range ids {
		t := f.get(id)
		f.Equal(many[i], stage.NewTask{Kind: t.Kind, Stage: t.Stage, Data: t.Data})
	}
}

// testLater has tasks that are not due at once. They are claimed in the order in which they become due.
func testLater(f *fixture) {
	now := f.get(f.enqueue("now")).Created
	due := map[stage.ID]time.Duration{}
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
		n := stage.NewTask{Kind: "later", Stage: created, After: row.after}
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
			f.returned(t, stage.Return{Stage: created, Status: stage.Error})
		}
		f.advance(length)
	}
	f.Empty(due)

	suspended := f.enqueued(stage.NewTask{Kind: "later", Stage: created, After: length})
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
		f.Equal(due, f.get(f.enqueued(stage.NewTask{Kind: "at", Stage: created, At: at})).Due, "%v", at)
	}
	const long = time.Duration(math.MaxInt64)
	f.Len(f.claims(9, "at"), 5)
	task := stage.NewTask{Kind: "after", Stage: created, After: long, Key: "k", Within: long}
	first := f.enqueued(task)

	held, back := f.claimed("held"), f.claimed("back")
	f.returned(back, stage.Return{Stage: created, Status: stage.Error, Runs: true, After: long})
	_, err := f.a.Heartbeat(f.ctx, renewals(held.Lease()), long)
	f.NoError(err)
	f.enqueue("leased")
	leased, err := f.a.Claim(f.ctx, stage.Claim{Kinds: []string{"leased"}, Limit: 1, Length: long})
	f.NoError(err)
	f.Len(leased, 1)
	f.advance(200 * 365 * 24 * time.Hour)
	f.Empty(f.claims(9, "after", "held", "back", "leased"))
	f.Equal(first, f.enqueued(task), "the key")
	f.yes(f.a.Cancel(f.ctx, first))
	n, err := f.a.Purge(f.ctx, stage.Purge{Status: stage.Cancelled, Age: long, Limit: 9})
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
		id := f.enqueued(stage.NewTask{Kind: row.name, Stage: created, Data: row.data})
		same(f.get(id).Data)
		t := f.claim(row.name)
		same(t.Data)
		for _, data := range [][]byte{[]byte("something else"), row.data} {
			f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx stage.Tx) error {
				tx.SetData([]byte("the latest counts"))
				tx.SetData(data)
				return nil
			}), row.name)
			f.True(bytes.Equal(data, f.get(id).Data), row.name)
			_, err := f.a.Enter(f.ctx, t.Lease(), working, 0)
			f.NoError(err)
		}
		same(f.get(id).Data)
		listed, err := f.b.List(f.ctx, stage.Selection{Kind: row.name})
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
	id := f.enqueued(stage.NewTask{Kind: "report", Stage: created, Data: given})
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
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, func(_ context.Context, tx stage.Tx) error {
		tx.SetData(given)
		spoil(given)
		return nil
	}))
	for _, s := range []stage.Store{f.a, f.b} {
		t, err = s.Get(f.ctx, id)
		f.NoError(err)
		tasks, err = s.List(f.ctx, stage.Selection{})
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
		n := stage.NewTask{Kind: name, Stage: name, Key: name[:min(len(name), stage.MaxKey)]}
		id := f.enqueued(n)
		f.Equal(id, f.enqueued(n), "the same key")
		same := n
		same.Kind = "keys"
		f.Greater(f.enqueued(same), id, "all keys are different")
		tasks, err := f.a.Claim(f.ctx, stage.Claim{
			Worker: name, Kinds: []string{name}, Limit: 10, Length: length,
			Shows: []stage.Show{{Kind: name, Found: name, Stage: name + "ING"}},
		})
		f.NoError(err, name)
		f.Equal([]stage.ID{id}, ids(tasks), name)
		t := f.get(id)
		f.Equal(plain(t), plain(tasks[0]))
		f.Equal([]string{name, name + "ING", name}, []string{t.Kind, t.Stage, t.Worker})
		listed, err := f.b.List(f.ctx, stage.Selection{Kind: name, Stage: name + "ING"})
		f.NoError(err, name)
		f.Equal([]stage.ID{id}, ids(listed), name)
		_, err = f.a.Return(f.ctx, t.Lease(), stage.Return{Stage: name + "ED", Status: stage.Error, Failure: name})
		f.NoError(err)
		t = f.get(id)
		f.Equal([]string{name + "ED", name}, []string{t.Stage, t.Failure})
	}
}

func testList(f *fixture) {
	none, err := f.a.List(f.ctx, stage.Selection{})
	f.NoError(err)
	f.Empty(none)

	a1, b2, a3, b4, a5 := f.enqueue("a"), f.enqueue("b"), f.enqueue("a"), f.enqueue("b"), f.enqueue("a")
	_, err = f.a.Suspend(f.ctx, a3)
	f.NoError(err)
	_, err = f.a.Suspend(f.ctx, b4)
	f.NoError(err)
	f.Len(f.claims(1, "a"), 1) // a1
	many := []stage.ID{a3, b4, a5}
	for i := range stage.ID(5000) {
		many = append(many, b2-i)
	}
	for _, row := range []struct {
		name      string
		selection stage.Selection
		want      []stage.ID
	}{
		{"all", stage.Selection{}, []stage.ID{a1, b2, a3, b4, a5}},
		{"a kind", stage.Selection{Kind: "a"}, []stage.ID{a1, a3, a5}},
		{"a stage", stage.Selection{Stage: working}, []stage.ID{a1}},
		{"a status", stage.Selection{Status: stage.Suspended}, []stage.ID{a3, b4}},
		{"those that run", stage.Selection{Running: true}, []stage.ID{a1, b2, a5}},
		{"behind a number", stage.Selection{After: b2}, []stage.ID{a3, b4, a5}},
		{"behind less than the first", stage.Selection{After: math.MinInt64}, []stage.ID{a1, b2, a3, b4, a5}},
		{"before a number", stage.Selection{Before: a3}, []stage.ID{a1, b2}},
		{"before a number that is none", stage.Selection{Before: -1}, []stage.ID{}},
		{"the newest", stage.Selection{Newest: true}, []stage.ID{a5, b4, a3, b2, a1}},
		{"the newest of a kind", stage.Selection{Newest: true, Kind: "a", Limit: 2}, []stage.ID{a5, a3}},
		{"those with some numbers", stage.Selection{IDs: []stage.ID{a5, b2, a5, a1}}, []stage.ID{a1, b2, a5}},
		{"very many numbers", stage.Selection{IDs: many}, []stage.ID{a1, b2, a3, b4, a5}},
		{"none", stage.Selection{IDs: []stage.ID{}}, []stage.ID{}},
		{"numbers that no task has", stage.Selection{IDs: []stage.ID{0, -1, a5 + 1000, math.MaxInt64, math.MinInt64, b4}}, []stage.ID{b4}},
		{"some numbers, a page", stage.Selection{IDs: []stage.ID{a5, b4, b2, a1}, After: a1, Before: a5, Limit: 1}, []stage.ID{b2}},
		{"some", stage.Selection{Limit: 2}, []stage.ID{a1, b2}},
		{"a page of a kind: the limit counts what passes", stage.Selection{Kind: "a", After: a1, Limit: 1}, []stage.ID{a3}},
	} {
		tasks, err := f.b.List(f.ctx, row.selection)
		f.NoError(err, row.name)
		f.Equal(row.want, ids(tasks), row.name)
		for _, t := range tasks {
			f.same(t)
		}
	}
	f.yes(f.cancel(a5))
	tasks, err := f.b.List(f.ctx, stage.Selection{Ended: true})
	f.NoError(err)
	f.Equal([]stage.ID{a5}, ids(tasks), "a suspended task has not ended")
}
