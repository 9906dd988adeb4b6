package enginetest

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage"
)

var update = flag.Bool("update", false, "write the golden histories of stage/enginetest")

//go:embed testdata/life.txt
var life string

// testLife plays three tasks, one after the other: one succeeds, one is suspended in its second stage and resumed, one
// fails in it. The history is what a second reader has seen of them, with the calls of processors and interceptors in
// between. An engine that only calls Fire writes the same.
func testLife(w *world, byFire bool) {
	p := w.tape()
	cfg := w.config(processors{
		"load": func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s:   load, while it is seen at %s", t.Data, w.see(t.ID))
			return nil, nil
		},
		"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s:   build, while it is seen at %s", t.Data, w.see(t.ID))
			switch {
			case string(t.Data) == "fails":
				return nil, stage.Permanent(errors.New("out of paper"))
			case string(t.Data) == "is suspended" && w.times(t.ID, "build") == 1:
				<-ctx.Done()
				return nil, stage.CheckSuspended(ctx)
			}
			return nil, nil
		},
	})
	cfg.Store, cfg.Workers, cfg.Poll = p, 1, never
	cfg.Interceptors = []stage.Interceptor{notes{w, ""}}
	e := w.engine(cfg)
	goOn := func() {}
	if byFire {
		goOn = func() {
			n, err := e.Fire(w.ctx)
			w.NoError(err)
			w.Equal(1, n)
		}
	} else {
		w.host.start(w, e)
	}
	play := func(name string) stage.ID {
		id, err := e.Enqueue(w.ctx, "report", []byte(name))
		w.NoError(err)
		goOn()
		return id
	}

	w.becomes(play("succeeds"), isFinished)
	w.NoError(e.Wait(w.ctx))
	id := play("is suspended")
	w.eventually("it builds", func() bool { return w.times(id, "build") == 1 })
	w.yes(e.Suspend(w.ctx, id))
	w.becomes(id, isSuspended)
	w.NoError(e.Wait(w.ctx))
	w.yes(e.Resume(w.ctx, id))
	goOn()
	w.becomes(id, isFinished)
	w.NoError(e.Wait(w.ctx))
	w.becomes(play("fails"), loaded+", ERROR")
	w.NoError(e.Wait(w.ctx))

	w.golden("life.txt", life, strings.Join(w.noted(), "\n")+"\n")
}

// golden compares with a file of testdata, or writes it.
func (w *world) golden(name, want, got string) {
	w.t.Helper()
	if *update {
		_, here, _, _ := runtime.Caller(0)
		w.NoError(os.WriteFile(filepath.Join(filepath.Dir(here), "testdata", name), []byte(got), 0o644))
		return
	}
	w.Equal(want, got)
}

// notes is an Interceptor that notes its calls.
type notes struct {
	w    *world
	name string
}

func (l notes) Before(_ context.Context, t *stage.Task) error {
	l.w.note("%s:   %sbefore %s", t.Data, l.name, t.Stage)
	return nil
}

func (l notes) After(_ context.Context, t *stage.Task) error {
	l.w.note("%s:   %safter %s", t.Data, l.name, t.Stage)
	return nil
}

// testFortyFive suspends three long tasks among forty-five. If elsewhere, another process does so.
//
// A suspension takes less than 200 ms. On a machine that does other things too that is so in one of five rounds.
func testFortyFive(w *world, elsewhere bool) {
	var slow stage.ID // the last of the slow tasks of this round
	r := w.start(w.config(processors{
		"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			if string(t.Data) != "slow" {
				return nil, nil
			}
			for i := 0; i < 25 || w.times(t.ID, "build") == 1; i++ { // the first time until it is suspended
				time.Sleep(20 * time.Millisecond)
				if err := stage.CheckSuspended(ctx); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}))
	asked := r.Engine
	if elsewhere {
		cfg := w.config(nil)
		cfg.Store = w.other
		asked = w.engine(cfg)
	}
	took := make([]time.Duration, 3)
	for round := 0; round == 0 || slices.Max(took) >= 200*time.Millisecond; round++ {
		w.Less(round, 5, "suspensions took %v", took)
		var three, others []stage.ID
		for range 3 {
			var err error
			slow, err = asked.Enqueue(w.ctx, "report", []byte("slow"))
			w.NoError(err)
			three = append(three, slow)
		}
		for range 42 {
			others = append(others, w.enqueue("report"))
		}
		for _, id := range three {
			w.begins(id, "build", 1)
		}
		together(3, func(i int) {
			took[i] = never
			elapsed := since()
			if ok, err := asked.Suspend(w.ctx, three[i]); ok && err == nil {
				for w.see(three[i]) == isBuilding {
					time.Sleep(time.Millisecond)
				}
				took[i] = elapsed()
			}
		})
		w.become(others, isFinished)
		w.become(three, isSuspended)
		for _, id := range three {
			w.yes(asked.Resume(w.ctx, id))
		}
		w.become(three, isFinished)
		for _, id := range append(three, others...) {
			w.Equal(1, w.times(id, "load"))
		}
		for _, id := range three {
			w.Equal(2, w.times(id, "build"))
		}
		for _, id := range others {
			w.Equal(1, w.times(id, "build"))
		}
	}
}

// testInterceptors has two interceptors of the engine and two of a processor.
func testInterceptors(w *world) {
	p := w.tape()
	cfg := w.config(nil)
	cfg.Store = p
	cfg.Interceptors = []stage.Interceptor{notes{w, "first "}, notes{w, "second "}}
	build := stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
		w.note("x:   build")
		return func(stage.Tx) error { w.note("x:   commit"); return nil }, nil
	})
	cfg.Provider = stage.Processors{
		"load":  stage.ProcessorFunc(idle),
		"build": stage.Intercepted(build, notes{w, "its first "}, notes{w, "its second "}),
	}
	e := w.host.start(w, w.engine(cfg))
	id, err := e.Enqueue(w.ctx, "report", []byte("x"))
	w.NoError(err)
	w.becomes(id, isFinished)
	w.Equal([]string{
		"x: CREATED, NORMAL",
		"x: LOADING_DATA, IN_PROCESSING",
		"x:   first before LOADING_DATA",
		"x:   second before LOADING_DATA",
		"x:   first after LOADING_DATA",
		"x:   second after LOADING_DATA",
		"x: DATA_LOADED, IN_PROCESSING",
		"x: BUILDING_REPORT, IN_PROCESSING",
		"x:   first before BUILDING_REPORT",
		"x:   second before BUILDING_REPORT",
		"x:   its first before BUILDING_REPORT",
		"x:   its second before BUILDING_REPORT",
		"x:   build",
		"x:   its first after BUILDING_REPORT",
		"x:   its second after BUILDING_REPORT",
		"x:   first after BUILDING_REPORT",
		"x:   second after BUILDING_REPORT",
		"x:   commit",
		"x: FINISHED, NORMAL",
	}, w.notedAll(19))
}

// notedAll is noted when there are n.
func (w *world) notedAll(n int) []string {
	w.t.Helper()
	var all []string
	w.eventually("all is noted", func() bool {
		all = append(all, w.noted()...)
		return len(all) >= n
	})
	return all
}
