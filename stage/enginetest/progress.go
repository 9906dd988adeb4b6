package enginetest

import (
	"context"
	"errors"

	"github.com/daimon-go/daimon/stage"
)

// testProgress has a processor note how far it has come, and its worker die after a heartbeat. Then it fails, suspends itself,
// and finishes; each try gets what was stored last.
func testProgress(w *world) {
	first := w.dying(w.config, func(kill func()) processors {
		return processors{"load": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s%q", t.ProgressStage, t.Progress)
			t.SetProgress([]byte("page 1"))
			t.SetProgress([]byte("page 2"))
			w.eventually("a heartbeat stores it", func() bool { return string(w.get(t.ID).Progress) == "page 2" })
			kill()
			t.SetProgress([]byte("page 3"))
			return nil, nil
		}}
	})
	id := first.enqueue("report")
	w.begins(id, "load", 1)
	w.eventually("it has returned", func() bool { return w.running() == 0 })
	w.ends(id)
	again := func(_ context.Context, t *stage.Task) (stage.Commit, error) {
		w.note("%s %q", t.ProgressStage, t.Progress)
		switch w.times(t.ID, "load") {
		case 2:
			t.SetProgress([]byte("page 4"))
			return nil, errors.New("no luck")
		case 3:
			return nil, stage.Snooze(0)
		case 4:
			t.SetProgress([]byte("page 5"))
			return nil, stage.ErrSuspended
		}
		t.SetProgress([]byte("all"))
		return w.writes("loaded"), nil
	}
	r := w.start(w.elsewhere(processors{
		"load": again,
		"build": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s%q", t.ProgressStage, t.Progress)
			return nil, nil
		},
	}))
	w.becomes(id, created+", SUSPENDED")
	t := w.get(id)
	w.Equal("page 5", string(t.Progress))
	w.Equal(loading, t.ProgressStage)
	r.resume(id)
	w.becomes(id, isFinished)
	w.Equal([]string{
		`""`, loading + ` "page 2"`, loading + ` "page 4"`, loading + ` "page 4"`, loading + ` "page 5"`, "committed", `""`,
	}, w.noted())
	t = w.get(id)
	w.Empty(t.Progress)
	w.Empty(t.ProgressStage)
}
