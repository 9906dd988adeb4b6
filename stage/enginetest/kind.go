package enginetest

import (
	"context"

	"github.com/daimon-go/daimon/stage"
)

// testQueues has two engines with the same kinds, of which each works on one queue, and then one for all.
func testQueues(w *world) {
	kinds := map[string]stage.Kind{"report": {Chain: report, Queue: "slow"}, "short": {Chain: short}, "none": {Chain: short, Queue: "none"}}
	engine := func(worker string, queues ...string) *run {
		cfg := w.config(nil)
		cfg.Kinds, cfg.Queues, cfg.Worker = kinds, queues, worker
		return w.start(cfg)
	}
	slow := engine("slow", "slow")
	one, two, none := slow.enqueue("short"), slow.enqueue("report"), slow.enqueue("none")
	w.becomes(two, isFinished)
	w.Equal(isNew, w.see(one), "it was there first, and is for another queue")
	others := engine("others", "")
	w.becomes(one, isFinished)
	two2, one2 := others.enqueue("report"), others.enqueue("short")
	w.becomes(one2, isFinished)
	w.becomes(two2, isFinished)
	for id, worker := range map[stage.ID]string{one: "others", one2: "others", two: "slow", two2: "slow"} {
		w.Equal(worker, w.get(id).Worker)
	}
	w.Equal(isNew, w.see(none))
	engine("all")
	w.becomes(none, isFinished)
}

// testPriority has an engine that works on one task at a time, and on the urgent ones first.
func testPriority(w *world) {
	cfg := w.config(processors{"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("%s", t.Kind)
		return nil, nil
	}})
	cfg.Workers = 1
	cfg.Kinds = map[string]stage.Kind{"short": {Chain: short, Priority: -1}, "urgent": {Chain: short, Priority: 1}, "normal": {Chain: short}}
	var all []stage.ID
	for range 2 {
		all = append(all, w.enqueue("short"), w.enqueue("normal"), w.enqueue("urgent"))
	}
	w.start(cfg)
	w.become(all, isFinished)
	w.Equal([]string{"urgent", "urgent", "normal", "normal", "short", "short"}, w.noted())
}

// testPauseKind pauses a kind of which a task is at work, one has failed, and one is new.
func testPauseKind(w *world) {
	release := make(chan struct{})
	cfg := w.config(processors{
		"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			if string(t.Data) == "at work" {
				<-release
			}
			return nil, nil
		},
		"build": w.fails("build", 1),
	})
	r := w.start(cfg)
	held := w.enqueued(stage.NewTask{Kind: "report", Stage: created, Data: []byte("at work")})
	w.begins(held, "load", 1)
	_, err := r.PauseKind(w.ctx, "unknown here")
	w.ErrorIs(err, stage.ErrUnknownKind)
	w.yes(r.PauseKind(w.ctx, "report"))
	w.no(r.PauseKind(w.ctx, "report"))
	id := r.enqueue("report")
	close(release)
	w.becomes(held, loaded+", ERROR") // it went on until it has failed, and is not tried again
	w.becomes(r.enqueue("short"), isFinished)
	w.Equal(isNew, w.see(id))
	w.Equal(loaded+", ERROR", w.see(held))
	w.NoError(r.stop(shutdown10))

	cfg.Store, cfg.Poll = w.other, never
	other := w.start(cfg) // the pause outlives the engine that has made it
	paused, err := other.PausedKinds(w.ctx)
	w.NoError(err)
	w.Equal([]string{"report"}, paused)
	w.becomes(other.enqueue("short"), isFinished)
	w.Equal(isNew, w.see(id))
	w.yes(other.ResumeKind(w.ctx, "report"))
	w.no(other.ResumeKind(w.ctx, "report"))
	w.becomes(held, isFinished)
	w.becomes(id, isFinished)
	paused, err = other.PausedKinds(w.ctx)
	w.NoError(err)
	w.Empty(paused)
}
