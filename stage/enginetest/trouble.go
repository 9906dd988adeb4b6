package enginetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// provides is a Provider made of a function.
type provides func(id string) (stage.Processor, error)

func (f provides) Processor(id string) (stage.Processor, error) { return f(id) }

// around returns a middleware that calls before and after, and fails with their errors.
func around(before, after func() error) stage.Middleware {
	return func(next stage.Processor) stage.Processor {
		return stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			if err := before(); err != nil {
				return nil, err
			}
			commit, err := next.Process(ctx, t)
			return commit, errors.Join(err, after())
		})
	}
}

// dumb is an error that cannot say what it is.
type dumb struct{}

func (dumb) Error() string { panic("speechless") }

func panics() error { panic("boom") }

func goexits() error {
	runtime.Goexit()
	return nil
}

// computes is a processor that calls f, and returns what it returns.
func computes(f func() error) stage.Processor {
	return stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) { return nil, f() })
}

// commits is a processor whose commit is f.
func commits(f func() error) stage.Processor {
	return stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
		return func(context.Context, stage.Tx) error { return f() }, nil
	})
}

// testTroubles lets more tasks get into trouble than there are workers. The others are none the worse.
func testTroubles(w *world) {
	const bad = created + ", ERROR"
	for _, row := range []struct {
		name     string
		begin    string // where the tasks are enqueued
		provider provides
		see      string
		attempt  int
		says     string
	}{
		{"unknown processor", created, func(string) (stage.Processor, error) { return stage.Processors{}.Processor("trouble") },
			bad, 2, `no processor "trouble"`},
		{"provider fails", created, func(string) (stage.Processor, error) { return nil, errors.New("not at home") },
			bad, 2, "not at home"},
		{"provider has nil", created, func(string) (stage.Processor, error) { return nil, nil }, bad, 2, `no processor "trouble"`},
		{"provider panics", created, func(string) (stage.Processor, error) { return nil, panics() }, bad, 2, "boom"},
		{"processor panics", created, play(computes(panics)), bad, 2, "boom"},
		{"processor exits", created, play(computes(goexits)), bad, 2, "Goexit"},
		{"commit fails", created, play(commits(func() error { return errors.New("disk full") })), bad, 2, "disk full"},
		{"commit panics", created, play(commits(panics)), bad, 2, "boom"},
		{"commit exits", created, play(commits(goexits)), bad, 2, "Goexit"},
		{"middleware fails before", created, play(around(fail, quiet)(computes(quiet))), bad, 2, "no luck"},
		{"middleware panics before", created, play(around(panics, quiet)(computes(quiet))), bad, 2, "boom"},
		{"middleware exits before", created, play(around(goexits, quiet)(computes(quiet))), bad, 2, "Goexit"},
		{"middleware fails after", created, play(around(quiet, fail)(computes(quiet))), bad, 2, "no luck"},
		{"middleware panics after", created, play(around(quiet, panics)(computes(quiet))), bad, 2, "boom"},
		{"middleware exits after", created, play(around(quiet, goexits)(computes(quiet))), bad, 2, "Goexit"},
		{"dumb error", created, play(computes(func() error { return dumb{} })), bad, 2, ""},
		{"nil of a type", created, play(computes(func() error { return (*nilError)(nil) })), bad, 2, ""},
		{"stage is gone", "GONE", play(computes(quiet)), "GONE, ERROR", 2, `not in the chain: "GONE"`},
		{"stage is the last", finished, play(computes(quiet)), isFinished, 0, ""},
	} {
		var meeting sync.WaitGroup
		meeting.Add(2)
		cfg := w.config(processors{"build": func(context.Context, *stage.Task) (stage.Commit, error) {
			meeting.Done()
			meeting.Wait()
			return nil, nil
		}})
		good := cfg.Provider
		cfg.Provider = provides(func(id string) (stage.Processor, error) {
			if id == "trouble" {
				return row.provider(id)
			}
			return good.Processor(id)
		})
		cfg.Kinds["bad"] = stage.Kind{Chain: stage.Begin(created).Then(loading, "trouble", finished)}
		cfg.Workers, cfg.Attempts = 2, 2
		r := w.start(cfg)
		for range 3 {
			id := w.enqueued(stage.NewTask{Kind: "bad", Stage: row.begin})
			well := r.enqueue("short")
			w.eventually(row.name, func() bool {
				t := w.get(id)
				return state(t) == row.see && t.Due.IsZero()
			})
			t := w.get(id)
			w.Contains(t.Failure, row.says, row.name)
			w.Equal(row.attempt, t.Attempt, row.name)
			w.becomes(well, isFinished)
		}
		one, two := r.enqueue("report"), r.enqueue("report") // each of which waits for the other
		w.becomes(one, isFinished)
		w.becomes(two, isFinished)
		w.NoError(r.stop(shutdown10))
	}
}

// nilError is an error type whose nil pointer panics.
type nilError struct{ name string }

func (n *nilError) Error() string { return n.name }

func quiet() error { return nil }

func fail() error { return errors.New("no luck") }

// play is a Provider of one processor.
func play(p stage.Processor) provides {
	return func(string) (stage.Processor, error) { return p, nil }
}

// testStoreFails has a store whose every operation fails some times in a row, before it is done or after, so that only its
// answer is lost, and one whose transactions fail when the commit has been called.
func testStoreFails(w *world) {
	for _, op := range []string{claim, enter, finish, giveBack, heartbeat} {
		left, g := newCountdown(2), w.gate()
		g.before = func(_ context.Context, called string) error {
			if called == op {
				return left.trouble()
			}
			return nil
		}
		w.survives(g, op, left, patience)
		w.Negative(left.left.Load(), op)

		lost, g := newCountdown(2), w.gate()
		g.after = func(called string, err error) error {
			if called == op && err == nil {
				return lost.trouble()
			}
			return err
		}
		w.survives(g, op, lost, patience)
		w.Negative(lost.left.Load(), op)
	}
	left, g := newCountdown(2), w.gate()
	g.spoil = left.trouble
	w.survives(g, "commit", left, patience)
	w.Negative(left.left.Load())
}

