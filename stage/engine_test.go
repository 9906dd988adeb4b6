package stage_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
)

// What follows is for engines in each host. What one engine does with a task, step by step, and what engines do together is in
// the model and in the worlds.

const life = `
CREATED NORMAL
LOADING_DATA IN_PROCESSING
  first begins
  second begins
  load
  second ends
  first ends
  commit
DATA_LOADED IN_PROCESSING
BUILDING_REPORT IN_PROCESSING
  first begins
  second begins
  build
  second ends
  first ends
DATA_LOADED SUSPENDED
DATA_LOADED RESUMED
BUILDING_REPORT IN_PROCESSING
  first begins
  second begins
  build
  second ends
  first ends
DATA_LOADED ERROR
BUILDING_REPORT IN_PROCESSING
  first begins
  second begins
  build
  second ends
  first ends
FINISHED NORMAL
`

// A task is suspended in its second stage and resumed, and then fails in it once. The history is what a reader of the
// store has seen after each call, with the calls of middleware, processors and commits in between. By the clock all
// this is one moment.
func TestLife(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		var mu sync.Mutex
		history, seen, builds := "\n", "", 0 // the first two are what mu guards
		note := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			history += line + "\n"
		}
		s := memory.New(nil)
		e := engineOf(t, &unreliable{s, func(ctx context.Context, _ string, _ any, do func() error) error {
			err := do()
			x, none := s.Get(ctx, 1)
			mu.Lock()
			defer mu.Unlock()
			if none == nil && state(x) != seen {
				seen = state(x)
				history += seen + "\n"
			}
			return err
		}}, 1, nil, func(cfg *stage.Config) {
			cfg.Kinds = map[string]stage.Kind{"task": {Chain: reportChain(), Backoff: cfg.Kinds["task"].Backoff}}
			cfg.Poll, cfg.Heartbeat, cfg.Lease = time.Hour, time.Hour, 3*time.Hour
			for _, name := range []string{"first", "second"} {
				says := func(what string) func() error { return func() error { note("  " + name + what); return nil } }
				cfg.Middleware = append(cfg.Middleware, around(says(" begins"), says(" ends")))
			}
			cfg.Processors = map[string]stage.Processor{
				"load": computes(func() error { note("  load"); return nil }, func() error { note("  commit"); return nil }),
				"build": func(ctx context.Context, _ *store.Task) (store.Commit, error) {
					note("  build")
					switch builds++; builds {
					case 1:
						<-ctx.Done()
						return nil, stage.CheckSuspended(ctx)
					case 2:
						return nil, fail()
					}
					return nil, nil
				},
			}
		})
		begun := time.Now()
		stop := run(e)
		id := enqueued(t, e, "")
		synctest.Wait()
		ok, err := e.Suspend(t.Context(), id)
		yes(t, ok, err)
		synctest.Wait()
		ok, err = e.Resume(t.Context(), id)
		yes(t, ok, err)
		_, err = e.Result(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, begun, time.Now())
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
		require.Equal(t, life, history)
	})
}

func panics() error { panic("boom") }

func goexits() error {
	runtime.Goexit()
	return nil
}

func fail() error { return errors.New("no luck") }

func quiet() error { return nil }

// computes is a processor that returns what f returns, and a commit that returns what written returns.
func computes(f, written func() error) stage.Processor {
	return func(context.Context, *store.Task) (store.Commit, error) {
		return func(context.Context, store.Tx) error { return written() }, f()
	}
}

// around returns a middleware that calls before and after, and fails with their errors.
func around(before, after func() error) func(stage.Processor) stage.Processor {
	return func(next stage.Processor) stage.Processor {
		return func(ctx context.Context, t *store.Task) (store.Commit, error) {
			if err := before(); err != nil {
				return nil, err
			}
			commit, err := next(ctx, t)
			return commit, errors.Join(err, after())
		}
	}
}

// dumb is an error that cannot say what it is.
type dumb struct{}

func (dumb) Error() string { panic("speechless") }

