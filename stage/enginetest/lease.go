package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// lease is short enough to wait for its end. No test fails if a living worker loses it.
const lease = 1200 * time.Millisecond

// kept is a lease that a living worker does not lose, on a machine that does other things too.
const kept = 3 * time.Second

// ends lets the present lease of a task end now, as if it had had no heartbeat for long.
func (w *world) ends(id stage.ID) {
	w.t.Helper()
	t := w.get(id)
	w.endsLease(t.Lease())
}

func (w *world) endsLease(l stage.Lease) {
	w.t.Helper()
	_, err := w.other.Heartbeat(w.ctx, []stage.Renewal{{Lease: l}}, time.Millisecond)
	w.NoError(err)
}

// elsewhere is the config of an engine in another process.
func (w *world) elsewhere(ps processors) stage.Config {
	cfg := w.config(ps)
	cfg.Store = w.other
	return cfg
}

// testLongStage has a stage of several leases.
func testLongStage(w *world) {
	ps := processors{"load": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		select {
		case <-ctx.Done():
			return nil, stage.CheckSuspended(ctx)
		case <-time.After(5 * kept / 2):
			return nil, nil
		}
	}}
	cfg := w.config(ps)
	cfg.Lease, cfg.Heartbeat = kept, kept/10
	r := w.start(cfg)
	id := r.enqueue("short")
	w.begins(id, "load", 1)
	w.start(w.elsewhere(ps))
	w.becomes(id, isFinished)
	w.Equal(1, w.times(id, "load"))
	w.EqualValues(1, w.get(id).Token)
}

// testHeartbeatsFail has an engine none of whose heartbeats reaches the store.
func testHeartbeatsFail(w *world) {
	g := w.gate()
	g.before = func(_ context.Context, op string) error {
		if op == heartbeat {
			return errTrouble
		}
		return nil
	}
	elapsed := since()
	ps := processors{"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, "build") == 1 {
			<-ctx.Done()
			w.note("%v", stage.CheckSuspended(ctx))
			w.note("too early: %t", elapsed() < lease)
			return w.writes("the first"), nil
		}
		w.note("attempt %d", t.Attempt)
		return w.writes("the second"), nil
	}}
	cfg := w.config(ps)
	cfg.Store, cfg.Lease = g, lease
	r := w.start(cfg)
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.start(w.elsewhere(ps))
	w.becomes(id, isFinished)
	w.ElementsMatch([]string{stage.ErrLeaseLost.Error(), "too early: false", "attempt 1", "committed"}, w.notedAll(4))
	w.Equal("the second", string(w.get(id).Data))
	w.Equal(1, w.times(id, "load"), "earlier stages are not repeated")
}

// testCallHangs has the store not answer one call of each kind, as on a connection that is silent, while heartbeats renew the
// leases. No lease is lost to that, and nothing is processed twice.
func testCallHangs(w *world) {
	var mu sync.Mutex
	hung := map[string]bool{}
	first := func(op string) bool {
		mu.Lock()
		defer mu.Unlock()
		again := hung[op]
		hung[op] = true
		return !again
	}
	g := w.gate()
	g.before = func(ctx context.Context, op string) error {
		if first(op) {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	cfg := w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if t.Attempt == 0 && string(t.Data) == "fails" {
			return nil, errTrouble
		}
		return w.writes("built"), nil
	}})
	cfg.Store, cfg.Lease, cfg.Heartbeat = g, kept, kept/10
	r := w.start(cfg)
	times := map[stage.ID]int{}
	for _, data := range []string{"fails", "", ""} {
		id := w.enqueued(stage.NewTask{Kind: "report", Stage: created, Data: []byte(data)})
		times[id] = 1 + len(data)/len("fails")
	}
	for id, n := range times {
		w.becomes(id, isFinished)
		w.EqualValues(n, w.get(id).Token)
		w.Equal(n, w.times(id, "build"))
		w.Equal(1, w.times(id, "load"))
	}
	for _, op := range []string{claim, heartbeat, enter, finish, giveBack} {
		w.False(first(op), "%s was never called", op)
	}
	w.NoError(r.Wait(w.ctx))
}

