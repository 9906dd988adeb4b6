package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// A Cut named a work while it reached another stage: the race detector watches.
func TestACutMayNameTasksWhileTheirStagesChange(t *testing.T) {
	for range tier.Choose(5, 5, 100) {
		e := engineOf(t, memory.New(nil), 1000, processor(func(context.Context) { runtime.Gosched() }))
		for range 8 {
			enqueued(t, e, "")
		}
		_, err := e.Fire(t.Context())
		require.NoError(t, err)
		_ = e.Stop(abrupt) // mostly a Cut
		require.NoError(t, e.Wait(t.Context()))
	}
}

// Fire may have begun the heart just when Stop waits for it: the race detector watches.
func TestAStopBesideAFire(t *testing.T) {
	for range tier.Choose(30, 30, 300) {
		e := engineOf(t, memory.New(nil), 1, nothing)
		enqueued(t, e, "")
		fired := make(chan struct{})
		go func() {
			defer close(fired)
			_, _ = e.Fire(context.Background())
		}()
		require.NoError(t, e.Stop(shutdown.Policy{}))
		<-fired
		require.NoError(t, e.Wait(t.Context()))
	}
}

// A lease that was claimed on goroutines was looked at with the clock of the Group that the engine joined later, and
// was taken for one that had ended, or was not renewed. The clocks are an hour apart, one way or the other.
func TestALeaseIsReadWithTheClockItWasClaimedBy(t *testing.T) {
	t.Parallel()
	for _, older := range []string{"Group", "engine"} {
		t.Run("an older "+older, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cause error
				var g *act.Group
				var e *stage.Engine
				makeGroup := func() { g = act.NewGroup(act.Config{Schedulers: 1, Logger: zap.NewNop()}) }
				makeEngine := func() {
					e = engineOf(t, memory.New(nil), 1, processor(func(ctx context.Context) {
						lasts(ctx, 20*time.Second) // longer than the lease
						cause = stage.CheckSuspended(ctx)
					}), func(cfg *stage.Config) { cfg.Heartbeat = 5 * time.Second })
				}
				if older == "Group" {
					makeGroup()
					time.Sleep(time.Hour)
					makeEngine()
				} else {
					makeEngine()
					time.Sleep(time.Hour)
					makeGroup()
				}
				enqueued(t, e, "")
				_, err := e.Fire(t.Context())
				require.NoError(t, err)
				ended := make(chan error, 1)
				go func() { ended <- g.Run(context.Background(), e.Setup) }()
				require.NoError(t, e.Wait(t.Context()))
				require.NoError(t, cause)
				g.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
				require.NoError(t, <-ended)
				require.NoError(t, g.Close())
				time.Sleep(time.Second) // in which idle goroutines of the Group's executor end
			})
		})
	}
}

// Run waited for the next poll before it looked whether there had been a Stop.
func TestRunEndsWithAStopWhileNothingCanBeClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &unreliable{memory.New(nil), func(context.Context, string, any, func() error) error { return errLost }}
		begun := time.Now()
		stop := hosts["goroutines"](engineOf(t, s, 1, nothing, func(cfg *stage.Config) { cfg.Poll = time.Hour }))
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
		require.Zero(t, time.Since(begun))
	})
}

// What Fire had claimed for a scheduler that was closed before it took it stayed with an engine that did nothing
// about it.
func TestTasksFiredForAClosingSchedulerGoBack(t *testing.T) {
	s := act.New(act.Config{Logger: zap.NewNop()})
	e := engineOf(t, memory.New(nil), 1, nothing)
	require.NoError(t, e.Setup(s))
	id := enqueued(t, e, "")
	n, err := e.Fire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_ = s.Close()
	require.NoError(t, e.Wait(t.Context()))
	x := get(t, e.Store(), id)
	require.Equal(t, "0 NORMAL", state(x))
	require.Zero(t, x.Attempt)
}

// After a Group whose set-up had failed Fire claimed tasks, and no heartbeat was ever sent for them.
func TestAnEngineIsAsBeforeAfterASetUpThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(t, memory.New(nil), 1, processor(func(ctx context.Context) { lasts(ctx, time.Hour) }))
		failed := errors.New("failed")
		err := act.Run(t.Context(), act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup, func(*act.Scheduler) error { return failed })
		require.ErrorIs(t, err, failed)
		x := worksOff(t, e)
		require.True(t, x.Finished(), "%+v", x)
		time.Sleep(time.Second) // in which idle goroutines of the Group's executor end
	})
}

