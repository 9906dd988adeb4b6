package enginetest

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
)

var update = flag.Bool("update", false, "write the golden history of stage/internal/enginetest")

//go:embed testdata/life.txt
var history string

// tape is a Store that notes what a second reader sees of a task after each transition, if that is something else than before.
// Heartbeats are no transitions.
type tape struct {
	stage.Store
	second stage.Store

	mu    sync.Mutex // over the transition and the look
	seen  map[stage.ID]string
	lines []string
}

func (p *tape) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// see is where a task is for the second reader, and what is being done about it.
func (p *tape) see(id stage.ID) string {
	t, err := p.second.Get(context.Background(), id)
	switch {
	case err != nil:
		return err.Error()
	case t.Status == stage.Error:
		return fmt.Sprintf("%s, %s: %s", t.Stage, t.Status, t.Failure)
	}
	return fmt.Sprintf("%s, %s", t.Stage, t.Status)
}

// after notes what is seen of tasks after f.
func after[T any](p *tape, f func() (T, error), ids func(T) []stage.ID) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, err := f()
	if err != nil {
		return v, err
	}
	for _, id := range ids(v) {
		if now := p.see(id); now != p.seen[id] {
			t, _ := p.second.Get(context.Background(), id)
			p.lines = append(p.lines, fmt.Sprintf("%s: %s", t.Data, now))
			p.seen[id] = now
		}
	}
	return v, nil
}

func of[T any](id stage.ID) func(T) []stage.ID { return func(T) []stage.ID { return []stage.ID{id} } }

func (p *tape) Enqueue(ctx context.Context, tasks ...stage.NewTask) ([]stage.ID, error) {
	return after(p, func() ([]stage.ID, error) { return p.Store.Enqueue(ctx, tasks...) }, func(ids []stage.ID) []stage.ID { return ids })
}

func (p *tape) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	return after(p, func() ([]stage.Task, error) { return p.Store.Claim(ctx, c) }, func(tasks []stage.Task) (ids []stage.ID) {
		for _, t := range tasks {
			ids = append(ids, t.ID)
		}
		return ids
	})
}

func (p *tape) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	return after(p, func() (stage.Task, error) { return p.Store.Enter(ctx, l, at, attempt) }, of[stage.Task](l.Task))
}

func (p *tape) Finish(ctx context.Context, l stage.Lease, x stage.Passage, c stage.Commit) error {
	_, err := after(p, func() (bool, error) { return true, p.Store.Finish(ctx, l, x, c) }, of[bool](l.Task))
	return err
}

func (p *tape) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	return after(p, func() (stage.Status, error) { return p.Store.Return(ctx, l, r) }, of[stage.Status](l.Task))
}

func (p *tape) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return after(p, func() (bool, error) { return p.Store.Suspend(ctx, id) }, of[bool](id))
}

func (p *tape) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return after(p, func() (bool, error) { return p.Store.Resume(ctx, id, failed) }, of[bool](id))
}

// noting returns a middleware that notes its calls.
func (p *tape) noting(name string) stage.Middleware {
	return func(next stage.Processor) stage.Processor {
		return stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			p.note("%s:   %s before %s", t.Data, name, t.Stage)
			commit, err := next.Process(ctx, t)
			if err == nil {
				p.note("%s:   %s after %s", t.Data, name, t.Stage)
			}
			return commit, err
		})
	}
}

// Life plays three tasks, one after the other: one succeeds, one is suspended in its second stage and resumed, one fails in it.
// The history is what a second reader has seen of them, with the calls of processors, commits and middleware in between. It is
// the same for an engine on goroutines, for one in a Group, and for one that only calls Fire. second is another connection to
// the tasks of s, as another process has it.
func Life(t *testing.T, s, second stage.Store) {
	for _, row := range []struct {
		name string
		run  func(context.Context, *stage.Engine) error
	}{
		{"goroutines", func(ctx context.Context, e *stage.Engine) error { return e.Run(ctx) }},
		{"Group", func(ctx context.Context, e *stage.Engine) error {
			return act.Run(ctx, act.Config{Schedulers: 2, Logger: zap.NewNop()}, e.Setup)
		}},
		{"Fire", nil},
	} {
		t.Run(row.name, func(t *testing.T) { live(t, &tape{Store: s, second: second, seen: map[stage.ID]string{}}, row.run) })
	}
}

func live(t *testing.T, p *tape, run func(context.Context, *stage.Engine) error) {
	builds := make(chan struct{}, 10)
	e, err := stage.New(stage.Config{
		Store: p, Workers: 1, Poll: time.Hour, Logger: zap.NewNop(), Worker: "the only one",
		Kinds: map[string]stage.Kind{"report": {Chain: stage.Begin("CREATED").
			Then("LOADING_DATA", "load", "DATA_LOADED").Then("BUILDING_REPORT", "build", "FINISHED")}},
		Provider: stage.Processors{
			"load": stage.ProcessorFunc(func(_ context.Context, t *stage.Task) (stage.Commit, error) {
				p.note("%s:   load, while it is seen at %s", t.Data, p.see(t.ID))
				return func(context.Context, stage.Tx) error {
					p.lines = append(p.lines, fmt.Sprintf("%s:   commit", t.Data))
					return nil
				}, nil
			}),
			"build": p.noting("its own")(stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
				p.note("%s:   build, while it is seen at %s", t.Data, p.see(t.ID))
				builds <- struct{}{}
				switch string(t.Data) {
				case "fails":
					return nil, stage.Permanent(errors.New("out of paper"))
				case "is suspended":
					if len(builds) == 2 {
						<-ctx.Done()
					}
					return nil, stage.CheckSuspended(ctx)
				}
				return nil, nil
			})),
		},
		Middleware: []stage.Middleware{p.noting("first"), p.noting("second")},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	goOn := func() {}
	if run == nil {
		ended <- nil
		goOn = func() {
			n, err := e.Fire(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	} else {
		go func() { ended <- run(ctx, e) }()
	}
	play := func(name string) stage.ID {
		id, err := e.Enqueue(ctx, "report", []byte(name))
		require.NoError(t, err)
		goOn()
		return id
	}
	await := func(id stage.ID) {
		_, err := e.Await(ctx, id)
		require.NoError(t, err)
		require.NoError(t, e.Wait(ctx))
	}
	await(play("succeeds"))
	id := play("is suspended")
	for len(builds) < 2 {
		time.Sleep(time.Millisecond)
	}
	ok, err := e.Suspend(ctx, id)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, e.Wait(ctx))
	ok, err = e.Resume(ctx, id)
	require.NoError(t, err)
	require.True(t, ok)
	goOn()
	await(id)
	await(play("fails"))
	cancel()
	require.NoError(t, <-ended)

	got := strings.Join(p.lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile("internal/enginetest/testdata/life.txt", []byte(got), 0o644)) // from the folder of package stage
		return
	}
	require.Equal(t, history, got)
}
