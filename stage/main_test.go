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

// unreliable is a store whose calls pass answer, with the name of the call and its argument. answer calls do, which
// makes the call, or does not, and returns do's error or another one that stands for an answer that is lost.
type unreliable struct {
	store.Store
	answer func(ctx context.Context, call string, arg any, do func() error) error
}

var errLost = errors.New("the answer is lost")

func answered[T any](ctx context.Context, u *unreliable, call string, arg any, f func() (T, error)) (none T, err error) {
	var got T
	err = u.answer(ctx, call, arg, func() (err error) {
		got, err = f()
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}

func (u *unreliable) Enqueue(ctx context.Context, tasks ...store.NewTask) ([]store.ID, error) {
	return answered(ctx, u, "Enqueue", tasks, func() ([]store.ID, error) { return u.Store.Enqueue(ctx, tasks...) })
}

func (u *unreliable) Tick(ctx context.Context, ticks ...store.Tick) (now time.Time, last []time.Time, err error) {
	last, err = answered(ctx, u, "Tick", ticks, func() (last []time.Time, err error) {
		now, last, err = u.Store.Tick(ctx, ticks...)
		return last, err
	})
	return now, last, err
}

func (u *unreliable) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	return answered(ctx, u, "Claim", c, func() ([]store.Task, error) { return u.Store.Claim(ctx, c) })
}

func (u *unreliable) Claimed(ctx context.Context, t store.Ticket) ([]store.Task, error) {
	return answered(ctx, u, "Claimed", t, func() ([]store.Task, error) { return u.Store.Claimed(ctx, t) })
}

func (u *unreliable) Enter(ctx context.Context, l store.Lease, at string, attempt int) (store.Task, error) {
	return answered(ctx, u, "Enter", l, func() (store.Task, error) { return u.Store.Enter(ctx, l, at, attempt) })
}

func (u *unreliable) Finish(ctx context.Context, l store.Lease, p store.Passage, c store.Commit) error {
	_, err := answered(ctx, u, "Finish", l, func() (struct{}, error) { return struct{}{}, u.Store.Finish(ctx, l, p, c) })
	return err
}

func (u *unreliable) Return(ctx context.Context, l store.Lease, r store.Return) (store.Status, error) {
	return answered(ctx, u, "Return", r, func() (store.Status, error) { return u.Store.Return(ctx, l, r) })
}

func (u *unreliable) Heartbeat(ctx context.Context, r []store.Renewal, d time.Duration) ([]error, error) {
	return answered(ctx, u, "Heartbeat", r, func() ([]error, error) { return u.Store.Heartbeat(ctx, r, d) })
}

func (u *unreliable) List(ctx context.Context, s store.Selection) ([]store.Task, error) {
	return answered(ctx, u, "List", s, func() ([]store.Task, error) { return u.Store.List(ctx, s) })
}

func (u *unreliable) SetPaused(ctx context.Context, kind string, paused bool) (bool, error) {
	return answered(ctx, u, "SetPaused", kind, func() (bool, error) { return u.Store.SetPaused(ctx, kind, paused) })
}

func (u *unreliable) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return answered(ctx, u, "Suspend", id, func() (bool, error) { return u.Store.Suspend(ctx, id) })
}

func (u *unreliable) Resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	return answered(ctx, u, "Resume", id, func() (bool, error) { return u.Store.Resume(ctx, id, failed) })
}

func (u *unreliable) Cancel(ctx context.Context, id store.ID) (bool, error) {
	return answered(ctx, u, "Cancel", id, func() (bool, error) { return u.Store.Cancel(ctx, id) })
}

func (u *unreliable) Purge(ctx context.Context, s store.Status, age time.Duration, limit int) (int, error) {
	return answered(ctx, u, "Purge", fmt.Sprint(s, " ", age, " ", limit), func() (int, error) { return u.Store.Purge(ctx, s, age, limit) })
}

// hangs is an answer of a store that says nothing: it waits for the end of the context.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
