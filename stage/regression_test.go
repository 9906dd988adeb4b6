package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// patience bounds what should happen at once on a machine that does other things too.
const patience = 20 * time.Second

// abrupt ends an engine at once.
var abrupt = shutdown.Now{Terms: shutdown.Policy{Kind: shutdown.Halting, Drop: true}}

// processor is one made of a function that only has to wait.
func processor(f func(ctx context.Context)) stage.Processor {
	return stage.ProcessorFunc(func(ctx context.Context, _ *stage.Task) (stage.Commit, error) {
		f(ctx)
		return nil, nil
	})
}

// engineOf has one kind of task, "task", whose stages all have the same processor.
func engineOf(t testing.TB, store stage.Store, stages int, p stage.Processor, change ...func(*stage.Config)) *stage.Engine {
	t.Helper()
	chain := stage.Begin("0")
	for i := range stages {
		chain = chain.Then(fmt.Sprint(i, "+"), "p", fmt.Sprint(i+1))
	}
	cfg := stage.Config{
		Store:    store,
		Kinds:    map[string]stage.Kind{"task": {Chain: chain}},
		Provider: stage.Processors{"p": p},
		Logger:   zap.NewNop(),
	}
	for _, f := range change {
		f(&cfg)
	}
	e, err := stage.New(cfg)
	require.NoError(t, err)
	return e
}

// worksOff has e work off one task, and returns what becomes of it.
func worksOff(t testing.TB, e *stage.Engine) stage.Task {
	t.Helper()
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	return fires(t, e, id)
}

// fires has e claim tasks once, waits for their ends, and returns one of them.
func fires(t testing.TB, e *stage.Engine, id stage.ID) stage.Task {
	t.Helper()
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.Wait(t.Context()))
	x, err := e.Get(t.Context(), id)
	require.NoError(t, err)
	return x
}

func inTime(t testing.TB, f func()) {
	t.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	select {
	case <-end:
	case <-time.After(patience):
		require.FailNow(t, "hangs")
	}
}

// A Cut named a work while it reached another stage: the race detector watches.
func TestACutMayNameTasksWhileTheirStagesChange(t *testing.T) {
	for range tier.Choose(5, 5, 100) {
		e := engineOf(t, memory.New(nil), 1000, processor(func(context.Context) { runtime.Gosched() }))
		for range 8 {
			_, err := e.Enqueue(t.Context(), "task", nil)
			require.NoError(t, err)
		}
		_, err := e.Fire(t.Context())
		require.NoError(t, err)
		_ = e.Stop(abrupt) // mostly a Cut
		inTime(t, func() { require.NoError(t, e.Wait(context.Background())) })
	}
}

// Fire may have begun the heart just when Stop waits for it: the race detector watches.
func TestAStopBesideAFire(t *testing.T) {
	for range tier.Choose(30, 30, 300) {
		e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}))
		_, err := e.Enqueue(t.Context(), "task", nil)
		require.NoError(t, err)
		fired := make(chan struct{})
		go func() {
			defer close(fired)
			_, _ = e.Fire(context.Background())
		}()
		require.NoError(t, e.Stop(shutdown.Now{}))
		<-fired
		require.NoError(t, e.Wait(t.Context()))
	}
}

// A lease that was claimed on goroutines was looked at with the clock of the Group that the engine joined later, and
// was taken for one that had ended, or was not renewed.
func TestALeaseIsReadWithTheClockItWasClaimedBy(t *testing.T) {
	tier.Need(t, tier.Full, "waits for leases to end by the real clock")
	const lease = 2 * time.Second
	for _, first := range []string{"Group", "engine"} {
		t.Run("an older "+first, func(t *testing.T) {
			t.Parallel()
			var cause error
			var g *act.Group
			var e *stage.Engine
			makeGroup := func() {
				g = act.NewGroup(act.Config{Schedulers: 1, Threads: act.Locked, Logger: zap.NewNop()})
			}
			makeEngine := func() {
				e = engineOf(t, memory.New(nil), 1, processor(func(ctx context.Context) {
					select {
					case <-time.After(2 * lease):
					case <-ctx.Done():
					}
					cause = stage.CheckSuspended(ctx)
				}), func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = lease, 100*time.Millisecond })
			}
			if first == "Group" {
				makeGroup()
				time.Sleep(3 * lease / 2) // so far its clock is ahead
				makeEngine()
			} else {
				makeEngine()
				time.Sleep(3 * lease / 2)
				makeGroup()
			}
			_, err := e.Enqueue(t.Context(), "task", nil)
			require.NoError(t, err)
			_, err = e.Fire(t.Context())
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- g.Run(context.Background(), e.Setup) }()
			inTime(t, func() { require.NoError(t, e.Wait(context.Background())) })
			require.NoError(t, cause)
			g.Shutdown(abrupt)
			<-ended
			_ = g.Close()
		})
	}
}

