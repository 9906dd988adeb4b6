package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daimon-go/daimon/stage"
)

func testAttempts(w *world) {
	const rest = 50 * time.Millisecond
	p := w.tape()
	var elapsed func() time.Duration
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if t.Attempt > 0 {
			w.note("after %q, rested: %t", t.Failure, elapsed() >= rest)
		}
		return nil, fmt.Errorf("no luck %d", t.Attempt)
	}})
	cfg.Store, cfg.Attempts = p, 3
	cfg.Backoff = func(n int) time.Duration {
		elapsed = since()
		w.note("attempt %d has failed", n)
		return rest
	}
	w.start(cfg)
	id := w.enqueue("report")
	w.eventually("it has failed for good", func() bool { return w.see(id) == created+", ERROR" && w.get(id).Attempt == 3 })
	t := w.get(id)
	w.Equal("no luck 2", t.Failure)
	w.True(t.Due.IsZero())
	w.Equal([]string{
		"attempt 1 has failed", `after "no luck 0", rested: true`,
		"attempt 2 has failed", `after "no luck 1", rested: true`,
	}, testOnly(w.noted(), "a"))
	w.Equal([]string{
		isLoading, "CREATED, ERROR: no luck 0", isLoading, "CREATED, ERROR: no luck 1", isLoading, "CREATED, ERROR: no luck 2",
	}, p.history(id))
}

// testOnly are the notes that begin so.
func testOnly(notes []string, prefix string) (some []string) {
	for _, n := range notes {
		if n[:len(prefix)] == prefix {
			some = append(some, n)
		}
	}
	return some
}

// testFailures has two stages of which the first fails and panics, and the second fails when it writes.
func testFailures(w *world) {
	r := w.start(w.config(processors{
		"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			switch t.Attempt {
			case 0:
				return nil, errors.New("no luck")
			case 1:
				panic("a bug")
			}
			return nil, nil
		},
		"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			if w.times(t.ID, "build") == 1 {
				return nil, stage.Snooze(0)
			}
			return func(context.Context, stage.Tx) error {
				if t.Attempt == 0 {
					return errors.New("no room")
				}
				return nil
			}, nil
		},
	}))
	id := w.enqueue("report")
	w.becomes(id, isFinished)
	all, err := r.Failures(w.ctx, id)
	w.NoError(err)
	w.Len(all, 3)
	now := w.get(id)
	for i, f := range all {
		w.False(f.Time.Before(now.Created))
		w.False(f.Time.After(now.Changed))
		w.Equal([]string{loading, loading, building}[i], f.Stage)
		w.Equal([]int{1, 2, 1}[i], f.Attempt)
	}
	w.Equal("no luck", all[0].Text)
	w.Contains(all[1].Text, "a bug\n\n")
	w.Contains(all[1].Text, "enginetest/attempt.go:")
	w.Equal("no room", all[2].Text)
	w.Empty(now.Failure)
	_, err = r.Failures(w.ctx, id+1000)
	w.ErrorIs(err, stage.ErrNotFound)
}

func testPermanent(w *world) {
	w.start(w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if t.Kind == "short" {
			return func(context.Context, stage.Tx) error { return stage.Permanent(errors.New("cannot be written")) }, nil
		}
		return nil, fmt.Errorf("page 7: %w", stage.Permanent(errors.New("cannot be read")))
	}}))
	for kind, says := range map[string]string{"report": "page 7: cannot be read", "short": "cannot be written"} {
		id := w.enqueue(kind)
		w.becomes(id, created+", ERROR")
		t := w.get(id)
		w.Equal(1, t.Attempt)
		w.Equal(says, t.Failure)
		w.True(t.Due.IsZero())
		w.Equal(1, w.times(id, "load"))
	}
}

// testTimeout has processors that take too long: one obeys its context, and one returns as if all were well. Another kind has
// no bound.
func testTimeout(w *world) {
	cfg := w.config(processors{"load": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		_, bounded := ctx.Deadline()
		w.Equal(t.Kind == "report", bounded)
		if t.Kind == "short" {
			return nil, nil
		}
		<-ctx.Done()
		w.ErrorIs(stage.CheckSuspended(ctx), stage.ErrTimeout)
		if t.Attempt == 0 {
			return nil, ctx.Err()
		}
		return func(context.Context, stage.Tx) error { w.note("commit"); return nil }, nil
	}})
	cfg.Kinds["report"] = stage.Kind{Chain: report, Attempts: 2, Timeout: 10 * time.Millisecond}
	w.start(cfg)
	w.becomes(w.enqueue("short"), isFinished)
	id := w.enqueue("report")
	w.eventually("it has failed for good", func() bool { return w.see(id) == created+", ERROR" && w.get(id).Due.IsZero() })
	t := w.get(id)
	w.Equal(2, t.Attempt)
	w.Equal("stage: the processor has taken too long: 10ms", t.Failure)
	w.Empty(testOnly(w.noted(), "commit"))
}

// testTerms has two kinds, one with terms of its own.
func testTerms(w *world) {
	cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) { return nil, errors.New("no luck") }})
	backoffs := make(chan int, 10)
	cfg.Attempts = 2
	cfg.Kinds["short"] = stage.Kind{Chain: short, Attempts: 3, Backoff: func(n int) time.Duration { backoffs <- n; return 0 }}
	w.start(cfg)
	for kind, attempts := range map[string]int{"report": 2, "short": 3} {
		id := w.enqueue(kind)
		w.eventually("it has failed for good", func() bool { return w.see(id) == created+", ERROR" && w.get(id).Due.IsZero() })
		w.Equal(attempts, w.get(id).Attempt)
		w.Equal(attempts, w.times(id, "load"))
	}
	w.Equal([]int{1, 2}, []int{<-backoffs, <-backoffs})
	w.Empty(backoffs)
}

