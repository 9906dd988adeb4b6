package stage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", tier.Choose("15", "2", "500")) // the full tier runs under the race detector
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // they wait: a thread of a Group takes 10 ms to fall asleep, whatever the clock
	goleak.VerifyTestMain(m)
}

// host has an engine run, by the clock of synctest, until stop shuts it down under this policy. stop returns how Run
// has ended. On goroutines, Unbounded means the end of the context of Run, on the terms of Config.Shutdown.
type host func(e *stage.Engine) (stop func(shutdown.Policy) error)

var hosts = map[string]host{
	"goroutines": func(e *stage.Engine) func(shutdown.Policy) error {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		return func(terms shutdown.Policy) error {
			if terms == (shutdown.Policy{Kind: shutdown.Unbounded}) {
				cancel()
				return <-ended
			}
			err := e.Stop(terms)
			<-ended
			cancel()
			return err
		}
	},
	"a Group": inGroup(act.Config{}),
}

// inGroup makes an engine run in a Group of one scheduler, together with more.
func inGroup(cfg act.Config, more ...func(*act.Scheduler) error) host {
	return func(e *stage.Engine) func(shutdown.Policy) error {
		cfg := cfg
		cfg.Schedulers, cfg.Logger = 1, zap.NewNop()
		g, ended := act.NewGroup(cfg), make(chan error, 1)
		go func() { ended <- g.Run(context.Background(), append(more, e.Setup)...) }()
		synctest.Wait()
		return func(terms shutdown.Policy) error {
			g.Shutdown(terms)
			err := <-ended
			return errors.Join(err, g.Close())
		}
	}
}

// onEachHost runs a test for each host by the clock of synctest.
func onEachHost(t *testing.T, do func(t *testing.T, run host)) {
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				do(t, run)
				time.Sleep(time.Second) // in which idle goroutines of the Group's executor end
			})
		})
	}
}

// onGoroutines runs a test whose timers would take too long in a Group, by the clock of synctest.
func onGoroutines(t *testing.T, do func(t *testing.T, run host)) {
	synctest.Test(t, func(t *testing.T) { do(t, hosts["goroutines"]) })
}

// abrupt are the terms of a stop that waits for nothing.
var abrupt = shutdown.Policy{Kind: shutdown.Halt, Drop: true}

// processor is one made of a function that only has to wait.
func processor(f func(ctx context.Context)) stage.Processor {
	return func(ctx context.Context, _ *store.Task) (store.Commit, error) {
		f(ctx)
		return nil, nil
	}
}

var nothing = processor(func(context.Context) {})

// engineOf has one kind of task, "task", whose stages, from "0" by way of "0+" to "1" and so on, all have the same processor.
func engineOf(t testing.TB, s store.Store, stages int, p stage.Processor, change ...func(*stage.Config)) *stage.Engine {
	t.Helper()
	chain := stage.Begin("0")
	for i := range stages {
		chain = chain.Then(fmt.Sprint(i, "+"), "p", fmt.Sprint(i+1))
	}
	cfg := stage.Config{
		Store:      s,
		Kinds:      map[string]stage.Kind{"task": {Chain: chain, Backoff: func(int) time.Duration { return 0 }}},
		Processors: map[string]stage.Processor{"p": p},
		Logger:     zap.NewNop(),
	}
	for _, f := range change {
		f(&cfg)
	}
	e, err := stage.New(cfg)
	require.NoError(t, err)
	return e
}

// ofKind changes the kind "task".
func ofKind(change func(k *stage.Kind)) func(*stage.Config) {
	return func(cfg *stage.Config) {
		k := cfg.Kinds["task"]
		change(&k)
		cfg.Kinds["task"] = k
	}
}

// once has no stage tried again.
var once = ofKind(func(k *stage.Kind) { k.Attempts = 1 })

// enqueued adds a task of the kind "task".
func enqueued(t testing.TB, e *stage.Engine, data string) store.ID {
	t.Helper()
	id, err := e.Enqueue(t.Context(), "task", []byte(data))
	require.NoError(t, err)
	return id
}

// get returns a task as the store has it.
func get(t testing.TB, s store.Store, id store.ID) store.Task {
	t.Helper()
	x, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	return x
}

// state is where a task is, and what is being done about it.
func state(x store.Task) string { return x.Stage + " " + string(x.Status) }

// worksOff has e work off one task, and returns what becomes of it.
func worksOff(t testing.TB, e *stage.Engine) store.Task {
	t.Helper()
	return fires(t, e, enqueued(t, e, ""))
}

// fires has e claim tasks once, waits for their ends, and returns one of them.
func fires(t testing.TB, e *stage.Engine, id store.ID) store.Task {
	t.Helper()
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.Wait(t.Context()))
	return get(t, e.Store(), id)
}

// yes is for requests that are to be answered with true.
func yes(t testing.TB, ok bool, err error) {
	t.Helper()
	require.NoError(t, err)
	require.True(t, ok)
}

func BenchmarkEngine(b *testing.B) {
	enginetest.Benchmark(b, func(*testing.B) store.Store { return memory.New(nil) })
}