// deaf is a Store that cannot be claimed from.
type deaf struct {
	stage.Store
	asked chan struct{}
}

func (d deaf) Claim(context.Context, stage.Claim) ([]stage.Task, error) {
	d.asked <- struct{}{}
	return nil, errors.New("no")
}

// Run waited for the next poll before it looked whether there had been a Stop.
func TestRunEndsWithAStopWhileNothingCanBeClaimed(t *testing.T) {
	d := deaf{memory.New(nil), make(chan struct{}, 1)}
	e := engineOf(t, d, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Poll = time.Hour })
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	<-d.asked
	time.Sleep(10 * time.Millisecond) // it has the answer
	require.NoError(t, e.Stop(shutdown.Now{}))
	inTime(t, func() { require.NoError(t, <-ended) })
}

// A Stop beside that of the context returns the same error, and so does Run.
func TestRunReturnsTheCutOfItsStop(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {
		close(begun)
		<-release
	}))
	_, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	<-begun
	var cut *shutdown.Cut
	require.ErrorAs(t, e.Stop(abrupt), &cut)
	inTime(t, func() { require.ErrorAs(t, <-ended, &cut) })
	close(release)
	inTime(t, func() { require.NoError(t, e.Wait(context.Background())) })
}

// What Fire had claimed for a scheduler that was closed before it took it stayed with an engine that did nothing
// about it.
func TestTasksFiredForAClosingSchedulerGoBack(t *testing.T) {
	s := act.New(act.Config{Logger: zap.NewNop()})
	e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}))
	require.NoError(t, e.Setup(s))
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	n, err := e.Fire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_ = s.Close()
	inTime(t, func() { require.NoError(t, e.Wait(context.Background())) })
	task, err := e.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, stage.Normal, task.Status)
	require.Equal(t, "0", task.Stage)
	require.Zero(t, task.Attempt)
}

// A Stop that was slow to wake up cut the works of the next Run.
func TestALateStopLeavesTheNextRunAlone(t *testing.T) {
	s := memory.New(nil)
	e := engineOf(t, s, 1, processor(func(ctx context.Context) { <-ctx.Done() }))
	for range 4 {
		_, err := e.Enqueue(t.Context(), "task", nil)
		require.NoError(t, err)
	}
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		first, second, stops := make(chan error, 1), make(chan error, 1), make(chan error, 4)
		go func() { first <- e.Run(t.Context()) }()
		require.Eventually(t, func() bool {
			x, err := s.Get(t.Context(), 1)
			return err == nil && x.Status == stage.InProcessing
		}, patience, 100*time.Microsecond)
		for range cap(stops) {
			go func() { stops <- e.Stop(shutdown.Now{Terms: shutdown.Policy{Time: patience, Drop: true}}) }()
		}
		require.NoError(t, <-first)
		go func() { second <- e.Run(ctx) }()
		for range cap(stops) {
			require.NoError(t, <-stops)
		}
		cancel()
		require.NoError(t, <-second)
	}
}

// After a Group whose set-up had failed Fire claimed tasks, and no heartbeat was ever sent for them.
func TestAnEngineIsAsBeforeAfterASetUpThatFailed(t *testing.T) {
	s := memory.New(nil)
	e := engineOf(t, s, 1, processor(func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}), func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = 200*time.Millisecond, 20*time.Millisecond })
	failed := errors.New("failed")
	err := act.Run(t.Context(), act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup, func(*act.Scheduler) error { return failed })
	require.ErrorIs(t, err, failed)
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // once, unless the machine stands still for a lease
		x := fires(t, e, id)
		return x.Finished()
	}, patience, time.Millisecond)
}