// Whatever goes wrong with a stage is an attempt of its task that has failed, and the engine goes on.
func TestTroublesAreTheTasks(t *testing.T) {
	t.Parallel()
	is := func(p stage.Processor) map[string]stage.Processor { return map[string]stage.Processor{"p": p} }
	ok := computes(quiet, quiet)
	for _, row := range []struct {
		name       string
		processors map[string]stage.Processor
		says       string
	}{
		{"unknown processor", map[string]stage.Processor{}, `no processor "p"`},
		{"no processor", is(nil), `no processor "p"`},
		{"processor fails", is(computes(fail, quiet)), "no luck"},
		{"processor panics", is(computes(panics, quiet)), "boom"},
		{"processor exits", is(computes(goexits, quiet)), "Goexit"},
		{"commit fails", is(computes(quiet, fail)), "no luck"},
		{"commit panics", is(computes(quiet, panics)), "boom"},
		{"commit exits", is(computes(quiet, goexits)), "Goexit"},
		{"middleware panics before", is(around(panics, quiet)(ok)), "boom"},
		{"middleware exits before", is(around(goexits, quiet)(ok)), "Goexit"},
		{"middleware fails after", is(around(quiet, fail)(ok)), "no luck"},
		{"middleware exits after", is(around(quiet, goexits)(ok)), "Goexit"},
		{"dumb error", is(computes(func() error { return dumb{} }, quiet)), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			test := func(t *testing.T, run host) {
				e := engineOf(t, memory.New(nil), 1, nil, func(cfg *stage.Config) {
					cfg.Processors, cfg.Workers = row.processors, 1
					cfg.OnEnd = func(store.Task) { _ = goexits() } // which causes no more trouble than a panic
				}, ofKind(func(k *stage.Kind) { k.Attempts = 2 }))
				stop := run(e)
				for range 2 { // more than there are workers
					id := enqueued(t, e, "")
					synctest.Wait()
					x := get(t, e.Store(), id)
					require.Equal(t, "0 ERROR", state(x))
					require.Equal(t, 2, x.Attempt)
					require.False(t, x.Runs())
					require.Contains(t, x.Failure, row.says)
				}
				require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
			}
			if row.says == "Goexit" { // which may end a goroutine of the host
				onEachHost(t, test)
				return
			}
			onGoroutines(t, test)
		})
	}
}

// A task that is found at a stage which its chain does not have fails, and one at the last is finished.
func TestFoundAtAnotherStage(t *testing.T) {
	for at, want := range map[string]string{"GONE": "GONE ERROR", "1": "1 NORMAL"} {
		s := memory.New(nil)
		ids, err := s.Enqueue(t.Context(), store.NewTask{Kind: "task", Stage: at})
		require.NoError(t, err)
		x := fires(t, engineOf(t, s, 1, nothing, once), ids[0])
		require.Equal(t, want, state(x))
		require.False(t, x.Runs())
	}
}

// A processor that takes too long fails, whether it obeys its context or returns as if all were well.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, obeys := range map[string]bool{"obeys": true, "returns as if all were well": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := worksOff(t, engineOf(t, memory.New(nil), 1, func(ctx context.Context, _ *store.Task) (store.Commit, error) {
					<-ctx.Done()
					require.ErrorIs(t, stage.CheckSuspended(ctx), stage.ErrTimeout)
					if obeys {
						return nil, ctx.Err()
					}
					return nil, nil
				}, once, ofKind(func(k *stage.Kind) { k.Timeout = time.Minute })))
				require.Equal(t, "0 ERROR", state(x))
				require.Contains(t, x.Failure, "stage: the processor has taken too long: 1m0s")
			})
		})
	}
}

// A task that is put off, by its processor or by its commit, rests so long, and that is not an attempt.
func TestSnooze(t *testing.T) {
	for name, p := range map[string]func(err error) stage.Processor{
		"processor": func(err error) stage.Processor { return computes(func() error { return err }, quiet) },
		"commit":    func(err error) stage.Processor { return computes(quiet, func() error { return err }) },
	} {
		t.Run(name, func(t *testing.T) {
			x := worksOff(t, engineOf(t, memory.New(nil), 1, p(stage.Snooze(time.Hour))))
			require.Equal(t, "0 NORMAL", state(x))
			require.Zero(t, x.Attempt)
			require.Equal(t, time.Hour, x.Due.Sub(x.Changed))
		})
	}
}

