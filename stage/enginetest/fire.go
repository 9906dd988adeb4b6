package enginetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// shutdown10 is what an orderly end has time for.
var shutdown10 = shutdown.Policy{Time: patience / 2, Drop: true}

// testEnqueueHere has an engine that practically does not poll. In the end half of it is taken, and it never is idle.
func testEnqueueHere(w *world) {
	release := make(chan struct{})
	cfg := w.config(processors{
		"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			if string(t.Data) == "long" {
				<-release
			}
			return nil, nil
		},
		"build": w.watches("build"),
	})
	cfg.Poll, cfg.Workers = never, 2
	r := w.start(cfg)
	w.becomes(r.enqueue("short"), isFinished)
	id := r.enqueue("report")
	w.begins(id, "build", 1)
	r.suspend(id)
	w.becomes(id, isSuspended)
	r.resume(id)
	w.becomes(id, isFinished)
	long, err := r.Enqueue(w.ctx, "short", []byte("long"))
	w.NoError(err)
	var many []stage.ID
	for range 20 {
		many = append(many, r.enqueue("short"))
	}
	w.become(many, isFinished)
	close(release)
	w.becomes(long, isFinished)
}

func testEnqueueElsewhere(w *world) {
	cfg := w.config(processors{"load": w.fails("load", 1)})
	cfg.Backoff = func(int) time.Duration { return 30 * time.Millisecond }
	cfg.Workers = 2
	w.start(cfg)
	var many []stage.ID
	for range 5 {
		many = append(many, w.enqueue("report")) // each fails once and is due later
	}
	w.become(many, isFinished)
}

// testFireOnce has three engines, which run or not, and four goroutines each that fire them.
func testFireOnce(w *world) {
	const n = 200
	var ids []stage.ID
	for range n {
		ids = append(ids, w.enqueue("short"))
	}
	var claimed atomic.Int64
	var engines []*stage.Engine
	for i := range 3 {
		cfg := w.config(nil)
		if i == 1 {
			cfg.Store = w.other
		}
		e := w.engine(cfg)
		if w.host.name == group.name {
			w.host.start(w, e)
		}
		engines = append(engines, e)
	}
	together(12, func(i int) {
		for w.ctx.Err() == nil {
			k, err := engines[i%3].Fire(w.ctx)
			claimed.Add(int64(k))
			if err != nil {
				w.t.Error(err)
				return
			}
			_ = engines[i%3].Wait(w.ctx)
			if left, _ := w.other.List(w.ctx, stage.Selection{Stage: created, Limit: 1}); len(left) == 0 {
				return
			}
		}
	})
	w.become(ids, isFinished)
	if w.host.name == goroutines.name {
		w.EqualValues(n, claimed.Load(), "Fire counts each once")
	}
	for _, id := range ids {
		w.Equal(1, w.times(id, "load"))
		w.EqualValues(1, w.get(id).Token)
	}
}

func testFireRoom(w *world) {
	release := make(chan struct{})
	cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
		<-release
		return nil, nil
	}})
	cfg.Workers = 3
	var ids []stage.ID
	for range 10 {
		ids = append(ids, w.enqueue("short"))
	}
	e := w.engine(cfg)
	if w.host.name == group.name {
		w.host.start(w, e)
	} else {
		n, err := e.Fire(w.ctx)
		w.NoError(err)
		w.Equal(3, n)
	}
	w.eventually("three run", func() bool { return w.running() == 3 })
	n, err := e.Fire(w.ctx)
	w.NoError(err)
	w.Zero(n, "there is no room")
	waiting, err := e.List(w.ctx, stage.Selection{Stage: created, Status: stage.Normal})
	w.NoError(err)
	w.Len(waiting, 7, "and the others are not claimed")
	close(release)
	for w.host.name == goroutines.name {
		w.NoError(e.Wait(w.ctx))
		if n, err = e.Fire(w.ctx); n == 0 {
			break
		}
		w.NoError(err)
		w.LessOrEqual(n, 3)
	}
	w.become(ids, isFinished)
}

