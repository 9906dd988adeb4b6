package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// testEnded has tasks that end in each way, and some that do not end. Config.OnEnd sees each end once, in the store.
func testEnded(w *world) {
	lost, g := newCountdown(1), w.gate()
	g.after = func(op string, err error) error {
		if op == finish && err == nil {
			return lost.trouble() // the stage is finished again, which changes nothing
		}
		return err
	}
	cfg := w.config(processors{"load": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		switch string(t.Data) {
		case "fails once":
			if w.times(t.ID, "load") == 1 {
				return nil, errors.New("no luck")
			}
		case "fails":
			return nil, errors.New("never")
		case "panics":
			panic("boom")
		case "is cancelled":
			<-ctx.Done()
		case "suspends itself":
			return nil, stage.ErrSuspended
		}
		return w.writes("done"), nil
	}})
	cfg.Store, cfg.Attempts, cfg.Workers = g, 2, 16
	cfg.OnEnd = func(t stage.Task) {
		now := w.get(t.ID)
		w.note("ended %d: %s", t.ID, t.Data)
		w.True(t.Changed.IsZero())
		t.Data, t.Changed = now.Data, now.Changed
		w.Equal(now, t)
	}
	r := w.start(cfg)
	ids := map[string]stage.ID{}
	for name, end := range map[string]string{
		"finishes":        isFinished,
		"fails once":      isFinished,
		"fails":           created + ", ERROR",
		"panics":          created + ", ERROR",
		"is cancelled":    created + ", CANCELLED",
		"suspends itself": created + ", SUSPENDED",
	} {
		id, err := r.Enqueue(w.ctx, "short", []byte(name))
		w.NoError(err)
		ids[name] = id
		if name == "is cancelled" {
			w.begins(id, "load", 1)
			w.yes(r.Cancel(w.ctx, id))
		}
		w.eventually(name, func() bool {
			t := w.get(id)
			return state(t) == end && !t.Runs()
		})
	}
	w.NoError(r.Wait(w.ctx))
	var want []string
	for name, id := range ids {
		if name != "suspends itself" {
			want = append(want, fmt.Sprintf("ended %d: %s", id, name))
		}
	}
	w.ElementsMatch(want, testOnly(w.noted(), "e"))
}

// testEndedBadly has a Config.OnEnd that panics, then one that calls Goexit. Both are the end of it.
func testEndedBadly(w *world) {
	for name, f := range map[string]func() error{"panics": panics, "exits": goexits} {
		var calls sync.Map
		cfg := w.config(nil)
		cfg.Workers = 1
		cfg.OnEnd = func(t stage.Task) {
			_, again := calls.Swap(t.ID, true)
			w.False(again, name)
			_ = f()
		}
		r := w.start(cfg)
		for range 3 { // more than there are workers
			id := r.enqueue("short")
			w.becomes(id, isFinished)
			w.NoError(r.Wait(w.ctx), name)
			_, called := calls.Load(id)
			w.True(called, name)
		}
		w.NoError(r.stop(shutdown10), name)
	}
}

// testEndedLong has a Config.OnEnd that takes its time. A stop waits for it, and its task has no heartbeat.
func testEndedLong(w *world) {
	g := w.gate()
	h := newHold("OnEnd")
	h.arm()
	g.before = func(_ context.Context, op string) error {
		if op == heartbeat && !h.armed.Load() {
			w.note("a heartbeat")
		}
		return nil
	}
	cfg := w.config(nil)
	cfg.Store, cfg.Heartbeat = g, time.Millisecond
	cfg.OnEnd = func(stage.Task) { _ = h.before(w.ctx, "OnEnd") }
	r := w.start(cfg)
	id := r.enqueue("short")
	w.comes("the end is told", h.arrived)
	time.Sleep(20 * time.Millisecond)
	cut := r.cuts(within)
	w.Contains(cut.Names, shutdown.Count{Name: fmt.Sprintf("short %d at FINISHED", id), N: 1})
	w.Empty(w.noted())
	close(h.release)
	w.NoError(r.Wait(w.ctx))
}