// Of a kind with Workers no more tasks are worked on at a time, and others get the rest. All are done in the end,
// although nothing but the end of one has the next one claimed.
func TestWorkersOfAKind(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		busy, release := map[string]int{}, make(chan struct{})
		var first atomic.Bool
		e := engineOf(t, memory.New(nil), 1, nil, func(cfg *stage.Config) {
			few := cfg.Kinds["task"]
			few.Workers = 2
			cfg.Kinds = map[string]stage.Kind{"task": few, "other": {Chain: few.Chain}}
			cfg.Workers, cfg.Poll = 6, time.Hour
			cfg.Processors = map[string]stage.Processor{"p": func(_ context.Context, x *store.Task) (store.Commit, error) {
				if !first.Load() {
					<-release
				}
				return nil, nil
			}}
		})
		for kind, n := range map[string]int{"task": 9, "other": 1} {
			for range n {
				_, err := e.Enqueue(t.Context(), kind, nil)
				require.NoError(t, err)
			}
		}
		stop := run(e)
		synctest.Wait()
		all, err := e.Store().List(t.Context(), store.Selection{Status: store.InProcessing})
		require.NoError(t, err)
		for _, x := range all {
			busy[x.Kind]++
		}
		require.Equal(t, map[string]int{"task": 2, "other": 1}, busy)
		n, err := e.Fire(t.Context())
		require.NoError(t, err)
		require.Zero(t, n, "there is room, but not for this kind")
		first.Store(true)
		close(release)
		synctest.Wait()
		left, err := e.Store().List(t.Context(), store.Selection{Running: true})
		require.NoError(t, err)
		require.Empty(t, left)
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}

// A task whose end is being stored keeps no place among the Workers, nor among the Workers of its kind; an engine holds
// no more than twice as many. One whose OnEnd runs keeps its place.
func TestATaskThatEndsMakesRoom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ofKind int
		onEnd  bool
	}{{0, true}, {0, false}, {1, false}} {
		onEachHost(t, func(t *testing.T, run host) {
			begun, free, answers, ends := 0, make(chan struct{}), make(chan struct{}), make(chan struct{})
			close(free)
			e := engineOf(t, &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
				if call == "Finish" {
					<-answers
				}
				return do()
			}}, 1, processor(func(context.Context) { begun++; <-free }), func(cfg *stage.Config) {
				cfg.Poll, cfg.Workers = time.Hour, 1
				if row.onEnd {
					cfg.OnEnd = func(x store.Task) {
						if x.ID == 1 {
							<-ends
						}
					}
				}
				cfg.Kinds["task"] = stage.Kind{Chain: cfg.Kinds["task"].Chain, Workers: row.ofKind}
			})
			for range 4 {
				enqueued(t, e, "")
			}
			stop := run(e)
			synctest.Wait()
			require.Equal(t, 2, begun, "two wait for the store")
			for range 2 {
				answers <- struct{}{}
				synctest.Wait()
			}
			if row.onEnd {
				require.Equal(t, 2, begun)
			}
			close(ends)
			synctest.Wait()
			require.Equal(t, 4, begun)
			close(answers)
			synctest.Wait()
			free = make(chan struct{})
			for range 2 {
				enqueued(t, e, "")
			}
			synctest.Wait()
			require.Equal(t, 5, begun, "it works on one")
			close(free)
			require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
		})
	}
}

// A task that is enqueued while a claim is under way, which has asked for all the room, of the engine or of the kind,
// is claimed by the next one at once.
func TestEnqueuedDuringAClaim(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{0, 1} {
		onEachHost(t, func(t *testing.T, run host) {
			answer, hold := make(chan struct{}), atomic.Bool{}
			e := engineOf(t, &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
				err := do()
				if call == "Claim" && hold.Load() {
					<-answer
				}
				return err
			}}, 1, nothing, func(cfg *stage.Config) {
				cfg.Poll, cfg.Kinds["task"] = time.Hour, stage.Kind{Chain: cfg.Kinds["task"].Chain, Workers: workers}
				cfg.Workers = 1 + 1999*workers // a claim asks for 1000 at most
			})
			stop := run(e)
			hold.Store(true)
			enqueued(t, e, "")
			synctest.Wait()
			second := enqueued(t, e, "")
			n, err := e.Fire(t.Context())
			require.NoError(t, err)
			require.Zero(t, n, "the room is asked for")
			close(answer)
			synctest.Wait()
			require.Equal(t, "1 NORMAL", state(get(t, e.Store(), second)))
			require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
		})
	}
}

