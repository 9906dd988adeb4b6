package stage_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// A look asks for all that is waited for, in calls of a thousand. While nothing waits there is none. The engine does not run.
func TestLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const poll = 10 * time.Second
		var mu sync.Mutex
		var sizes []int
		fail := 3
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, arg any, do func() error) error {
			if call == "List" {
				mu.Lock()
				defer mu.Unlock()
				sizes = append(sizes, len(arg.(store.Selection).IDs))
				if fail--; fail >= 0 {
					return errors.New("no answer")
				}
			}
			return do()
		}}
		took := func() (all []int) { // since the last call of took
			mu.Lock()
			defer mu.Unlock()
			all, sizes = sizes, nil
			return all
		}
		e := engineOf(t, s, 1, nothing, func(cfg *stage.Config) { cfg.Poll = poll })
		ids, err := s.Enqueue(t.Context(), slices.Repeat([]store.NewTask{{Kind: "of others", Stage: "0"}}, 1500)...)
		require.NoError(t, err)
		told := map[store.ID]int{}
		for _, id := range ids {
			go func() {
				x, err := e.Result(t.Context(), id)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && x.Status == store.Canceled {
					told[x.ID]++
				}
			}()
		}
		synctest.Wait()
		require.LessOrEqual(t, len(took()), 1, "a store that fails is not pressed")
		time.Sleep(6 * poll) // three looks that fail, and one
		took()
		time.Sleep(10 * poll)
		all := took()
		require.GreaterOrEqual(t, len(all), 2*6)
		require.LessOrEqual(t, len(all), 2*20)
		require.Equal(t, slices.Repeat([]int{1000, 500}, len(all)/2), all)
		require.Empty(t, told)

		for _, id := range ids {
			_, err := s.Cancel(t.Context(), id)
			require.NoError(t, err)
		}
		time.Sleep(3 * poll / 2)
		synctest.Wait()
		require.Len(t, told, 1500)
		took()
		time.Sleep(10 * poll)
		require.Empty(t, took(), "nothing waits")
	})
}

// gate is a store whose answers to List, once they are there, are held back.
type gate struct {
	store.Store
	asked, open chan struct{}
}

func (s gate) List(ctx context.Context, sel store.Selection) ([]store.Task, error) {
	tasks, err := s.Store.List(ctx, sel)
	s.asked <- struct{}{}
	<-s.open
	return tasks, err
}

// A wait that begins during a look is not told what the look has found, and has one of its own, long before the next poll.
func TestAWaitThatBeginsDuringALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gate{memory.New(nil), make(chan struct{}), make(chan struct{})}
		e := engineOf(t, s, 1, computes(func() error { return stage.Permanent(fail()) }, quiet), func(cfg *stage.Config) { cfg.Poll = time.Hour })
		failed, ended := worksOff(t, e).ID, worksOff(t, e).ID
		idle := act.New(act.Config{Logger: zap.NewNop()}) // which has no part in anything
		defer func() { require.NoError(t, idle.Close()) }()
		begun := time.Now()
		wait := func(id store.ID) *future.Future[store.Task] { return e.Future(t.Context(), idle, id) }
		status := func(f *future.Future[store.Task]) store.Status {
			synctest.Wait()
			x, err := f.Value()
			if err != nil {
				require.Equal(t, future.ErrPending, err)
			}
			return x.Status
		}
		before := wait(failed)
		<-s.asked
		for _, id := range []store.ID{failed, ended} {
			_, err := s.Resume(t.Context(), id, true)
			require.NoError(t, err)
		}
		_, err := s.Cancel(t.Context(), ended)
		require.NoError(t, err)
		during, other := wait(failed), wait(ended)
		s.open <- struct{}{}
		require.Equal(t, store.Failed, status(before))
		require.Empty(t, status(during))
		<-s.asked
		s.open <- struct{}{}
		require.Equal(t, store.Canceled, status(other))
		require.Empty(t, status(during))
		_, err = e.Cancel(t.Context(), failed)
		require.NoError(t, err)
		<-s.asked
		s.open <- struct{}{}
		require.Equal(t, store.Canceled, status(during))
		require.Less(t, time.Since(begun), time.Minute)
	})
}

