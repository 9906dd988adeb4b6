package stage_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// listed is a store that notes the calls of List, of which the first ones fail.
type listed struct {
	stage.Store
	mu    sync.Mutex
	fail  int
	sizes []int
	at    []time.Time
}

func (s *listed) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes, s.at = append(s.sizes, len(sel.IDs)), append(s.at, time.Now())
	if s.fail--; s.fail >= 0 {
		return nil, errors.New("no answer")
	}
	return s.Store.List(ctx, sel)
}

// since returns the sizes of the calls that were made from then on.
func (s *listed) since(from time.Time) (sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, at := range s.at {
		if !at.Before(from) {
			sizes = append(sizes, s.sizes[i])
		}
	}
	return sizes
}

// awaiters are the two ways to wait. Each begins to wait for tasks, and calls told for each end; stop ends what it has begun.
var awaiters = map[string]func(t *testing.T, e *stage.Engine, ids []stage.ID, told func(stage.Task, error)) (stop func()){
	"goroutines, of an engine that does not run": func(t *testing.T, e *stage.Engine, ids []stage.ID, told func(stage.Task, error)) func() {
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() { told(e.Await(t.Context(), id)) })
		}
		return all.Wait
	},
	"futures in the Group of the engine": func(t *testing.T, e *stage.Engine, ids []stage.ID, told func(stage.Task, error)) func() {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		begin := func(s *act.Scheduler) error {
			for _, id := range ids {
				e.Future(context.Background(), s, id).Handle(told)
			}
			return nil
		}
		go func() { ended <- act.Run(ctx, act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup, begin) }()
		return func() {
			cancel()
			require.NoError(t, <-ended)
			time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
		}
	},
}

// A look asks for all that is waited for, in calls of a thousand. While nothing waits there is none.
func TestLooks(t *testing.T) {
	for name, await := range awaiters {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const poll = 10 * time.Second
				s := &listed{Store: memory.New(nil), fail: 3}
				e := engineOf(t, s, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Poll = poll })
				all := make([]stage.NewTask, 1500)
				for i := range all {
					all[i] = stage.NewTask{Kind: "of others", Stage: "0"}
				}
				ids, err := s.Enqueue(t.Context(), all...)
				require.NoError(t, err)
				var mu sync.Mutex
				told := map[stage.ID]int{}
				stop := await(t, e, ids, func(x stage.Task, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err == nil && x.Status == stage.Cancelled {
						told[x.ID]++
					}
				})
				synctest.Wait()
				require.LessOrEqual(t, len(s.since(time.Time{})), 1, "a store that fails is not pressed")
				time.Sleep(6 * poll) // three looks that fail, and one
				from := time.Now()
				time.Sleep(10 * poll)
				sizes := s.since(from)
				require.Zero(t, len(sizes)%2)
				require.GreaterOrEqual(t, len(sizes), 2*6)
				require.LessOrEqual(t, len(sizes), 2*20)
				for i := range sizes {
					require.Equal(t, []int{1000, 500}[i%2], sizes[i])
				}
				require.Empty(t, told)

				for _, id := range ids {
					_, err := s.Cancel(t.Context(), id)
					require.NoError(t, err)
				}
				time.Sleep(3 * poll / 2)
				synctest.Wait()
				require.Len(t, told, 1500)
				from = time.Now()
				time.Sleep(10 * poll)
				require.Empty(t, s.since(from), "nothing waits")
				stop()
				for _, n := range told {
					require.Equal(t, 1, n)
				}
			})
		})
	}
}

// gate is a store whose answers to List, once they are there, are held back.
type gate struct {
	stage.Store
	asked, open chan struct{}
}

func (s gate) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	tasks, err := s.Store.List(ctx, sel)
	s.asked <- struct{}{}
	<-s.open
	return tasks, err
}

// A wait that begins during a look is not told what the look has found, and has one of its own, long before the next poll.
func TestAWaitThatBeginsDuringALook(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := gate{memory.New(nil), make(chan struct{}), make(chan struct{})}
			fails := stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
				return nil, stage.Permanent(errors.New("no luck"))
			})
			e := engineOf(t, s, 1, fails, func(cfg *stage.Config) { cfg.Poll = time.Hour })
			failed, ended := worksOff(t, e).ID, worksOff(t, e).ID
			at := act.New(act.Config{Logger: zap.NewNop()})
			on := at // which is closed, and has no part in anything
			if grouped {
				begun := make(chan *act.Scheduler)
				stopped := make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				note := func(s *act.Scheduler) error {
					go func() { begun <- s }()
					return nil
				}
				go func() { stopped <- act.Run(ctx, act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup, note) }()
				on = <-begun
				synctest.Wait() // it has polled once
				defer func() {
					cancel()
					require.NoError(t, <-stopped)
					time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
				}()
			}
			defer func() { require.NoError(t, at.Close()) }()
			begun := time.Now()
			wait := func(id stage.ID) *future.Future[stage.Task] { return e.Future(t.Context(), on, id) }
			status := func(f *future.Future[stage.Task]) stage.Status {
				synctest.Wait()
				x, err := f.Value()
				if err != nil {
					require.Equal(t, future.ErrPending, err)
				}
				return x.Status
			}
			before := wait(failed)
			<-s.asked
			for _, id := range []stage.ID{failed, ended} {
				_, err := s.Resume(t.Context(), id, true)
				require.NoError(t, err)
			}
			_, err := s.Cancel(t.Context(), ended)
			require.NoError(t, err)
			during, other := wait(failed), wait(ended)
			s.open <- struct{}{}
			require.Equal(t, stage.Error, status(before))
			require.Empty(t, status(during))
			<-s.asked
			s.open <- struct{}{}
			require.Equal(t, stage.Cancelled, status(other))
			require.Empty(t, status(during))
			_, err = e.Cancel(t.Context(), failed)
			require.NoError(t, err)
			<-s.asked
			s.open <- struct{}{}
			require.Equal(t, stage.Cancelled, status(during))
			require.Less(t, time.Since(begun), time.Minute)
		})
	}
}

