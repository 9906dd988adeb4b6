package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// within is the order of the tests that measure it.
var within = shutdown.Policy{Time: 200 * time.Millisecond, Drop: true}

// ignores is a processor that the first time ignores everything until c is closed, and then would write.
func (w *world) ignores(id string, c <-chan struct{}) stage.ProcessorFunc {
	return func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, id) == 1 {
			<-c
			return w.writes("late"), nil
		}
		w.note("attempt %d", t.Attempt)
		return w.writes("in time"), nil
	}
}

// cuts is a stop that leaves tasks undone.
func (r *run) cuts(terms shutdown.Policy) *shutdown.Cut {
	r.w.t.Helper()
	var cut *shutdown.Cut
	r.w.True(errors.As(r.stop(terms), &cut))
	return cut
}

func testStopNames(w *world) {
	release := make(chan struct{})
	defer close(release)
	r := w.start(w.config(processors{"build": w.ignores("build", release)}))
	id := r.enqueue("report")
	quick := r.enqueue("short")
	w.begins(id, "build", 1)
	w.becomes(quick, isFinished)
	elapsed := since()
	cut := r.cuts(within)
	w.GreaterOrEqual(elapsed(), within.Time)
	w.Equal(1, cut.Tasks)
	w.True(cut.Dropped)
	w.Contains(cut.Names, shutdown.Count{Name: fmt.Sprintf("report %d at BUILDING_REPORT", id), N: 1})
	w.ErrorContains(cut, "at BUILDING_REPORT")
	w.Equal(isBuilding, w.see(id), "until the end of its lease")
}

// testLate is about a processor that returns when its engine has stopped without it: before its lease has ended, or
// after that.
func testLate(w *world) {
	for early, terms := range map[bool]shutdown.Policy{true: {Time: 20 * time.Millisecond, Drop: true}, false: abrupt} {
		release := make(chan struct{})
		ps := processors{"build": w.ignores("build", release)}
		r := w.start(w.config(ps))
		id := r.enqueue("report")
		w.begins(id, "build", 1)
		w.Equal(1, r.cuts(terms).Tasks)
		w.Equal(isBuilding, w.see(id))
		if early {
			close(release)
			w.eventually("the late one has returned", func() bool { return w.running() == 0 })
		}
		w.Equal(isBuilding, w.see(id), "it has changed nothing")
		w.ends(id)
		rescuer := w.start(w.elsewhere(ps))
		w.becomes(id, isFinished)
		if !early {
			close(release)
			w.eventually("the late one has returned", func() bool { return w.running() == 0 })
		}
		w.Equal([]string{"attempt 1", "committed"}, w.noted(), "a worker was lost")
		t := w.get(id)
		w.Equal("in time", string(t.Data))
		w.EqualValues(2, t.Token)
		w.Equal(1, w.times(id, "load"))
		w.NoError(rescuer.stop(shutdown10))
	}
}

func testStopLater(w *world) {
	r := w.start(w.config(processors{"build": w.watches("build")}))
	var ids []stage.ID
	for range 5 {
		ids = append(ids, r.enqueue("report"))
	}
	for _, id := range ids {
		w.begins(id, "build", 1)
	}
	w.NoError(r.stop(shutdown10))
	for _, id := range ids {
		t := w.get(id)
		w.Equal(loaded+", NORMAL", state(t))
		w.False(t.Due.IsZero())
	}
	w.start(w.elsewhere(processors{"build": w.watches("build")}))
	w.become(ids, isFinished)
	for _, id := range ids {
		w.Equal(1, w.times(id, "load"))
		w.Equal(2, w.times(id, "build"))
	}
}

// testStopAlone calls Stop, and gives no order to whatever the engine runs in. That has nothing left, and ends.
func testStopAlone(w *world) {
	r := w.start(w.config(processors{"load": w.watches("load")}))
	id := r.enqueue("short")
	w.begins(id, "load", 1)
	w.NoError(r.Stop(shutdown.Now{Terms: shutdown10}))
	t := w.get(id)
	w.Equal(isNew, state(t))
	w.False(t.Due.IsZero())
	w.NoError(r.Stop(shutdown.Now{Terms: shutdown10}), "once more")
	w.NoError(r.stop(shutdown10))
	_, err := r.Fire(w.ctx)
	w.ErrorIs(err, stage.ErrStopped)
	w.host.start(w, r.Engine)
	w.becomes(id, isFinished)
}

