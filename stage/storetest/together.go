package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// goroutines is how many ask at once.
const goroutines = 8

// start calls do n times at once. wait waits until all have returned or ended otherwise.
func start(n int, do func(i int)) (wait func()) {
	var all sync.WaitGroup
	ready := make(chan struct{})
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			<-ready
			do(i)
		}()
	}
	close(ready)
	return all.Wait
}

func together(n int, do func(i int)) { start(n, do)() }

// polite is a context that lets others go first whenever it is asked whether it has ended, as a store does before it waits.
type polite struct{ context.Context }

func (c polite) Err() error {
	runtime.Gosched()
	return c.Context.Err()
}

// side is the connection of a goroutine.
func (f *fixture) side(i int) store.Store { return []store.Store{f.a, f.b}[i%2] }

func testClaimsAtOnce(f *fixture) {
	const tasks = 120
	kinds := []string{"a", "b", "c"}
	for i := range tasks {
		f.enqueue(kinds[i%3])
	}
	var got [goroutines][]store.Task
	var errs [goroutines]error
	together(goroutines, func(i int) {
		for limit := i; limit < i+2*tasks; limit++ {
			claimed, err := f.side(i).Claim(f.ctx, store.Claim{
				Worker: fmt.Sprint(i), Kinds: kinds, Limit: 1 + limit%4, Length: length,
			})
			if len(claimed) == 0 || err != nil {
				errs[i] = err
				return
			}
			got[i] = append(got[i], claimed...)
		}
	})
	seen := map[store.ID]bool{}
	for i := range goroutines {
		f.NoError(errs[i])
		for _, t := range got[i] {
			f.False(seen[t.ID], "%v was given twice", &t)
			seen[t.ID] = true
			f.Equal(fmt.Sprint(i), t.Worker)
			f.same(t)
		}
	}
	f.Len(seen, tasks)
}

func testRequestsAtOnce(f *fixture) {
	for range 10 {
		id := f.enqueue("a")
		for _, row := range []struct {
			name string
			ask  func(s store.Store) (bool, error)
		}{
			{"suspend", func(s store.Store) (bool, error) { return s.Suspend(f.ctx, id) }},
			{"resume", func(s store.Store) (bool, error) { return s.Resume(f.ctx, id, true) }},
			{"cancel", func(s store.Store) (bool, error) { return s.Cancel(f.ctx, id) }},
		} {
			var made atomic.Int32
			var errs [goroutines]error
			together(goroutines, func(i int) {
				ok, err := row.ask(f.side(i))
				if errs[i] = err; ok {
					made.Add(1)
				}
			})
			for _, err := range errs {
				f.NoError(err, row.name)
			}
			f.EqualValues(1, made.Load(), "exactly one made the difference: %s", row.name)
		}
	}
}

func testFinishesAtOnce(f *fixture) {
	for range 10 {
		for _, p := range []store.Passage{passage, last} {
			t := f.claimed("a")
			var calls atomic.Int32
			var errs [goroutines]error
			together(goroutines, func(i int) {
				errs[i] = f.side(i).Finish(f.ctx, t.Lease(), p, func(_ context.Context, tx store.Tx) error {
					calls.Add(1)
					tx.SetData([]byte("done"))
					return nil
				})
			})
			for _, err := range errs {
				f.NoError(err)
			}
			f.EqualValues(1, calls.Load(), "one of them finishes it, the others find that")
			f.Equal("done", string(f.get(t.ID).Data))
			if !p.Last {
				f.returned(t, store.Return{Stage: done, Status: store.Normal})
			}
		}
	}
}

// testHeartbeatBeside sends heartbeats while a slow commit runs. The lease of its task may be left out, but is not lost; others
// are renewed.
func testHeartbeatBeside(f *fixture) {
	slow, other := f.claimed("slow"), f.claimed("other")
	leases := []store.Lease{other.Lease(), slow.Lease(), {Task: other.ID, Token: other.Token + 1}}
	f.advance(time.Millisecond) // by which a lease that is renewed ends later
	committing, goOn, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var finishErr, beatErr error
	var beats []error
	wait := start(2, func(i int) {
		if i == 0 {
			finishErr = f.a.Finish(f.ctx, slow.Lease(), passage, func(context.Context, store.Tx) error {
				close(committing)
				<-goOn
				return nil
			})
			return
		}
		defer close(answered)
		<-committing
		beats, beatErr = f.b.Heartbeat(f.ctx, renewals(leases...), length)
	})
	<-committing
	select {
	case <-answered:
	case <-time.After(100 * time.Millisecond): // it waits, in a store where all writers do
	}
	close(goOn)
	wait()
	f.NoError(finishErr)
	f.NoError(beatErr)
	f.Len(beats, 3)
	f.Equal([]error{nil, store.ErrLeaseLost}, []error{beats[0], beats[2]})
	f.NotErrorIs(beats[1], store.ErrLeaseLost)
	f.Equal(transition.Renewed(beats[1]), f.get(slow.ID).Due.After(slow.Due), beats[1])
}

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