// A future is pending when the engine and the Group's Run have ended, which it does not hold up. It fails when its scheduler is
// closed, and what waits on goroutines is none the worse.
func TestEndedWithoutItsScheduler(t *testing.T) {
	kept := memory.New(nil)
	e := engineOf(t, kept, 1, nothing, func(cfg *stage.Config) { cfg.Poll = 10 * time.Millisecond })
	ids, err := kept.Enqueue(t.Context(), store.NewTask{Kind: "of others", Stage: "0"})
	require.NoError(t, err)
	s := act.New(act.Config{Logger: zap.NewNop()})
	require.NoError(t, e.Setup(s))
	f := e.Future(t.Context(), s, ids[0])
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, s.Run())
	_, err = f.Value()
	require.Equal(t, future.ErrPending, err)
	require.NoError(t, s.Close())
	_, err = f.Value()
	require.Equal(t, act.ErrDropped, err)

	f = e.Future(t.Context(), s, ids[0])
	_, err = kept.Cancel(t.Context(), ids[0])
	require.NoError(t, err)
	x, err := e.Result(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, store.Canceled, x.Status)
	require.Eventually(t, f.Resolved, servertest.Timeout, time.Millisecond)
}

// What waits learns of the end of its context while the store does not answer, and that its task was deleted.
func TestAwaitInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		var s *unreliable
		s = &unreliable{memory.New(nil), func(ctx context.Context, call string, _ any, do func() error) error {
			if call == "List" && !answers.Load() {
				return hangs(ctx)
			}
			err := do()
			if call == "Cancel" { // and nobody sees it cancelled
				_, _ = s.Store.Purge(ctx, store.Canceled, 0, 1)
			}
			return err
		}}
		e := engineOf(t, s, 1, nothing)
		id := enqueued(t, e, "")
		why := errors.New("no more patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		begun := time.Now()
		for range 2 { // the second is in vain from the beginning
			_, err := e.Result(ctx, id)
			require.Equal(t, why, err)
		}
		require.Equal(t, time.Second, time.Since(begun))

		answers.Store(true)
		time.AfterFunc(time.Minute, func() { _, _ = e.Cancel(context.Background(), id) })
		_, err := e.Result(t.Context(), id)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestTypedAwait(t *testing.T) {
	words := stage.Typed[string]{Kind: "task"}
	var told []store.ID // by OnEnd
	e := engineOf(t, memory.New(nil), 1, words.Processor(func(_ context.Context, _ *store.Task, v string) (store.Commit, error) {
		if v == "bad" {
			return nil, stage.Permanent(errors.New("out of paper\nand of ink"))
		}
		return func(_ context.Context, tx store.Tx) error { return words.SetData(tx, v+" and more") }, nil
	}), func(cfg *stage.Config) { cfg.Workers, cfg.OnEnd = 1, func(x store.Task) { told = append(told, x.ID) } })
	enqueue := func(v string) store.ID {
		id, err := words.Enqueue(t.Context(), e, v)
		require.NoError(t, err)
		return id
	}
	good, bad := enqueue("good"), enqueue("bad")
	fires(t, e, good)
	fires(t, e, bad)
	v, err := words.Result(t.Context(), e, good)
	require.NoError(t, err)
	require.Equal(t, "good and more", v)
	_, err = words.Result(t.Context(), e, bad)
	require.ErrorIs(t, err, store.ErrFailed)
	require.EqualError(t, err, "stage: failed for good: out of paper")
	cancelled := enqueue("")
	_, err = e.Cancel(t.Context(), cancelled)
	require.NoError(t, err)
	_, err = words.Result(t.Context(), e, cancelled)
	require.Equal(t, store.ErrCanceled, err)
	require.Equal(t, []store.ID{good, bad}, told, "and not of one that no worker held")
	_, err = words.Result(t.Context(), e, 4711)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestWorldAwaits is a few processes whose engines share an unreliable store, and whose act tasks wait for tasks of the
// store, which are suspended, resumed and cancelled meanwhile, and processes shut down or die. Each wait comes to its
// end, unless its process does before, and to the right one.
func TestWorldAwaits(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		y := newTasksWorld(w)
		waits := map[*awaiter]bool{}
		for _, name := range []string{"A", "B", "last"} {
			var s *act.Scheduler
			setup := func(x *act.Scheduler) error {
				if s == nil {
					s = x
				}
				return nil
			}
			last := &service.Listener{Address: "10.0.0.1:7007", Handler: echo.Echo}
			if name == "last" {
				y.process(t, name, nil, nil, last.Setup, setup)
			} else if v := y.process(t, name, nil, nil, setup); w.Rand().IntN(3) > 0 {
				terms := pick(w, bounded...)
				w.At(y.moment(), func() { v.Shutdown(terms) })
			}
			e := y.engines[len(y.engines)-1]
			for range w.Rand().IntN(4) {
				w.At(y.moment(), func() {
					if len(y.tasks) > 0 {
						a := &awaiter{y: y, e: e, of: waits, left: 1 + w.Rand().IntN(8)}
						_ = s.Post(func(s *act.Scheduler) { s.Spawn(a) })
					}
				})
			}
		}
		for range 5 + w.Rand().IntN(10) {
			w.At(y.moment(), y.enqueue)
		}
		for range w.Rand().IntN(30) {
			w.At(y.moment(), y.meddle)
		}
		visit := y.visit(3*time.Minute, 5*time.Minute)
		w.Client("10.0.0.1:7007", func(c *sim.Client) error {
			err := visit(c)
			for a := range waits {
				w.Errorf("the wait for task %d has no end", a.id)
			}
			return err
		})
	})
}