// testAgain runs one engine three times, also after a stop that was ignored.
func testAgain(w *world) {
	release := make(chan struct{})
	cfg := w.config(processors{"build": w.ignores("build", release)})
	cfg.Workers = 2
	e := w.engine(cfg)
	r := w.host.start(w, e)
	w.becomes(r.enqueue("short"), isFinished)
	w.NoError(r.stop(shutdown10))

	_, err := e.Fire(w.ctx)
	w.ErrorIs(err, stage.ErrStopped)
	id := r.enqueue("report")
	w.yes(e.Suspend(w.ctx, id)) // requests work all the same
	w.yes(e.Resume(w.ctx, id))
	w.Equal(created+", RESUMED", w.see(id), "no engine claims it")

	r = w.host.start(w, e)
	w.begins(id, "build", 1)
	r.cuts(shutdown.Policy{Time: 20 * time.Millisecond, Drop: true})

	r = w.host.start(w, e)
	w.becomes(r.enqueue("short"), isFinished)
	close(release)
	w.becomes(r.enqueue("short"), isFinished)
	w.NoError(r.stop(shutdown10))
	w.Equal(isBuilding, w.see(id), "its lease is a long one")
}

// runs runs e until end is called, which ends the context and returns the error.
func (w *world) runs(e *stage.Engine, terms shutdown.Policy) (end func() error) {
	ctx, cancel := context.WithCancel(w.ctx)
	var err error
	ended := begin(func() {
		if w.host.name == goroutines.name {
			err = e.Run(ctx)
		} else {
			err = act.Run(ctx, act.Config{Schedulers: 1, Threads: act.Locked, Shutdown: terms, Logger: zap.NewNop()}, e.Setup)
		}
	})
	end = func() error {
		cancel()
		w.comes("the end", ended)
		return err
	}
	w.t.Cleanup(func() { _ = end() })
	return end
}

// testContext ends the context of Run, or of the Group's.
func testContext(w *world) {
	for _, listens := range []bool{true, false} {
		release := make(chan struct{})
		terms := shutdown.Policy{Time: 20 * time.Millisecond, Drop: true}
		load := w.ignores("load", release)
		if listens {
			load, terms = w.watches("load"), shutdown10
		}
		cfg := w.config(processors{"load": load})
		cfg.Shutdown = terms
		end := w.runs(w.engine(cfg), terms)
		id := w.enqueue("report")
		w.begins(id, "load", 1)
		err := end()
		close(release)
		if listens {
			w.NoError(err)
			w.Equal(isNew, w.see(id))
			w.yes(w.other.Cancel(w.ctx, id)) // it is not for the next
			continue
		}
		var cut *shutdown.Cut
		w.ErrorAs(err, &cut)
		w.ErrorContains(err, "at LOADING_DATA")
		w.ErrorContains(err, "the context has ended")
	}
}

// hangs is for gate.before: one operation is not answered before its context ends, until well is set.
type hangs struct {
	op    string
	hung  atomic.Int32 // by now
	twice atomic.Bool  // it was asked while it hung
	well  atomic.Bool
}

func (s *hangs) before(ctx context.Context, op string) error {
	if op != s.op || s.well.Load() {
		return nil
	}
	if s.hung.Add(1) > 1 {
		s.twice.Store(true)
	}
	defer s.hung.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

// testStopHanging stops engines that wait for the store: by an order, and by the end of their context.
func testStopHanging(w *world) {
	for _, op := range []string{claim, heartbeat} {
		terms := within // a claim that hangs is waited for as long
		if op == heartbeat {
			terms.Time = patience / 2 // the tasks go back at once
		}
		for _, byContext := range []bool{false, true} {
			s, g := &hangs{op: op}, w.gate()
			g.before = s.before
			cfg := w.config(processors{"load": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
				<-ctx.Done()
				return nil, nil
			}})
			cfg.Store, cfg.Shutdown = g, terms
			id := w.enqueue("short")
			e := w.engine(cfg)
			var err error
			if byContext {
				end := w.runs(e, terms)
				w.eventually("the store hangs", func() bool { return s.hung.Load() == 1 })
				err = end()
			} else {
				r := w.host.start(w, e)
				w.eventually("the store hangs", func() bool { return s.hung.Load() == 1 })
				time.Sleep(3 * cfg.Heartbeat)
				w.False(s.twice.Load(), "it is not asked once more before it is given up")
				err = r.stop(terms)
			}
			if op == heartbeat {
				w.NoError(err)
			}
			w.eventually("no call waits for the store", func() bool { return s.hung.Load() == 0 })
			w.Equal(isNew, w.see(id), "%s", op)
			w.yes(w.other.Cancel(w.ctx, id))
		}
	}
}