// An engine runs once at a time. While it does not, it claims nothing, and requests work all the same.
func TestRunning(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		e := engineOf(t, memory.New(nil), 1, nothing)
		for range 2 {
			stop := run(e)
			require.ErrorIs(t, e.Run(t.Context()), stage.ErrRunning)
			s := act.New(act.Config{})
			require.ErrorIs(t, e.Setup(s), stage.ErrRunning)
			require.NoError(t, s.Close())
			id := enqueued(t, e, "")
			require.NoError(t, e.Wait(t.Context()))
			synctest.Wait()
			require.Equal(t, "1 NORMAL", state(get(t, e.Store(), id)))
			require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
			_, err := e.Fire(t.Context())
			require.ErrorIs(t, err, stage.ErrInterrupted)
			ok, err := e.Cancel(t.Context(), enqueued(t, e, ""))
			yes(t, ok, err)
		}
		_, err := e.Enqueue(t.Context(), "unknown", nil)
		require.ErrorIs(t, err, stage.ErrUnknownKind)
		_, err = e.PauseKind(t.Context(), "unknown")
		require.ErrorIs(t, err, stage.ErrUnknownKind)
	})
}

// When a request to this engine has returned, the context of the processor has ended. What the processor makes of that is no
// failure, and is not written.
func TestRequestsReachTheProcessor(t *testing.T) {
	t.Parallel()
	type request func(e *stage.Engine) func(context.Context, store.ID) (bool, error)
	suspend := func(e *stage.Engine) func(context.Context, store.ID) (bool, error) { return e.Suspend }
	cancel := func(e *stage.Engine) func(context.Context, store.ID) (bool, error) { return e.Cancel }
	for name, row := range map[string]struct {
		ask  request
		ends func() error
		why  error
		want string
	}{
		"suspended, and returns results": {suspend, quiet, store.ErrSuspended, "0 SUSPENDED"},
		"suspended, and fails":           {suspend, func() error { return stage.Permanent(fail()) }, store.ErrSuspended, "0 SUSPENDED"},
		"suspended, and panics":          {suspend, panics, store.ErrSuspended, "0 SUSPENDED"},
		"suspended, and exits":           {suspend, goexits, store.ErrSuspended, "0 SUSPENDED"},
		"cancelled, and returns results": {cancel, quiet, store.ErrCanceled, "0 CANCELLED"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachHost(t, func(t *testing.T, run host) {
				var processor context.Context
				goOn, ended := make(chan struct{}), store.Status("")
				e := engineOf(t, memory.New(nil), 1, func(ctx context.Context, _ *store.Task) (store.Commit, error) {
					processor = ctx
					<-goOn
					return func(context.Context, store.Tx) error { t.Error("written"); return nil }, row.ends()
				}, func(cfg *stage.Config) { cfg.OnEnd = func(x store.Task) { ended += x.Status } })
				stop := run(e)
				id := enqueued(t, e, "")
				synctest.Wait()
				ok, err := row.ask(e)(t.Context(), id)
				yes(t, ok, err)
				require.ErrorIs(t, context.Cause(processor), row.why)
				close(goOn)
				synctest.Wait()
				x := get(t, e.Store(), id)
				require.Equal(t, row.want, state(x))
				require.Zero(t, x.Attempt)
				require.Empty(t, x.Failure)
				require.Equal(t, x.Ended(), ended == store.Canceled, "%s", ended)
				require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
			})
		})
	}
}

// A stop names the tasks that ignore it, and they keep their leases. What their processors return later changes
// nothing, even if the engine runs again, and another worker goes on when the lease has ended.
func TestAStopNamesWhatIgnoresIt(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		s, release, calls := memory.New(nil), make(chan struct{}), 0
		e := engineOf(t, s, 1, processor(func(context.Context) {
			if calls++; calls == 1 {
				<-release
			}
		}), func(cfg *stage.Config) { cfg.Workers = 2 })
		stop := run(e)
		id := enqueued(t, e, "")
		synctest.Wait()
		begun := time.Now()
		var cut *shutdown.Cut
		require.ErrorAs(t, stop(shutdown.Policy{Time: 3 * time.Second, Drop: true}), &cut)
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Equal(t, 1, cut.Tasks)
		require.True(t, cut.Dropped)
		require.Contains(t, cut.Names, shutdown.Count{Name: "task 1 at 0+", N: 1})
		require.Equal(t, "0+ IN_PROCESSING", state(get(t, s, id)))

		stop = run(e)
		close(release)
		synctest.Wait()
		require.Equal(t, "0+ IN_PROCESSING", state(get(t, s, id)), "it is left to its lease")
		time.Sleep(20 * time.Second)
		x := get(t, s, id)
		require.Equal(t, "1 NORMAL", state(x))
		require.EqualValues(t, 2, x.Token)
		failures, err := e.Store().Failures(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, failures, 1, "a worker was lost")
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}