// testLossReported has the store end a lease of which the worker believes that it has it for long.
func testLossReported(w *world) {
	cfg := w.config(processors{"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if w.times(t.ID, "build") == 1 {
			<-ctx.Done()
			w.note("%v", stage.CheckSuspended(ctx))
			return w.writes("the lost"), nil
		}
		return nil, nil
	}})
	cfg.Attempts, cfg.Lease = 1000, never
	r := w.start(cfg)
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	t := w.get(id)
	w.eventually("the processor stops", func() bool {
		w.endsLease(t.Lease()) // unless a heartbeat comes in between
		return w.running() == 0 || w.times(id, "build") > 1
	})
	w.becomes(id, isFinished)
	w.Equal([]string{stage.ErrLeaseLost.Error()}, w.notedAll(1))
	w.Equal(1, w.times(id, "load"))
}

// testContextEnds looks whether what hangs on the context of a processor goes with it.
func testContextEnds(w *world) {
	gone := make(chan struct{})
	r := w.start(w.config(processors{"load": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		context.AfterFunc(ctx, func() { close(gone) })
		return nil, nil
	}}))
	w.becomes(r.enqueue("short"), isFinished)
	w.comes("the end of the context", gone)
}

// testFenced lets the first worker come too late with each thing that it can do, while the second is at work.
func testFenced(w *world) {
	for _, op := range []string{enter, finish, giveBack} {
		h := newHold(op)
		h.arm()
		g := w.gate()
		var answer atomic.Value
		g.deaf = true
		g.before = func(ctx context.Context, op string) error {
			if op == heartbeat {
				return errTrouble
			}
			return h.before(ctx, op)
		}
		g.after = func(done string, err error) error {
			if done == op && err != nil {
				answer.Store(err)
			}
			return err
		}
		cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
			if op == giveBack {
				return nil, stage.Permanent(errors.New("the first fails"))
			}
			return w.writes("the first"), nil
		}})
		cfg.Store = g
		cfg.Workers = 1 // so it does not take the task again itself
		first := w.start(cfg)
		id := first.enqueue("report")
		w.comes("the first worker is about to "+op, h.arrived)
		w.ends(id)

		release := make(chan struct{})
		second := w.start(w.elsewhere(processors{"build": func(context.Context, *stage.Task) (stage.Commit, error) {
			<-release
			return w.writes("the second"), nil
		}}))
		w.becomes(id, isBuilding)
		before := w.get(id)
		close(h.release)
		w.eventually("the first has an answer", func() bool { return answer.Load() != nil })
		w.ErrorIs(answer.Load().(error), stage.ErrLeaseLost, op)
		now := w.get(id)
		before.Due, before.Changed = now.Due, now.Changed // there are heartbeats
		w.Equal(before, now, op)
		close(release)
		w.becomes(id, isFinished)
		w.Equal("the second", string(w.get(id).Data))
		w.NoError(first.stop(shutdown10))
		w.NoError(second.stop(shutdown10))
	}
}

// mortal is an engine without heartbeats that the store no longer answers when kill has been called.
func (w *world) mortal(ps func(kill func()) processors) *run {
	return w.dying(func(ps processors) stage.Config { return heartless(w.config(ps)) }, ps)
}

// dying is mortal with another config.
func (w *world) dying(config func(processors) stage.Config, ps func(kill func()) processors) *run {
	var calls sync.RWMutex // for reading while the store answers: a claim that is under way then could still find the task
	dead := false
	kill := func() {
		calls.Lock()
		defer calls.Unlock()
		dead = true
	}
	g := w.gate()
	g.before = func(context.Context, string) error {
		if calls.RLock(); dead {
			calls.RUnlock()
			return errTrouble
		}
		return nil
	}
	g.after = func(_ string, err error) error {
		calls.RUnlock()
		return err
	}
	cfg := config(ps(kill))
	cfg.Store = g
	return w.start(cfg)
}

func testDeath(w *world) {
	r := w.mortal(func(kill func()) processors {
		return processors{"build": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
			kill()
			return w.writes("the dead"), nil
		}}
	})
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	w.eventually("it has returned", func() bool { return w.running() == 0 })
	w.ends(id)
	w.start(w.elsewhere(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("attempt %d", t.Attempt)
		return w.writes("the living"), nil
	}}))
	w.becomes(id, isFinished)
	w.Equal([]string{"attempt 1", "committed"}, w.noted())
	t := w.get(id)
	w.Equal("the living", string(t.Data))
	w.Zero(t.Attempt, "the stage has finished")
	w.EqualValues(2, t.Token)
	w.Equal(1, w.times(id, "load"), "earlier stages are not repeated")
	w.Equal(2, w.times(id, "build"))
}