// A Backoff that panicked was called again and again, and its task never returned.
func TestABackoffThatPanicsIsCalledOnce(t *testing.T) {
	s := memory.New(nil)
	calls := 0
	e := engineOf(t, s, 1, stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) { return nil, errors.New("bad") }),
		func(cfg *stage.Config) { cfg.Backoff = func(int) time.Duration { calls++; panic("backoff") } })
	x := worksOff(t, e)
	require.Equal(t, stage.Error, x.Status)
	require.True(t, x.Runs())
	require.Equal(t, 1, calls)
}

// fragile is a store whose first Claim panics.
type fragile struct {
	stage.Store
	claimed bool
}

func (f *fragile) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if !f.claimed {
		f.claimed = true
		panic("once")
	}
	return f.Store.Claim(ctx, c)
}

// After a Claim that panicked the engine had no room any more.
func TestAClaimThatPanicsLeavesItsRoom(t *testing.T) {
	e := engineOf(t, &fragile{Store: memory.New(nil)}, 1, processor(func(context.Context) {}))
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = e.Fire(t.Context()) })
	x := fires(t, e, id)
	require.True(t, x.Finished())
	require.NoError(t, e.Stop(shutdown.Now{})) // else heartbeats look for the claim that had no answer
}

// An engine looked into a map that its owner had changed since.
func TestKindsAreThoseOfTheBeginning(t *testing.T) {
	var kinds map[string]stage.Kind
	e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}), func(cfg *stage.Config) { kinds = cfg.Kinds })
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	delete(kinds, "task")
	x := fires(t, e, id)
	require.True(t, x.Finished())
}

// What a processor does to its snapshot is nothing to the engine.
func TestASnapshotIsTheProcessorsOwn(t *testing.T) {
	e := engineOf(t, memory.New(nil), 2, stage.ProcessorFunc(func(_ context.Context, x *stage.Task) (stage.Commit, error) {
		*x = stage.Task{ID: 77, Stage: "elsewhere"}
		return nil, nil
	}))
	x := worksOff(t, e)
	require.Equal(t, "2", x.Stage)
}

// slow is a store whose answers take their time, by a clock that the test has.
type slow struct {
	stage.Store
	now *time.Duration
}

func (s slow) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	tasks, err := s.Store.Claim(ctx, c)
	*s.now += 600 * time.Millisecond
	return tasks, err
}

func (s slow) Heartbeat(ctx context.Context, l []stage.Renewal, d time.Duration) ([]stage.Beat, error) {
	beats, err := s.Store.Heartbeat(ctx, l, d)
	*s.now += 600 * time.Millisecond
	return beats, err
}

// A lease counts from when it was asked for: the store has begun to count before it has answered.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	var now time.Duration
	store := slow{memory.New(func() time.Time { return time.Unix(0, 0).Add(now) }), &now}
	e := engineOf(t, store, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Lease = time.Second })
	stage.Stepped(e, func() time.Duration { return now })
	_, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	w := e.Claimed()[0]
	e.Expire()
	require.NoError(t, w.Cause())
	e.Beat() // asked at 0.6 s, so it is good until 1.6 s; now it is 1.2 s
	now += 300 * time.Millisecond
	e.Expire()
	require.NoError(t, w.Cause())
	now += 200 * time.Millisecond
	e.Expire()
	require.ErrorIs(t, w.Cause(), stage.ErrLeaseLost)
}

// forgetful is a store that has done what it is asked first to finish, and does not say so.
type forgetful struct {
	stage.Store
	finished int
}

func (f *forgetful) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	err := f.Store.Finish(ctx, l, p, commit)
	if f.finished++; err == nil && f.finished == 1 {
		return errLost
	}
	return err
}