// awaiter waits for tasks, one after another.
type awaiter struct {
	y    *tasksWorld
	e    *stage.Engine
	id   store.ID
	of   map[*awaiter]bool // of all that have begun, and have not come to an end
	was  store.Task
	f    *future.Future[store.Task]
	wait act.Action
	left int
}

func (a *awaiter) Act(t *act.Task) act.Directive {
	ctx := context.Background()
	if a.f == nil {
		a.id = pick(a.y.w, a.y.tasks...)
		a.was, _ = a.y.store.Store.Get(ctx, a.id)
		a.f = a.e.Future(ctx, t.Scheduler(), a.id)
		a.wait = a.f.Await()
		a.of[a] = true
	}
	if a.wait.Act(t) == act.Wait {
		return act.Wait
	}
	delete(a.of, a)
	x, err := a.f.Value()
	is, wrong := a.y.store.Store.Get(ctx, a.id)
	switch {
	case err != nil || wrong != nil:
		a.y.w.Errorf("task %d is there, and the wait for it ends with %v (%v)", a.id, err, wrong)
	case !x.Ended() || x.Changed.Before(a.was.Changed):
		a.y.w.Errorf("the wait for task %d, which was %+v, ends with %+v", a.id, a.was, x)
	case x.Status != store.Failed && (x.Status != is.Status || x.Stage != is.Stage || string(x.Data) != string(is.Data)):
		a.y.w.Errorf("the wait ends with %+v, which is %+v", x, is)
	}
	if a.left--; a.left > 0 {
		a.f, a.wait = nil, nil
		return a.Act(t)
	}
	return act.Done
}

func (a *awaiter) Close() error {
	if a.wait != nil {
		delete(a.of, a)
		return a.wait.(io.Closer).Close()
	}
	return nil
}

// gated is a store that answers a claim when it may.
type gated struct {
	store.Store
	claim chan struct{}
}

func (g gated) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	<-g.claim
	return g.Store.Claim(ctx, c)
}

func rowOf(t *testing.T, s *act.Scheduler) (found facts.Stages) {
	t.Helper()
	n := 0
	s.Internals().EachTask(1, func(x *act.Task) bool {
		if v, ok := x.Action().(facts.Lister); ok {
			require.False(t, v.List(true, func(row any) bool { found, n = *row.(*facts.Stages), n+1; return true }))
			require.False(t, v.List(false, nil))
		}
		return true
	})
	require.Equal(t, 1, n)
	return found
}

func TestWhatAnEngineSays(t *testing.T) {
	s := gated{memory.New(nil), make(chan struct{})}
	work := make(chan struct{})
	e, err := stage.New(stage.Config{
		Store:      s,
		Worker:     "w",
		Workers:    3,
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("NEW").Then("WORKING", "p", "DONE")}},
		Processors: map[string]stage.Processor{"p": func(context.Context, *store.Task) (store.Commit, error) { <-work; return nil, nil }},
	})
	require.NoError(t, err)
	l := servertest.New(t, act.Config{})
	require.NoError(t, e.Setup(l.S))
	_, err = e.Enqueue(t.Context(), "report", nil)
	require.NoError(t, err)

	l.UntilSaid("the store, for a claim")
	require.Equal(t, facts.Stages{
		Worker: "w", Kinds: []string{"report"}, Workers: 3, Waits: []string{"the store, for a claim"},
	}, rowOf(t, l.S))
	close(s.claim)
	l.Until("its processor runs", func() bool {
		all := rowOf(t, l.S).Running
		return len(all) == 1 && all[0] == "report 1 at WORKING"
	})
	l.UntilSaid("tasks to claim", "a step on another goroutine: report 1 at WORKING")
	close(work)
	l.Until("it has finished", func() bool { return rowOf(t, l.S).Finished == 1 })
	l.Until("it is forgotten", func() bool { return len(rowOf(t, l.S).Running) == 0 })
	got := rowOf(t, l.S)
	require.EqualValues(t, 1, got.Claimed)
	require.Zero(t, got.Failed+got.Suspended+got.Lost)
	l.S.Shutdown(servertest.Drain)
	l.Until("its end", func() bool { return len(servertest.Said(l.S)) == 0 })
}