// testFireBeside enqueues and fires while a claim is under way that has asked for all the room. It brings one task.
func testFireBeside(w *world) {
	release := make(chan struct{})
	h := newHold(claim)
	g := w.gate()
	g.after = h.after
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		if string(t.Data) == "long" {
			<-release
		}
		return nil, nil
	}})
	cfg.Store, cfg.Poll, cfg.Workers = g, never, 3
	r := w.start(cfg)
	w.becomes(r.enqueue("short"), isFinished)
	w.NoError(r.Wait(w.ctx))
	time.Sleep(50 * time.Millisecond) // the claims that were rung for
	h.arm()
	long, err := r.Enqueue(w.ctx, "short", []byte("long"))
	w.NoError(err)
	w.comes("a claim", h.arrived)
	second := r.enqueue("short")
	n, err := r.Fire(w.ctx)
	w.NoError(err)
	w.Zero(n, "the room is asked for")
	w.Equal(isNew, w.see(second))
	time.Sleep(20 * time.Millisecond) // for the claims that were rung for
	close(h.release)
	w.becomes(second, isFinished)
	close(release)
	w.becomes(long, isFinished)
}

// testFireRunning fires an engine that does not look by itself. What it looks for when a task has ended may bring the
// next one before Fire does: then there is another.
func testFireRunning(w *world) {
	cfg := w.config(nil)
	cfg.Poll = never
	r := w.start(cfg)
	w.becomes(r.enqueue("short"), isFinished)
	w.eventually("Fire brings a task", func() bool {
		w.NoError(r.Wait(w.ctx))
		time.Sleep(5 * time.Millisecond) // mostly enough for what looks
		id, fired := w.enqueue("report"), 0
		w.eventually("it is claimed", func() bool {
			var err error
			fired, err = r.Fire(w.ctx)
			w.NoError(err)
			return fired > 0 || w.see(id) != isNew
		})
		w.becomes(id, isFinished)
		return fired == 1
	})
	w.NoError(r.stop(shutdown10))
	_, err := r.Fire(w.ctx)
	w.ErrorIs(err, stage.ErrStopped)
}

func testRunOnce(w *world) {
	r := w.start(w.config(nil))
	w.becomes(r.enqueue("short"), isFinished) // it runs
	w.ErrorIs(r.Run(w.ctx), stage.ErrRunning)
	g := act.NewGroup(act.Config{Schedulers: 1, Threads: act.Locked})
	defer func() { w.NoError(g.Close()) }()
	w.ErrorIs(g.Run(w.ctx, r.Setup), stage.ErrRunning)
	w.becomes(r.enqueue("short"), isFinished)
}

func testWait(w *world) {
	release := make(chan struct{})
	cfg := w.config(processors{"load": func(context.Context, *stage.Task) (stage.Commit, error) {
		<-release
		return nil, nil
	}})
	r := w.start(cfg)
	id := r.enqueue("short")
	w.begins(id, "load", 1)
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Millisecond)
	defer cancel()
	w.ErrorIs(r.Wait(ctx), context.DeadlineExceeded)
	close(release)
	w.NoError(r.Wait(w.ctx))
	w.Equal(isFinished, w.see(id))
}

func testKinds(w *world) {
	r := w.start(w.config(nil))
	ids, err := r.EnqueueAll(w.ctx, stage.NewTask{Kind: "unknown here", Stage: created})
	w.NoError(err)
	strange := ids[0]
	_, err = r.Enqueue(w.ctx, "unknown here", nil)
	w.ErrorIs(err, stage.ErrUnknownKind)
	w.ErrorContains(err, `"unknown here"`)
	long, brief := r.enqueue("report"), w.enqueue("short")
	w.becomes(long, isFinished)
	w.becomes(brief, isFinished)
	w.Equal(1, w.times(long, "build"))
	w.Zero(w.times(brief, "build"), "each kind goes its way")
	w.Equal(isNew, w.see(strange))
	all, err := r.List(w.ctx, stage.Selection{})
	w.NoError(err)
	w.Len(all, 3, "also those of kinds that it does not know")
	t, err := r.Get(w.ctx, strange)
	w.NoError(err)
	w.Equal("unknown here", t.Kind)
}
