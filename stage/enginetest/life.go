package enginetest

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/daimon-go/daimon/stage"
)

var update = flag.Bool("update", false, "write the golden histories of stage/enginetest")

//go:embed testdata/life.txt
var life string

// testLife plays three tasks, one after the other: one succeeds, one is suspended in its second stage and resumed, one
// fails in it. The history is what a second reader has seen of them, with the calls of processors and middleware in
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
	cfg.Middleware = []stage.Middleware{w.noting("")}
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

// noting returns a middleware that notes its calls.
func (w *world) noting(name string) stage.Middleware {
	return func(next stage.Processor) stage.Processor {
		return stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			w.note("%s:   %sbefore %s", t.Data, name, t.Stage)
			commit, err := next.Process(ctx, t)
			if err == nil {
				w.note("%s:   %safter %s", t.Data, name, t.Stage)
			}
			return commit, err
		})
	}
}

// testFortyFive suspends three long tasks among forty-five. If elsewhere, another process does so. The contexts of their
// processors have ended when Suspend returns. Those of another process have ended when a heartbeat has been answered that
// was sent after that.
func testFortyFive(w *world, elsewhere bool) {
	p := &prompt{contexts: map[stage.ID]context.Context{}, suspended: map[stage.ID]int{}}
	g := w.gate()
	g.before, g.after = p.before, p.after
	cfg := w.config(processors{
		"build": func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			for string(t.Data) == "slow" && w.times(t.ID, "build") == 1 { // until it is suspended
				p.watch(t.ID, ctx)
				time.Sleep(time.Millisecond)
				if err := stage.CheckSuspended(ctx); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	})
	cfg.Store = g
	r := w.start(cfg)
	asked := r.Engine
	if elsewhere {
		cfg := w.config(nil)
		cfg.Store = w.other
		asked = w.engine(cfg)
	}
	var three, others []stage.ID
	for range 3 {
		id, err := asked.Enqueue(w.ctx, "report", []byte("slow"))
		w.NoError(err)
		three = append(three, id)
	}
	for range 42 {
		others = append(others, w.enqueue("report"))
	}
	for _, id := range three {
		w.eventually("it builds", func() bool { return p.context(id) != nil })
	}
	var answers [3]bool
	together(3, func(i int) {
		answers[i], _ = asked.Suspend(w.ctx, three[i])
		p.suspends(three[i])
	})
	w.Equal([3]bool{true, true, true}, answers)
	if !elsewhere {
		for _, id := range three {
			w.ErrorIs(context.Cause(p.context(id)), stage.ErrSuspended)
		}
	}
	w.become(others, isFinished)
	w.become(three, isSuspended)
	w.False(p.isLate())
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

// prompt notes whether the context of a processor goes on although a heartbeat has been answered whose leases were listed after
// its task was suspended: the second that began since then, as the list is made before the call. The next heartbeat begins
// when the engine has handled that answer.
type prompt struct {
	mu              sync.Mutex
	begun, answered int                          // how many heartbeats have begun, and the latest of them that was answered
	contexts        map[stage.ID]context.Context // the first of each task
	suspended       map[stage.ID]int             // how many heartbeats had begun by then
	late            bool
}

func (p *prompt) watch(id stage.ID, ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contexts[id] = ctx
}

func (p *prompt) context(id stage.ID) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.contexts[id]
}

func (p *prompt) suspends(id stage.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspended[id] = p.begun
}

func (p *prompt) isLate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// before is for gate.before.
func (p *prompt) before(_ context.Context, op string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op == heartbeat {
		for id, begun := range p.suspended {
			p.late = p.late || p.answered > begun+1 && p.contexts[id].Err() == nil
		}
		p.begun++
	}
	return nil
}

// after is for gate.after.
func (p *prompt) after(op string, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case op != heartbeat:
	case err == nil:
		p.answered = p.begun
	default: // it may still be at work in the database, and the next one leaves out what it has locked
		for id := range p.suspended {
			p.suspended[id] = p.begun
		}
	}
	return err
}

// testMiddleware has two of the engine and one of a processor.
func testMiddleware(w *world) {
	p := w.tape()
	cfg := w.config(nil)
	cfg.Store = p
	cfg.Middleware = []stage.Middleware{w.noting("first "), w.noting("second ")}
	build := stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
		w.note("x:   build")
		return func(context.Context, stage.Tx) error { w.note("x:   commit"); return nil }, nil
	})
	cfg.Provider = stage.Processors{
		"load":  stage.ProcessorFunc(idle),
		"build": w.noting("its own ")(build),
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
		"x:   second after LOADING_DATA",
		"x:   first after LOADING_DATA",
		"x: DATA_LOADED, IN_PROCESSING",
		"x: BUILDING_REPORT, IN_PROCESSING",
		"x:   first before BUILDING_REPORT",
		"x:   second before BUILDING_REPORT",
		"x:   its own before BUILDING_REPORT",
		"x:   build",
		"x:   its own after BUILDING_REPORT",
		"x:   second after BUILDING_REPORT",
		"x:   first after BUILDING_REPORT",
		"x:   commit",
		"x: FINISHED, NORMAL",
	}, w.notedAll(17))
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
