package storetest

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// calls are all methods, as they would succeed for a claimed task, but for the context.
func calls(t store.Task) map[string]func(context.Context, store.Store) error {
	return map[string]func(context.Context, store.Store) error{
		"Enqueue": func(ctx context.Context, s store.Store) error {
			return failure(s.Enqueue(ctx, store.NewTask{Kind: "b", Stage: created}))
		},
		"Enqueue with a key": func(ctx context.Context, s store.Store) error {
			return failure(s.Enqueue(ctx, store.NewTask{Kind: "b", Stage: created, Key: "k"}))
		},
		"Tick": func(ctx context.Context, s store.Store) error {
			_, _, err := s.Tick(ctx, store.Tick{Name: "t"})
			return err
		},
		"Tick of nothing": func(ctx context.Context, s store.Store) error { _, _, err := s.Tick(ctx); return err },
		"Claim": func(ctx context.Context, s store.Store) error {
			return failure(s.Claim(ctx, store.Claim{Kinds: []string{t.Kind, "fresh"}, Limit: 10, Length: length}))
		},
		"Claimed": func(ctx context.Context, s store.Store) error { return failure(s.Claimed(ctx, store.Ticket{})) },
		"Enter": func(ctx context.Context, s store.Store) error {
			return failure(s.Enter(ctx, t.Lease(), "ELSEWHERE", 9))
		},
		"Finish": func(ctx context.Context, s store.Store) error {
			return s.Finish(ctx, t.Lease(), last, func(_ context.Context, tx store.Tx) error {
				tx.SetData(nil)
				return nil
			})
		},
		"Return": func(ctx context.Context, s store.Store) error { return failure(s.Return(ctx, t.Lease(), failed)) },
		"Heartbeat": func(ctx context.Context, s store.Store) error {
			return failure(s.Heartbeat(ctx, renewals(t.Lease()), 9*length))
		},
		"Suspend":   func(ctx context.Context, s store.Store) error { return failure(s.Suspend(ctx, t.ID)) },
		"Resume":    func(ctx context.Context, s store.Store) error { return failure(s.Resume(ctx, t.ID, true)) },
		"Cancel":    func(ctx context.Context, s store.Store) error { return failure(s.Cancel(ctx, t.ID)) },
		"SetPaused": func(ctx context.Context, s store.Store) error { return failure(s.SetPaused(ctx, "fresh", true)) },
		"SetPaused, to end a pause": func(ctx context.Context, s store.Store) error {
			return failure(s.SetPaused(ctx, "paused", false))
		},
		"Paused":   func(ctx context.Context, s store.Store) error { return failure(s.Paused(ctx)) },
		"Get":      func(ctx context.Context, s store.Store) error { return failure(s.Get(ctx, t.ID)) },
		"Failures": func(ctx context.Context, s store.Store) error { return failure(s.Failures(ctx, t.ID)) },
		"List":     func(ctx context.Context, s store.Store) error { return failure(s.List(ctx, store.Selection{})) },
		"List of some": func(ctx context.Context, s store.Store) error {
			return failure(s.List(ctx, store.Selection{IDs: []store.ID{t.ID}}))
		},
		"Purge": func(ctx context.Context, s store.Store) error {
			return failure(s.Purge(ctx, store.Normal, 0, 1))
		},
		"Counts": func(ctx context.Context, s store.Store) error { return failure(s.Counts(ctx)) },
	}
}

func testEndedContext(f *fixture) {
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	late, cancel := context.WithDeadline(f.ctx, time.Unix(0, 0))
	defer cancel()
	f.enqueue("fresh")
	f.yes(f.a.SetPaused(f.ctx, "paused", true))
	t := f.asked(f.claimed("a"), f.suspend)
	before, err := f.b.List(f.ctx, store.Selection{})
	f.NoError(err)
	for name, call := range calls(t) {
		for range 20 { // whichever case a select takes first
			f.ErrorIs(call(ended, f.a), context.Canceled, name)
		}
		f.ErrorIs(call(late, f.a), context.DeadlineExceeded, name)
		after, err := f.b.List(f.ctx, store.Selection{})
		f.NoError(err)
		f.Equal(before, after, name)
		paused, err := f.b.Paused(f.ctx)
		f.NoError(err)
		f.Equal([]string{"paused"}, paused, name)
	}
}

// testContextEnds asks for changes of a task while a commit holds it.
func testContextEnds(f *fixture) {
	t := f.claimed("a")
	writing, goOn := make(chan struct{}), make(chan struct{})
	var finished error
	wait := start(1, func(int) {
		finished = f.a.Finish(f.ctx, t.Lease(), last, func(context.Context, store.Tx) error {
			close(writing)
			select {
			case <-goOn:
				return nil
			case <-f.ctx.Done(): // the store waits longer than it may
				return f.ctx.Err()
			}
		})
	})
	<-writing
	all := calls(t)
	for _, name := range []string{"Enter", "Finish", "Return", "Suspend", "Cancel"} {
		for _, s := range []store.Store{f.a, f.b} {
			ctx, cancel := context.WithTimeout(f.ctx, 20*time.Millisecond)
			err := all[name](ctx, s)
			cancel()
			f.ErrorIs(err, context.DeadlineExceeded, name)
		}
	}
	close(goOn)
	wait()
	f.NoError(finished)
	want := f.get(t.ID)
	f.Equal(done, want.Stage)
	f.Equal(store.Normal, want.Status)
	f.Equal(t.Data, want.Data, "and nothing of what was given up comes later")
	f.Empty(want.Wanted)
}