// The end of the context of Run is a shutdown under the policy Config.Shutdown. It interrupts stages, even while they
// commit.
func TestTheEndOfAContextIsAStop(t *testing.T) {
	t.Parallel()
	for name, obeys := range map[string]bool{"obeyed": true, "ignored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				e := engineOf(t, memory.New(nil), 1, func(ctx context.Context, _ *store.Task) (store.Commit, error) {
					return func(context.Context, store.Tx) error {
						cancel()
						if !obeys {
							time.Sleep(time.Minute)
						}
						<-ctx.Done()
						return stage.CheckSuspended(ctx)
					}, nil
				}, func(cfg *stage.Config) { cfg.Shutdown = shutdown.Policy{Time: 3 * time.Second, Drop: true} })
				id := enqueued(t, e, "")
				err := e.Run(ctx)
				x := get(t, e.Store(), id)
				if obeys {
					require.NoError(t, err)
					require.Equal(t, "0 NORMAL", state(x))
					require.True(t, x.Runs())
					require.Zero(t, x.Attempt)
					return
				}
				var cut *shutdown.Cut
				require.ErrorAs(t, err, &cut)
				require.ErrorContains(t, err, "task 1 at 0+")
				require.ErrorContains(t, err, "the context has ended")
				require.NoError(t, e.Wait(t.Context()))
			})
		})
	}
}

// A stop waits neither for a claim nor for a heartbeat that hangs, and what a claim still brings goes back.
func TestAStopWhileTheStoreHangs(t *testing.T) {
	t.Parallel()
	for _, hung := range []string{"Claim", "Heartbeat"} {
		for _, late := range []bool{false, true} { // the answer comes when the engine has stopped
			if late && hung == "Heartbeat" {
				continue
			}
			t.Run(hung+map[bool]string{true: ", whose answer is late"}[late], func(t *testing.T) {
				onEachHost(t, func(t *testing.T, run host) {
					s := memory.New(nil)
					e := engineOf(t, &unreliable{s, func(ctx context.Context, call string, _ any, do func() error) error {
						if call != hung {
							return do()
						}
						if late {
							defer time.Sleep(time.Millisecond)
							return errors.Join(do(), func() error { _ = hangs(ctx); return nil }())
						}
						return hangs(ctx)
					}}, 1, processor(func(ctx context.Context) { <-ctx.Done() }))
					id := enqueued(t, e, "")
					stop := run(e)
					time.Sleep(1500 * time.Millisecond) // a heartbeat is due
					_ = stop(shutdown.Policy{Time: 20 * time.Second, Drop: true})
					require.NoError(t, e.Wait(t.Context()))
					synctest.Wait()
					x := get(t, s, id)
					require.Equal(t, "0 NORMAL", state(x))
					require.Zero(t, x.Attempt)
					require.True(t, x.Runs())
				})
			})
		}
	}
}

// A claim may be done after the store was given up, and after a stop that has dropped a task. When the engine runs
// again, it gives back what it was given late, and leaves alone what it has dropped.
func TestAClaimThatIsDoneLate(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		release := make(chan struct{})
		s := memory.New(nil)
		var late any
		var hung atomic.Bool
		e := engineOf(t, &unreliable{s, func(ctx context.Context, call string, arg any, do func() error) error {
			if call == "Claim" && hung.CompareAndSwap(true, false) {
				late = arg
				return hangs(ctx)
			}
			return do()
		}}, 1, func(_ context.Context, x *store.Task) (store.Commit, error) {
			if x.ID == 1 {
				<-release
			}
			return nil, nil
		}, func(cfg *stage.Config) { cfg.Workers, cfg.Lease = 2, time.Hour })
		stop := run(e)
		dropped := enqueued(t, e, "")
		synctest.Wait()
		hung.Store(true)
		time.Sleep(2 * time.Second)
		require.Error(t, stop(shutdown.Policy{Time: time.Second, Drop: true}))

		ids, err := s.Enqueue(t.Context(), store.NewTask{Kind: "task", Stage: "0"})
		require.NoError(t, err)
		claimed, err := s.Claim(t.Context(), late.(store.Claim))
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		stop = run(e)
		time.Sleep(10 * time.Second)
		require.Equal(t, "1 NORMAL", state(get(t, s, ids[0])))
		require.Equal(t, "0+ IN_PROCESSING", state(get(t, s, dropped)), "it is left to its lease")
		close(release)
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}