// testKindWorkers has a kind of which two are worked on at a time, and another one with more. All are done in the end,
// although nothing but the end of one has the next one claimed.
func testKindWorkers(w *world) {
	var mu sync.Mutex
	busy, most := map[string]int{}, map[string]int{}
	full, filled := make(chan struct{}), sync.Once{}
	count := func(kind string, n int) {
		mu.Lock()
		defer mu.Unlock()
		busy[kind] += n
		most[kind] = max(most[kind], busy[kind])
		if busy["report"] == 2 && busy["short"] == 4 {
			filled.Do(func() { close(full) })
		}
	}
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		count(t.Kind, +1)
		defer count(t.Kind, -1)
		<-full
		return nil, nil
	}})
	cfg.Workers, cfg.Poll = 6, never
	cfg.Kinds["report"] = stage.Kind{Chain: report, Workers: 2}
	var ids []stage.ID
	for range 9 {
		ids = append(ids, w.enqueue("report"))
	}
	for range 4 {
		ids = append(ids, w.enqueue("short"))
	}
	w.start(cfg)
	for _, id := range ids {
		w.becomes(id, isFinished)
	}
	w.Equal(2, most["report"])
	w.Equal(4, most["short"])
}

func testAttemptsAnew(w *world) {
	luck := func(id string) stage.ProcessorFunc {
		return func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s, attempt %d, failure %q", id, t.Attempt, t.Failure)
			if w.times(t.ID, id) < 3 {
				return nil, errors.New("no " + id)
			}
			return nil, nil
		}
	}
	cfg := w.config(processors{"load": luck("load"), "build": luck("build")})
	cfg.Attempts = 3
	cfg.Backoff = func(int) time.Duration { return -time.Second } // at once
	w.start(cfg)
	id := w.enqueue("report")
	w.becomes(id, isFinished)
	w.Equal([]string{
		`load, attempt 0, failure ""`, `load, attempt 1, failure "no load"`, `load, attempt 2, failure "no load"`,
		`build, attempt 0, failure ""`, `build, attempt 1, failure "no build"`, `build, attempt 2, failure "no build"`,
	}, w.noted())
	t := w.get(id)
	w.Zero(t.Attempt)
	w.Empty(t.Failure)
}

func testInterrupted(w *world) {
	ps := processors{"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("attempt %d", t.Attempt)
		switch w.times(t.ID, "build") {
		case 1:
			return nil, errors.New("once")
		case 2:
			<-ctx.Done()
			w.note("%v", stage.CheckSuspended(ctx))
			return nil, errors.New("in vain")
		}
		return nil, nil
	}}
	r := w.start(w.config(ps))
	id := r.enqueue("report")
	w.begins(id, "build", 2)
	w.NoError(r.stop(shutdown10))
	t := w.get(id)
	w.Equal(loaded+", NORMAL", state(t))
	w.Equal(1, t.Attempt)
	w.Equal("once", t.Failure)
	w.False(t.Due.IsZero(), "others may claim it")
	w.start(w.config(ps))
	w.becomes(id, isFinished)
	w.Equal([]string{"attempt 0", "attempt 1", stage.ErrInterrupted.Error(), "attempt 1"}, w.noted())
	w.Equal(1, w.times(id, "load"))
}

// testCommitInterrupted ends the context of a stage whose commit looks at it.
func testCommitInterrupted(w *world) {
	h := newHold(finish)
	h.arm()
	g := w.gate()
	g.before = h.before
	stopped := make(chan struct{})
	cfg := w.config(processors{"load": func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		context.AfterFunc(ctx, func() { close(stopped) })
		return func(context.Context, stage.Tx) error { return stage.CheckSuspended(ctx) }, nil
	}})
	cfg.Store = g
	r := w.start(cfg)
	id := r.enqueue("short")
	w.comes("its end is about to be written", h.arrived)
	w.aside(func() {
		<-stopped
		close(h.release)
	})
	w.NoError(r.stop(shutdown10))
	t := w.get(id)
	w.Equal(isNew, state(t))
	w.Zero(t.Attempt)
	w.Empty(t.Failure)
	w.False(t.Due.IsZero())
}

// testSnooze has a task put off by its processor, and then by its commit, after an attempt has failed.
func testSnooze(w *world) {
	const rest = 50 * time.Millisecond
	p := w.tape()
	var elapsed func() time.Duration
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		switch w.times(t.ID, "load") {
		case 1:
			return nil, errors.New("no luck")
		case 2:
			elapsed = since()
			return nil, fmt.Errorf("not open yet: %w", stage.Snooze(rest))
		case 3:
			w.note("attempt %d after %q, rested: %t", t.Attempt, t.Failure, elapsed() >= rest)
			return func(context.Context, stage.Tx) error { return stage.Snooze(-1) }, nil
		}
		w.note("attempt %d", t.Attempt)
		return nil, nil
	}})
	cfg.Store, cfg.Attempts = p, 2 // so a second failed attempt would be the last
	w.start(cfg)
	id := w.enqueue("short")
	w.becomes(id, isFinished)
	w.Equal([]string{`attempt 1 after "no luck", rested: true`, "attempt 1"}, testOnly(w.noted(), "a"))
	w.Equal([]string{
		isLoading, "CREATED, ERROR: no luck", isLoading, "CREATED, NORMAL", isLoading, "CREATED, NORMAL", isLoading, isFinished,
	}, p.history(id))
}