// testClaimsLost loses the answers of nine claims, and of some questions after them. The tasks go back, and none has lost
// an attempt, although the leases would last longer than the test.
func testClaimsLost(w *world) {
	lost, asked := newCountdown(9), newCountdown(3)
	g := w.gate()
	g.after = func(op string, err error) error {
		switch {
		case err != nil:
			return err
		case op == claim:
			return lost.trouble()
		case op == claimed:
			return asked.trouble()
		}
		return nil
	}
	cfg := w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.Zero(t.Attempt)
		return nil, nil
	}})
	cfg.Store, cfg.Workers, cfg.Attempts = g, 2, 1
	cfg.Lease, cfg.Heartbeat, cfg.Poll = 2*patience, 100*time.Millisecond, 20*time.Millisecond
	r := w.start(cfg)
	var ids []stage.ID
	for range 5 {
		ids = append(ids, w.enqueue("report"))
	}
	w.become(ids, isFinished)
	w.NoError(r.stop(shutdown10))
	for _, id := range ids {
		w.Equal(1, w.times(id, "build"))
	}
	w.Negative(lost.left.Load())
	w.Negative(asked.left.Load())
}

// testSpoilt has a store that says that trying again is in vain.
func testSpoilt(w *world) {
	left := newCountdown(1)
	g := w.gate()
	g.before = func(_ context.Context, op string) error {
		if op != finish {
			return nil
		}
		return stage.Permanent(left.trouble())
	}
	cfg := w.config(nil)
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("short")
	w.becomes(id, created+", ERROR")
	t := w.get(id)
	w.Equal(errTrouble.Error(), t.Failure)
	w.Equal(1, t.Attempt)
	w.False(t.Runs())
	w.yes(r.ResumeFailed(w.ctx, id))
	w.becomes(id, isFinished)
}

// testPatience counts how often a store is asked that does not answer.
func testPatience(w *world) {
	var deaf atomic.Bool
	var asked atomic.Int32
	deaf.Store(true)
	g := w.gate()
	g.before = func(_ context.Context, op string) error {
		if op != enter || !deaf.Load() {
			return nil
		}
		asked.Add(1)
		return errTrouble
	}
	cfg := w.config(nil)
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("report")
	w.eventually("it is asked again", func() bool { return asked.Load() > 1 })
	time.Sleep(250 * time.Millisecond)
	w.LessOrEqual(asked.Load(), int32(5), "at 0, 50, 150, 350, 750 ms")
	deaf.Store(false)
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"))
}

// countdown is so many troubles.
type countdown struct{ left atomic.Int32 }

func newCountdown(n int32) *countdown {
	c := &countdown{}
	c.left.Store(n)
	return c
}

func (c *countdown) trouble() error {
	if c.left.Add(-1) < 0 {
		return nil
	}
	return errTrouble
}

// survives runs tasks through the gate, which fail once by themselves. Each stage is written once. Stages last until all
// troubles of heartbeats have come, since a store on a busy machine may answer few within their bound.
func (w *world) survives(g *gate, op string, troubles *countdown, lease time.Duration) {
	w.t.Helper()
	step := func(letter string, failures int, id string) stage.ProcessorFunc {
		return func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			for time.Sleep(20 * time.Millisecond); op == heartbeat && troubles.left.Load() >= 0 && ctx.Err() == nil; {
				time.Sleep(time.Millisecond)
			}
			if w.times(t.ID, id) <= failures {
				return nil, errors.New("no luck")
			}
			return func(_ context.Context, tx stage.Tx) error {
				tx.SetData([]byte(string(t.Data) + letter))
				return nil
			}, nil
		}
	}
	cfg := w.config(processors{"load": step("L", 0, "load"), "build": step("B", 1, "build")})
	cfg.Store, cfg.Lease, cfg.Heartbeat = g, lease, 100*time.Millisecond
	cfg.Attempts = 10
	r := w.start(cfg)
	var ids []stage.ID
	for range 3 {
		ids = append(ids, r.enqueue("report"))
	}
	w.become(ids, isFinished)
	w.NoError(r.Wait(w.ctx)) // the end is known here, too
	for _, id := range ids {
		w.Equal("LB", string(w.get(id).Data), op)
		w.Equal(1, g.times(id, loaded), op)
		w.Equal(1, g.times(id, finished), op)
		w.Equal(1, w.times(id, "load"), op)
		w.Equal(2, w.times(id, "build"), op)
	}
	w.NoError(r.stop(shutdown10))
}

func testRequestsFail(w *world) {
	release := make(chan struct{})
	left := newCountdown(0)
	g := w.gate()
	g.before = func(_ context.Context, op string) error {
		if op == enqueue || op == suspend || op == resume || op == cancel {
			return left.trouble()
		}
		return nil
	}
	cfg := w.config(processors{"load": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		<-release
		return nil, stage.CheckSuspended(ctx)
	}})
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("short")
	w.begins(id, "load", 1)
	left.left.Store(5)
	for _, f := range []func(context.Context, stage.ID) (bool, error){r.Suspend, r.Resume, r.ResumeFailed, r.Cancel} {
		ok, err := f(w.ctx, id)
		w.ErrorIs(err, errTrouble)
		w.False(ok)
	}
	_, err := r.Enqueue(w.ctx, "short", nil)
	w.ErrorIs(err, errTrouble)
	close(release)
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"), "nothing has happened")
}