// A Backoff that panicked was called again and again, and its task never returned.
func TestABackoffThatPanicsIsCalledOnce(t *testing.T) {
	calls := 0
	fails := func(context.Context, *store.Task) (store.Commit, error) { return nil, errors.New("bad") }
	x := worksOff(t, engineOf(t, memory.New(nil), 1, fails, ofKind(func(k *stage.Kind) {
		k.Backoff = func(int) time.Duration { calls++; panic("backoff") }
	})))
	require.Equal(t, store.Failed, x.Status)
	require.True(t, x.Runs())
	require.Equal(t, 1, calls)
}

// After a Claim that panicked the engine had no room any more.
func TestAClaimThatPanicsLeavesItsRoom(t *testing.T) {
	claims := 0
	e := engineOf(t, &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
		if call == "Claim" {
			if claims++; claims == 1 {
				panic("once")
			}
		}
		return do()
	}}, 1, nothing)
	id := enqueued(t, e, "")
	require.Panics(t, func() { _, _ = e.Fire(t.Context()) })
	x := fires(t, e, id)
	require.True(t, x.Finished())
	require.NoError(t, e.Stop(shutdown.Policy{})) // else heartbeats look for the claim that had no answer
}

// What a processor does to its snapshot is nothing to the engine.
func TestASnapshotIsTheProcessorsOwn(t *testing.T) {
	e := engineOf(t, memory.New(nil), 2, func(_ context.Context, x *store.Task) (store.Commit, error) {
		*x = store.Task{ID: 77, Stage: "elsewhere"}
		return nil, nil
	})
	require.Equal(t, "2", worksOff(t, e).Stage)
}

// A Commit whose store is not available is called again, and that is not an attempt.
func TestUnavailableStoreIsNoFailedAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		u := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			if call == "Finish" {
				if calls++; calls <= 3 {
					return fmt.Errorf("%w: the disk is full", store.ErrUnavailable)
				}
			}
			return do()
		}}
		x := worksOff(t, engineOf(t, u, 1, nothing, once))
		require.True(t, x.Finished(), "%+v", x)
	})
}

// Engines that poll at the same interval do not do so at the same time.
func TestPollsAreSpread(t *testing.T) {
	e := engineOf(t, memory.New(nil), 1, nothing, func(cfg *stage.Config) { cfg.Poll = time.Second })
	seen := map[time.Duration]bool{}
	for range 100 {
		d := e.Polling()
		require.GreaterOrEqual(t, d, 500*time.Millisecond)
		require.Less(t, d, 1500*time.Millisecond)
		seen[d] = true
	}
	require.Greater(t, len(seen), 90)
}

// A task that was to be tried again at once waited for the next poll: the work had ended during a claim that did not see it any
// more, or the engine worked on others too.
func TestWhatIsDueAtOnceIsTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		fail, answer, end, hold, tries := make(chan struct{}), make(chan struct{}), make(chan struct{}), atomic.Bool{}, 0
		const other = "a kind that is paused"
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			err := do()
			if call == "Claim" && hold.Load() {
				<-answer
			}
			return err
		}}
		e := engineOf(t, s, 1, func(_ context.Context, x *store.Task) (store.Commit, error) {
			if string(x.Data) == "long" {
				<-end
				return nil, nil
			}
			switch tries++; tries {
			case 1:
				<-fail
				return nil, errors.New("no luck")
			case 2:
				return nil, stage.Snooze(0)
			}
			return nil, nil
		}, func(cfg *stage.Config) { cfg.Poll = time.Hour })
		begun := time.Now()
		stop := run(e)
		enqueued(t, e, "long")
		synctest.Wait()
		id := enqueued(t, e, "")
		_, err := s.Store.SetPaused(t.Context(), other, true)
		require.NoError(t, err)
		synctest.Wait()
		hold.Store(true)
		_, err = e.ResumeKind(t.Context(), other) // a reason to claim
		require.NoError(t, err)
		for _, c := range []chan struct{}{fail, answer} {
			synctest.Wait()
			close(c)
		}
		synctest.Wait()
		require.Equal(t, "1 NORMAL", state(get(t, e.Store(), id)))
		require.Zero(t, time.Since(begun))
		close(end)
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}
