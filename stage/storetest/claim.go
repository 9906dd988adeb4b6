package storetest

import (
	"time"

	"github.com/daimon-go/daimon/stage"
)

func testClaim(f *fixture) {
	id := f.enqueue("report")
	f.advance(time.Second)
	was := f.get(id)
	now := was.Created.Add(time.Second)
	asked := 0
	tasks, err := f.a.Claim(f.ctx, stage.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 1, Length: length,
		Enter: func(t *stage.Task) (string, int) {
			asked++
			f.Equal(plain(was), plain(*t), "as it was before")
			return working, 3
		},
	})
	f.NoError(err)
	f.Positive(asked)
	f.Len(tasks, 1)
	want := was
	want.Stage, want.Status, want.Attempt = working, stage.InProcessing, 3
	want.Worker, want.Token = "ann", tasks[0].Token
	want.Due, want.Changed = now.Add(length), now
	f.Equal(plain(want), plain(tasks[0]))
	f.Positive(want.Token)
	f.same(want)
	f.Empty(f.claims(1, "report"), "it is given once")
	f.same(want)
}

func testClaimOrder(f *fixture) {
	claim := func(worker string) stage.Task {
		tasks, err := f.a.Claim(f.ctx, stage.Claim{Worker: worker, Kinds: []string{"a"}, Limit: 1, Length: length, Enter: keep})
		f.NoError(err)
		f.Len(tasks, 1)
		return tasks[0]
	}
	giveBack := func(t stage.Task, status stage.Status, after time.Duration) {
		f.returned(t, stage.Return{Stage: created, Status: status, Runs: true, After: after})
	}
	first := f.enqueue("a")
	f.advance(time.Millisecond)
	f.enqueue("a")
	third := f.enqueue("a")
	fourth := f.enqueue("a")

	lost := claim("left by it") // the first; due when its lease has ended, in 10 s
	f.Equal(first, lost.ID)
	failed := claim("fails")
	giveBack(failed, stage.Error, 5*time.Second)
	interrupted := claim("stops")
	f.Equal(third, interrupted.ID)
	giveBack(interrupted, stage.Normal, 7*time.Second)
	f.yes(f.suspend(fourth))
	f.advance(6 * time.Second)
	f.yes(f.resume(fourth)) // due in 6 s
	f.advance(5 * time.Second)
	other := f.enqueue("b") // due in 11 s
	fresh := f.enqueue("a")

	order := []stage.ID{failed.ID, fourth, interrupted.ID, lost.ID, other, fresh}
	f.Equal(order[:2], ids(f.claims(2, "b", "a")), "the longest due first")
	f.Equal(order[2:5], ids(f.claims(3, "a", "b")), "whatever the order of the kinds")
	f.Equal(order[5:], ids(f.claims(3, "a", "b")))

	f.advance(length) // all at once: the lower numbers first
	f.Equal([]stage.ID{first, failed.ID, third, fourth, other, fresh}, ids(f.claims(10, "b", "a")))
}

func testClaimFilter(f *fixture) {
	a1, b2, a3 := f.enqueue("a"), f.enqueue("b"), f.enqueue("a")
	later := f.enqueue("later")
	f.returned(f.claim("later"), stage.Return{Stage: created, Status: stage.Normal, Runs: true, After: time.Second})

	f.Empty(f.claims(10), "no kinds")
	f.Empty(f.claims(10, []string{}...), "an empty list of kinds")
	f.Empty(f.claims(10, "c", ""), "kinds that are not there")
	f.Empty(f.claims(0, "a"), "none wanted")
	f.Empty(f.claims(-1, "a"), "less than none wanted")
	f.Empty(f.claims(10, "later"), "not due yet")
	f.Equal([]stage.ID{b2}, ids(f.claims(10, "b", "c", "later")), "only its kinds")
	f.Equal([]stage.ID{a1}, ids(f.claims(1, "a", "b")), "no more than it wants")
	f.Equal([]stage.ID{a3}, ids(f.claims(2, "a", "a", "b")), "each task once, however often its kind is there")
	f.advance(time.Second - time.Millisecond)
	f.Empty(f.claims(10, "a", "b", "later"), "not due yet")
	f.advance(time.Millisecond)
	f.Equal([]stage.ID{later}, ids(f.claims(10, "a", "b", "later")), "due")

	for range 10 {
		f.enqueue("many")
	}
	tasks, err := f.a.Claim(f.ctx, stage.Claim{Kinds: []string{"many", "many"}, Limit: 4, Length: 0, Enter: keep})
	f.NoError(err)
	f.Len(tasks, 4)
	first := ids(tasks)
	f.IsIncreasing(first, "also with leases that end at once")
	f.Equal(first, ids(f.claims(4, "many")), "they are due again at once, as long as the others are")
}

// testClaimEnter returns another stage for each task.
func testClaimEnter(f *fixture) {
	var order []stage.ID
	stages := map[stage.ID]string{}
	for _, name := range []string{"X", "Y", "Z"} {
		id := f.enqueue("a")
		order, stages[id] = append(order, id), name
	}
	claim := stage.Claim{
		Worker: "ann", Kinds: []string{"a"}, Limit: 3, Length: length,
		Enter: func(t *stage.Task) (string, int) { return stages[t.ID], int(t.ID) },
	}
	tasks, err := f.a.Claim(f.ctx, claim)
	f.NoError(err)
	f.Equal(order, ids(tasks))
	for _, t := range tasks {
		f.Equal(stages[t.ID], t.Stage)
		f.Equal(int(t.ID), t.Attempt)
		f.same(t)
	}

	// A request and a failure survive the loss of a lease: Enter sees them, and the claim keeps them.
	f.returned(tasks[0], failed)
	t := f.claim("a")
	f.Equal("no luck", t.Failure)
	f.Equal(2, t.Attempt)
	f.yes(f.suspend(t.ID))
	f.advance(length)
	was := f.get(t.ID)
	f.Equal(stage.Suspension, was.Wanted)
	var seen stage.Task
	claim.Enter = func(t *stage.Task) (string, int) {
		if t.ID == was.ID {
			seen = *t
		}
		return t.Stage, t.Attempt + 1
	}
	tasks, err = f.a.Claim(f.ctx, claim)
	f.NoError(err)
	f.Len(tasks, 3)
	f.Equal(plain(was), plain(seen))
	for _, t := range tasks {
		f.same(t)
		if t.ID == was.ID {
			f.Equal(stage.Suspension, t.Wanted)
			f.Equal("no luck", t.Failure)
			f.Equal(3, t.Attempt)
		}
	}
}

func testClaimPanics(f *fixture) {
	first, second := f.enqueue("a"), f.enqueue("a")
	was := []stage.Task{f.get(first), f.get(second)}
	for name, end := range ends {
		escapes(f, name, func() {
			_, _ = f.a.Claim(f.ctx, stage.Claim{
				Kinds: []string{"a"}, Limit: 2, Length: length,
				Enter: func(t *stage.Task) (string, int) {
					if t.ID == second {
						end()
					}
					return working, 7
				},
			})
		})
		f.same(was[0])
		f.same(was[1])
	}
	f.Equal([]stage.ID{first, second}, ids(f.claims(2, "a")), "both are still there")
}