// A future is pending when the engine and the Group's Run have ended, which it does not hold up. It fails when its scheduler is
// closed, and what waits on goroutines is none the worse.
func TestEndedWithoutItsScheduler(t *testing.T) {
	store := memory.New(nil)
	e := engineOf(t, store, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Poll = 10 * time.Millisecond })
	ids, err := store.Enqueue(t.Context(), stage.NewTask{Kind: "of others", Stage: "0"})
	require.NoError(t, err)
	s := act.New(act.Config{Logger: zap.NewNop()})
	require.NoError(t, e.Setup(s))
	f := e.Future(t.Context(), s, ids[0])
	s.Shutdown(shutdown.Now{Terms: shutdown.Unbounded})
	require.NoError(t, s.Run())
	_, err = f.Value()
	require.Equal(t, future.ErrPending, err)
	require.NoError(t, s.Close())
	_, err = f.Value()
	require.Equal(t, future.ErrDropped, err)

	f = e.Future(t.Context(), s, ids[0])
	_, err = store.Cancel(t.Context(), ids[0])
	require.NoError(t, err)
	x, err := e.Await(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, stage.Cancelled, x.Status)
	require.Eventually(t, f.Resolved, patience, time.Millisecond)
}

// What waits learns of the end of a context while the store does not answer.
func TestAwaitOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(t, silent{memory.New(nil)}, 1, processor(func(context.Context) {}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := e.Await(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// silent is a store that does not answer a List.
type silent struct{ stage.Store }

func (silent) List(ctx context.Context, _ stage.Selection) ([]stage.Task, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTypedAwait(t *testing.T) {
	words := stage.Typed[string]{Kind: "task"}
	e := engineOf(t, memory.New(nil), 1, words.Processor(func(_ context.Context, _ *stage.Task, v string) (stage.Commit, error) {
		if v == "bad" {
			return nil, stage.Permanent(errors.New("out of paper\nand of ink"))
		}
		return func(_ context.Context, tx stage.Tx) error { return words.SetData(tx, v+" and more") }, nil
	}))
	enqueue := func(v string) stage.ID {
		id, err := words.Enqueue(t.Context(), e, v)
		require.NoError(t, err)
		return id
	}
	good, bad := enqueue("good"), enqueue("bad")
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	v, err := words.Await(t.Context(), e, good)
	require.NoError(t, err)
	require.Equal(t, "good and more", v)
	_, err = words.Await(t.Context(), e, bad)
	require.ErrorIs(t, err, stage.ErrFailed)
	require.EqualError(t, err, "stage: failed for good: out of paper")
	cancelled := enqueue("")
	_, err = e.Cancel(t.Context(), cancelled)
	require.NoError(t, err)
	_, err = words.Await(t.Context(), e, cancelled)
	require.Equal(t, stage.ErrCanceled, err)
	_, err = words.Await(t.Context(), e, 4711)
	require.ErrorIs(t, err, stage.ErrNotFound)
}

// TestWorldAwaits is a few processes whose engines share an unreliable store, and whose tasks wait for those of the store, while these
// are suspended, resumed and cancelled, and processes get orders or die. Each wait comes to its end, unless its process does
// before, and to the right one.
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
			last := &service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo}
			if name == "last" {
				y.process(t, name, nil, nil, last.Setup, setup)
			} else if v := y.process(t, name, nil, nil, setup); w.Rand().IntN(3) > 0 {
				terms := pick(w, bounded...)
				w.At(y.moment(), func() { v.Shutdown(shutdown.Now{Terms: terms}) })
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
	id   stage.ID
	of   map[*awaiter]bool // of all that have begun, and have not come to an end
	was  stage.Task
	f    *future.Future[stage.Task]
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
	case x.Status != stage.Error && (x.Status != is.Status || x.Stage != is.Stage || string(x.Data) != string(is.Data)):
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