// testLateClaim has a claim whose answer comes when the engine has stopped: the engine's own, and that of a Fire.
func testLateClaim(w *world) {
	for _, byFire := range []bool{false, true} {
		h := newHold(claim)
		g := w.gate()
		var period atomic.Pointer[context.Context] // of the latest claim: that of the engine's own ends with the stop
		g.before = func(ctx context.Context, op string) error {
			if op == claim {
				period.Store(&ctx)
			}
			return nil
		}
		g.after = h.after
		cfg := w.config(nil)
		cfg.Store, cfg.Poll = g, never
		r := w.start(cfg)
		w.becomes(r.enqueue("short"), isFinished)
		w.NoError(r.Wait(w.ctx))
		time.Sleep(500 * time.Millisecond) // the claims that were rung for
		h.arm()
		var id stage.ID
		if byFire {
			id = w.enqueue("short")
			w.aside(func() { _, _ = r.Fire(w.ctx) })
		} else {
			id = r.enqueue("short")
		}
		w.comes("a claim", h.arrived)
		terms := shutdown.Policy{Time: 20 * time.Millisecond, Drop: true}
		if byFire {
			_ = r.stop(terms)
			close(h.release)
		} else { // the stop may wait for it
			w.aside(func() {
				<-(*period.Load()).Done()
				close(h.release)
			})
			_ = r.stop(terms)
			w.comes("the claim returns", h.release)
		}
		w.becomes(id, isNew)
		w.NoError(r.Wait(w.ctx))
		t := w.get(id)
		w.EqualValues(1, t.Token, "it was claimed")
		w.Zero(t.Attempt)
		w.False(t.Due.IsZero())
		w.Zero(w.times(id, "load"))
		w.yes(w.other.Cancel(w.ctx, id))
	}
}

// lateStore is given up by the next claim after arm, and passes it on to claims.
type lateStore struct {
	stage.Store
	armed  atomic.Bool
	claims chan stage.Claim
}

func (s *lateStore) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if !s.armed.CompareAndSwap(true, false) {
		return s.Store.Claim(ctx, c)
	}
	s.claims <- c
	<-ctx.Done()
	return nil, ctx.Err()
}

// testClaimDoneLate has a store that does a claim after it was given up: a Stop has dropped a task, and the engine runs
// again. It gives back what it was given late, and leaves alone what it has dropped.
func testClaimDoneLate(w *world) {
	release := make(chan struct{})
	defer close(release)
	s := &lateStore{Store: w.store, claims: make(chan stage.Claim, 1)}
	cfg := w.config(processors{"build": w.ignores("build", release)})
	cfg.Store, cfg.Workers, cfg.Lease = s, 2, never
	e := w.engine(cfg)
	r := w.host.start(w, e)
	dropped := r.enqueue("report")
	w.begins(dropped, "build", 1)
	s.armed.Store(true)
	late := <-s.claims
	r.cuts(shutdown.Policy{Time: 20 * time.Millisecond, Drop: true})

	id := w.enqueue("short")
	claimed, err := w.other.Claim(w.ctx, late)
	w.NoError(err)
	w.Len(claimed, 1)
	w.host.start(w, e)
	w.becomes(id, isFinished)
	w.Equal(isBuilding, w.see(dropped), "it is left to its lease")
}

// testStops stops an engine that hurries through many stages, again and again, gently and abruptly, and lets it finish
// in the end: each stage has been written once.
func testStops(w *world) {
	chain := stage.Begin("0")
	for i := range 8 {
		chain = chain.Then(fmt.Sprint(i, "+"), "step", fmt.Sprint(i+1))
	}
	g := w.gate()
	cfg := w.config(processors{"step": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		return func(_ context.Context, tx stage.Tx) error {
			tx.SetData(append(t.Data, t.Stage[0]))
			return nil
		}, nil
	}})
	cfg.Kinds = map[string]stage.Kind{"steps": {Chain: chain}}
	cfg.Store, cfg.Lease, cfg.Attempts = g, lease, 1000
	e := w.engine(cfg)
	var ids []stage.ID
	for round := range 12 {
		for range 4 {
			ids = append(ids, w.enqueued(stage.NewTask{Kind: "steps", Stage: "0"}))
		}
		r := w.host.start(w, e)
		w.eventually("it has begun", func() bool { return w.times(ids[4*round], "step") > round%4 })
		terms := shutdown10
		if round%2 == 1 {
			terms = abrupt
		}
		err := r.stop(terms)
		if round%2 == 0 {
			w.NoError(err)
		}
	}
	w.host.start(w, e)
	w.become(ids, "8, NORMAL")
	for _, id := range ids {
		w.Equal("01234567", string(w.get(id).Data))
		for i := range 8 {
			w.LessOrEqual(g.times(id, fmt.Sprint(i+1)), 1)
		}
	}
}
