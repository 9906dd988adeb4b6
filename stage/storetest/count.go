package storetest

import "github.com/daimon-go/daimon/stage"

func testCounts(f *fixture) {
	row := func(kind, at string, status stage.Status, n int) stage.Count {
		return stage.Count{Kind: kind, Stage: at, Status: status, N: n}
	}
	counts := func(want ...stage.Count) {
		f.t.Helper()
		got, err := f.b.Counts(f.ctx)
		f.NoError(err)
		f.Equal(want, got)
	}
	none, err := f.a.Counts(f.ctx)
	f.NoError(err)
	f.Empty(none)

	f.enqueue("b")
	_, err = f.a.Enqueue(f.ctx, stage.NewTask{Kind: "a", Stage: created}, stage.NewTask{Kind: "a", Stage: created}, stage.NewTask{Kind: "a", Stage: done})
	f.NoError(err)
	counts(row("a", created, stage.Normal, 2), row("a", done, stage.Normal, 1), row("b", created, stage.Normal, 1))

	b := f.claim("b")
	_, err = f.a.Heartbeat(f.ctx, renewals(b.Lease()), length)
	f.NoError(err)
	f.yes(f.a.Suspend(f.ctx, b.ID))
	rest := []stage.Count{row("a", created, stage.Normal, 2), row("a", done, stage.Normal, 1)}
	counts(append(rest, row("b", working, stage.InProcessing, 1))...)
	f.yes(f.a.Resume(f.ctx, b.ID, false))
	f.NoError(f.a.Finish(f.ctx, b.Lease(), passage, nil))
	counts(append(rest, row("b", done, stage.InProcessing, 1))...)
	_, err = f.a.Enter(f.ctx, b.Lease(), working, 0)
	f.NoError(err)
	counts(append(rest, row("b", working, stage.InProcessing, 1))...)
	_, err = f.a.Return(f.ctx, b.Lease(), stage.Return{Stage: created, Status: stage.Error})
	f.NoError(err)
	counts(append(rest, row("b", created, stage.Error, 1))...)
	f.yes(f.a.Resume(f.ctx, b.ID, true))
	counts(append(rest, row("b", created, stage.Resumed, 1))...)
	f.yes(f.a.Suspend(f.ctx, b.ID))
	counts(append(rest, row("b", created, stage.Suspended, 1))...)
	f.yes(f.a.Cancel(f.ctx, b.ID))
	counts(append(rest, row("b", created, stage.Cancelled, 1))...)

	for _, t := range f.claims(3, "a") {
		f.NoError(f.a.Finish(f.ctx, t.Lease(), last, nil))
	}
	counts(row("a", done, stage.Normal, 3), row("b", created, stage.Cancelled, 1))
}