// A Config.OnEnd that takes its time keeps its place and has a stop wait for it, and no heartbeat is sent for its task.
func TestOnEndTakesItsTime(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		release := make(chan struct{})
		e := engineOf(t, &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			require.NotEqual(t, "Heartbeat", call)
			return do()
		}}, 1, nothing, func(cfg *stage.Config) { cfg.OnEnd = func(store.Task) { <-release } })
		stop := run(e)
		enqueued(t, e, "")
		time.Sleep(10 * time.Second)
		var cut *shutdown.Cut
		require.ErrorAs(t, stop(shutdown.Policy{Time: time.Second, Drop: true}), &cut)
		require.Contains(t, cut.Names, shutdown.Count{Name: "task 1 at 1", N: 1})
		close(release)
		require.NoError(t, e.Wait(t.Context()))
	})
}

// A store may say that trying again is in vain: then the task has failed.
func TestATransactionThatCannotBeMended(t *testing.T) {
	e := engineOf(t, &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
		if call == "Finish" {
			return stage.Permanent(fail())
		}
		return do()
	}}, 1, nothing)
	x := worksOff(t, e)
	require.Equal(t, "0 ERROR", state(x))
	require.False(t, x.Runs())
	require.Equal(t, "no luck", x.Failure)
}

// asks has an action call f, and returns what has come of it.
func asks[T any](t *testing.T, s *act.Scheduler, e *stage.Engine, f func(context.Context) (T, error)) *act.Call[T] {
	call := stage.NewCall(e, f)
	require.NoError(t, s.Post(func(s *act.Scheduler) { s.Spawn(act.Func(call.Act)) }))
	return call
}

// Calls of actions are delayed neither by processors nor by others on the Group's executor, nor are heartbeats. One of
// Call may take as long as a lease.
func TestCallsHaveTheirOwnPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *act.Scheduler
		release := make(chan struct{})
		e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) { <-release }), func(cfg *stage.Config) { cfg.Workers = 2 })
		stop := inGroup(act.Config{Offloads: 2}, func(x *act.Scheduler) error { s = x; return nil })(e)
		for range 2 {
			s.Internals().Executor().Execute(func() { <-release })
			enqueued(t, e, "")
		}
		for range 3 {
			asks(t, s, e, func(context.Context) (int, error) { <-release; return 0, nil })
		}
		synctest.Wait()
		three := enqueued(t, e, "")
		suspended := asks(t, s, e, func(ctx context.Context) (bool, error) { return e.Suspend(ctx, three) })
		synctest.Wait()
		require.True(t, suspended.Value)
		begun := time.Now()
		late := time.Duration(0)
		asks(t, s, e, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			late = time.Since(begun)
			return 0, ctx.Err()
		})
		time.Sleep(16 * time.Second)
		synctest.Wait() // so that what was written is seen
		require.Equal(t, 15*time.Second, late)
		close(release)
		synctest.Wait()
		for id := range store.ID(2) {
			x := get(t, e.Store(), id+1)
			require.Equal(t, "1 NORMAL", state(x))
			require.EqualValues(t, 1, x.Token, "its lease was not lost")
		}
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
		time.Sleep(time.Second)
	})
}

// Task.Failure, which is stored, has the stack from the function on that has panicked, within MaxFailure bytes.
func TestTheFailureOfAPanicHasItsStack(t *testing.T) {
	for text, says := range map[string]string{
		"boom": "panic: boom\n\ngithub.com/daimon-go/daimon/stage_test.TestTheFailureOfAPanicHasItsStack.func",
		strings.Repeat("x", transition.MaxFailure+1): "panic: xxx",
	} {
		var ended store.Task
		x := worksOff(t, engineOf(t, memory.New(nil), 1, processor(func(context.Context) { panic(text) }), func(cfg *stage.Config) {
			cfg.OnEnd = func(t store.Task) { ended = t }
		}, once))
		require.Equal(t, x.Failure, ended.Failure)
		require.LessOrEqual(t, len(x.Failure), transition.MaxFailure)
		require.Equal(t, says, x.Failure[:len(says)])
	}
}

// The store is asked again after 50 ms, later after more. What it has answered begins that anew.
func TestAStoreThatFailsIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			if call == "Enter" || call == "Finish" {
				if asked++; asked <= 3 || 4 < asked && asked <= 7 || asked == 9 {
					return errors.New("no answer")
				}
			}
			return do()
		}}
		begun := time.Now()
		worksOff(t, engineOf(t, s, 2, nothing))
		require.Equal(t, 2*(50+100+200)*time.Millisecond+50*time.Millisecond, time.Since(begun))
	})
}