// testDeaths has a task that kills its workers.
func testDeaths(w *world) {
	id := w.enqueue("report")
	for n := range 2 {
		w.mortal(func(kill func()) processors {
			return processors{"build": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
				kill()
				<-ctx.Done()
				return nil, nil
			}}
		})
		w.begins(id, "build", n+1)
		w.ends(id)
	}
	cfg := w.elsewhere(nil)
	cfg.Attempts = 2
	last := w.start(cfg)
	w.becomes(id, loaded+", ERROR")
	t := w.get(id)
	w.Contains(t.Failure, "workers were lost")
	w.Equal(2, t.Attempt)
	w.True(t.Due.IsZero(), "it is over")
	w.Equal(2, w.times(id, "build"))
	w.Equal(1, w.times(id, "load"))
	all, err := last.Failures(w.ctx, id)
	w.NoError(err)
	w.Len(all, 2, "each lost worker leaves a record")
	for n, f := range all {
		w.Equal(stage.Failure{Stage: building, Attempt: n + 1, Time: f.Time, Text: "stage: the worker was lost"}, f)
	}
	w.yes(last.ResumeFailed(w.ctx, id))
	w.becomes(id, isFinished)
}

// testDeathBetween has a worker that dies when a stage is finished and the next not begun.
func testDeathBetween(w *world) {
	g := w.gate()
	var dead atomic.Bool
	g.before = func(_ context.Context, op string) error {
		if op == enter {
			dead.Store(true)
		}
		if dead.Load() {
			return errTrouble
		}
		return nil
	}
	cfg := heartless(w.config(nil))
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("report")
	w.eventually("it dies", dead.Load)
	w.Equal(loaded+", IN_PROCESSING", w.see(id))
	w.ends(id)
	w.start(w.elsewhere(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("attempt %d", t.Attempt)
		return nil, nil
	}}))
	w.becomes(id, isFinished)
	w.Equal([]string{"attempt 0"}, w.noted(), "no stage was lost")
	w.Equal(1, w.times(id, "load"))
}

// testSuspendLost suspends a task whose worker is dead already: in a stage, and between two.
func testSuspendLost(w *world) {
	w.suspendLost(isBuilding)
	w.suspendLost(loaded + ", IN_PROCESSING")
}

func (w *world) suspendLost(at string) {
	id := w.enqueued(stage.NewTask{Kind: "report", Stage: loaded})
	_, err := w.other.Claim(w.ctx, stage.Claim{
		Worker: "dead", Kinds: []string{"report"}, Limit: 1, Length: patience,
		Shows: []stage.Show{{Kind: "report", Found: loaded, Stage: strings.TrimSuffix(at, ", IN_PROCESSING")}},
	})
	w.NoError(err)
	w.yes(w.other.Suspend(w.ctx, id))
	w.Equal(at, w.see(id))
	w.ends(id)
	p := w.tape()
	cfg := w.config(nil)
	cfg.Store = p
	r := w.start(cfg)
	w.becomes(id, isSuspended)
	w.eventually("all is seen", func() bool { return len(p.history(id)) == 2 })
	w.Equal([]string{loaded + ", IN_PROCESSING", isSuspended}, p.history(id), "no stage is shown")
	w.Zero(w.times(id, "build"), "the stage does not begin")
	r.resume(id)
	w.becomes(id, isFinished)
	w.NoError(r.stop(shutdown10))
}

// testFoundDynamic is about tasks that are at a dynamic stage when they are claimed: left there by a lost worker, or
// enqueued there.
func testFoundDynamic(w *world) {
	lost := w.enqueue("report")
	_, err := w.other.Claim(w.ctx, stage.Claim{
		Worker: "gone", Kinds: []string{"report"}, Limit: 1, Length: time.Millisecond,
		Shows: []stage.Show{{Kind: "report", Found: created, Stage: building}},
	})
	w.NoError(err)
	w.Equal(isBuilding, w.see(lost))
	put := w.enqueued(stage.NewTask{Kind: "report", Stage: building})
	p := w.tape()
	cfg := w.config(processors{"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.Equal(map[stage.ID]int{lost: 1, put: 0}[t.ID], t.Attempt)
		return nil, nil
	}})
	cfg.Store = p
	w.start(cfg)
	for _, id := range []stage.ID{lost, put} {
		w.becomes(id, isFinished)
		w.Equal(1, w.times(id, "build"), "the stage is not skipped")
		w.Zero(w.times(id, "load"))
		w.eventually("all is seen", func() bool { return len(p.history(id)) == 3 })
		w.Equal([]string{loaded + ", IN_PROCESSING", isBuilding, isFinished}, p.history(id), "first it goes back")
	}
}