// A heartbeat said that the lease had ended, since the task had finished, and the end was never known.
func TestAHeartbeatAfterALostAnswerLeavesTheEndToBeKnown(t *testing.T) {
	s, ended := &forgetful{Store: memory.New(nil)}, 0
	e := engineOf(t, s, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.OnEnd = func(stage.Task) { ended++ } })
	stage.Stepped(e, func() time.Duration { return 0 })
	_, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	w := e.Claimed()[0]
	for s.finished == 0 {
		require.False(t, w.Step())
	}
	e.Beat()
	require.True(t, w.Step())
	require.Equal(t, 2, s.finished)
	require.Equal(t, 1, ended)
}

// unavailable is a store that cannot write at first, and says that the commit is not to blame.
type unavailable struct {
	stage.Store
	left int
}

func (u *unavailable) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	full := errors.New("the disk is full")
	if u.left--; u.left >= 0 {
		err := u.Store.Finish(ctx, l, p, func(_ context.Context, tx stage.Tx) error { return errors.Join(commit(ctx, tx), full) })
		return fmt.Errorf("%w: %w", stage.ErrUnavailable, err)
	}
	return u.Store.Finish(ctx, l, p, commit)
}

func TestUnavailableStoreIsNoFailedAttempt(t *testing.T) {
	commits := 0
	u := &unavailable{Store: memory.New(nil), left: 3}
	e := engineOf(t, u, 1, stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
		return func(context.Context, stage.Tx) error { commits++; return nil }, nil
	}), func(cfg *stage.Config) { cfg.Attempts = 1 })
	x := worksOff(t, e)
	require.True(t, x.Finished(), "%+v", x)
	require.Equal(t, 4, commits)
}

// Engines that poll at the same interval do not do so at the same time.
func TestPollsAreSpread(t *testing.T) {
	e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Poll = time.Second })
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
// more.
func TestAFailureDuringAClaimIsTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = "a kind that is paused"
		fail, answer, hold, runs := make(chan struct{}), make(chan struct{}), false, 0
		s := &claimed{memory.New(nil), func() {
			if hold {
				<-answer
			}
		}}
		_, err := s.SetPaused(t.Context(), other, true)
		require.NoError(t, err)
		e := engineOf(t, s, 1, stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
			if runs++; runs > 1 {
				return nil, nil
			}
			<-fail
			return nil, errors.New("no luck")
		}), func(cfg *stage.Config) { cfg.Poll, cfg.Backoff = time.Hour, func(int) time.Duration { return 0 } })
		id, err := e.Enqueue(t.Context(), "task", nil)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		hold = true
		_, err = e.ResumeKind(t.Context(), other) // a reason to claim
		require.NoError(t, err)
		for _, c := range []chan struct{}{fail, answer} {
			synctest.Wait()
			close(c)
		}
		synctest.Wait()
		x, err := e.Get(t.Context(), id)
		require.NoError(t, err)
		require.True(t, x.Finished(), "%+v", x)
		stop()
		require.NoError(t, <-ended)
	})
}

// A task that was to be tried again at once waited for the next poll if the engine worked on others too.
func TestAFailureBesideOtherWorkIsTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, end := 0, make(chan struct{})
		e := engineOf(t, memory.New(nil), 2, stage.ProcessorFunc(func(_ context.Context, x *stage.Task) (stage.Commit, error) {
			if string(x.Data) == "long" {
				<-end
				return nil, nil
			}
			switch tries++; tries {
			case 1:
				return nil, errors.New("no luck")
			case 2:
				return nil, stage.Snooze(0)
			}
			return nil, nil
		}), func(cfg *stage.Config) { cfg.Poll, cfg.Backoff = time.Hour, func(int) time.Duration { return 0 } })
		_, err := e.Enqueue(t.Context(), "task", []byte("long"))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		id, err := e.Enqueue(t.Context(), "task", nil)
		require.NoError(t, err)
		synctest.Wait()
		x, err := e.Get(t.Context(), id)
		require.NoError(t, err)
		require.True(t, x.Finished(), "%+v", x)
		close(end)
		stop()
		require.NoError(t, <-ended)
	})
}

// claimed is a store that calls then when it has claimed.
type claimed struct {
	stage.Store
	then func()
}

func (s *claimed) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	defer s.then()
	return s.Store.Claim(ctx, c)
}
