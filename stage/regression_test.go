package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
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
	b := stage.Begin("0")
	for i := range stages {
		b.Then(fmt.Sprint(i, "+"), "p", fmt.Sprint(i+1))
	}
	cfg := stage.Config{
		Store:    store,
		Chains:   map[string]*stage.Chain{"task": b.MustBuild()},
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
	for range 100 {
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
	for range 300 {
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
	const lease = 800 * time.Millisecond
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
				}), func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = lease, 20*time.Millisecond })
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
	time.Sleep(10 * time.Millisecond) // it has heard the answer
	require.NoError(t, e.Stop(shutdown.Now{}))
	inTime(t, func() { require.NoError(t, <-ended) })
}

// Whoever asks for a Stop beside that of the context hears of the same end, and so does Run.
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
func TestWhatIsFiredForASchedulerThatClosesGoesBack(t *testing.T) {
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
