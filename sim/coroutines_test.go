package sim_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/tasklet"
)

// The scenarios of this file use coroutines, tasklets and futures.

// TestWorldCoroutines is an echo server whose connections are coroutines. Tasks of all forms run at the same time.
func TestWorldCoroutines(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 16, 0)}
		v, err := w.Server("forms", cfg, formsOf(w, patient(w))...)
		require.NoError(t, err)
		visited(w, v, "10.0.0.1:7007", "unix:/run/forms")
	})
}

// formsOf returns the set-up functions of the server.
func formsOf(w *sim.World, limits listener.Limits) []func(*act.Scheduler) error {
	tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: coro.Serve(echoing(w)), MaxConns: pick(w, 0, 1, 5), Limits: limits}
	unix := &service.Listener{Address: "unix:/run/forms", Handler: coro.Serve(echoing(w)), MaxConns: pick(w, 0, 1, 5), Limits: limits}
	var last *future.Future[time.Duration] // goes round the schedulers
	return []func(*act.Scheduler) error{watch(w), tcp.Setup, unix.Setup, func(s *act.Scheduler) error {
		if last == nil {
			last = future.New[time.Duration](s)
		}
		box := listener.NewMailbox[time.Duration](4)
		for _, body := range []func(*coro.Co) error{
			dozing(w), sendingNumbers(w, box), hearing(w, box), working(w), racing(w), awaitingFutures(w, last),
		} {
			s.Spawn(coro.New(bodies.Get(s).counted(body)))
		}
		return phases(w, s)
	}}
}

// bodies counts, for each scheduler, the bodies that have begun and not ended. When the scheduler is closed there must
// be none: all of them were stopped, and their deferred functions have run.
var bodies = act.NewLocal(func(*act.Scheduler) *bodyCount { panic("not watched") })

type bodyCount struct {
	w      *sim.World
	s      *act.Scheduler
	alive  int
	closed bool
}

func watch(w *sim.World) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		bodies.Put(s, &bodyCount{w: w, s: s})
		return nil
	}
}

func (c *bodyCount) Close() error {
	c.closed = true
	if live := servertest.CountsOf(c.s)["coroutines"]; live != 0 || c.alive != 0 {
		c.w.Errorf("%d coroutines are left, and %d bodies", live, c.alive)
	}
	return nil
}

// counted wraps a body, and checks that it ends with an error that a body may get.
func (c *bodyCount) counted(body func(*coro.Co) error) func(*coro.Co) error {
	return func(co *coro.Co) error {
		c.alive++
		defer func() { c.alive-- }()
		err := body(co)
		if errors.Is(err, coro.ErrStopped) && co.Yield() != coro.ErrStopped {
			c.w.Errorf("a stopped body may go on")
		}
		return err
	}
}

// echoing sends back what arrives. Sometimes it lends the bytes, and sometimes it copies them.
func echoing(w *sim.World) func(*coro.Conn) error {
	return func(c *coro.Conn) error {
		return bodies.Get(c.Co().Scheduler()).counted(func(*coro.Co) error {
			if w.Rand().IntN(2) == 0 {
				_, err := io.Copy(c, c)
				return err
			}
			p := make([]byte, 1+w.Rand().IntN(3000))
			for {
				n, err := c.Read(p)
				if err != nil {
					return err
				}
				if _, err := c.Write(p[:n]); err != nil {
					return err
				}
			}
		})(c.Co())
	}
}

// untilOrder runs until there is an order, and a little longer.
func untilOrder(co *coro.Co, f func() error) error {
	for co.Order() == nil {
		if err := f(); err != nil && !errors.Is(err, coro.ErrOrdered) {
			return err
		}
	}
	return nil
}

// dozing sleeps. It must not wake up early, and an order ends its sleep.
func dozing(w *sim.World) func(*coro.Co) error {
	return func(co *coro.Co) error {
		return untilOrder(co, func() error {
			d := time.Duration(w.Rand().Int64N(int64(3 * time.Second)))
			due := co.Scheduler().Now() + d
			err := co.UntilOrder(func() error { return co.Sleep(d) })
			if err == nil && w.Now() < due {
				w.Errorf("a sleep until %v ended at %v", due, w.Now())
			}
			return err
		})
	}
}

// sendingNumbers sends numbers in order.
func sendingNumbers(w *sim.World, box *listener.Mailbox[time.Duration]) func(*coro.Co) error {
	return func(co *coro.Co) error {
		n := time.Duration(0)
		return untilOrder(co, func() error {
			if box.Send(n) == nil {
				n++
			}
			if w.Rand().IntN(3) == 0 {
				return co.Yield()
			}
			return co.Sleep(time.Duration(w.Rand().Int64N(int64(time.Second))))
		})
	}
}

// hearing receives them, and checks that all come in order.
func hearing(w *sim.World, box *listener.Mailbox[time.Duration]) func(*coro.Co) error {
	return func(co *coro.Co) error {
		next := time.Duration(0)
		return untilOrder(co, func() error {
			receive := &listener.Receive[time.Duration]{From: box}
			err := co.UntilOrder(func() error { return co.Do(receive) })
			if err == nil && receive.Value != next {
				w.Errorf("%d was received instead of %d", receive.Value, next)
			}
			if err == nil {
				next++
			}
			return err
		})
	}
}

// working offloads functions, both with a wait for the result and with an action that the function owns meanwhile.
func working(w *sim.World) func(*coro.Co) error {
	return func(co *coro.Co) error {
		return untilOrder(co, func() error {
			if w.Rand().IntN(2) == 0 {
				n := w.Rand().IntN(100)
				got, err := coro.Offload(co, func() (int, error) { return n + 1, nil })
				if err == nil && got != n+1 {
					w.Errorf("a function returned %d instead of %d", got, n+1)
				}
				return errors.Join(err, co.Sleep(100*time.Millisecond))
			}
			x := &owned{}
			if err := co.Do(x); err != nil {
				return err
			}
			if !x.done {
				w.Errorf("an offload was done, and its function has not run")
			}
			return co.Sleep(100 * time.Millisecond)
		})
	}
}

// owned is an action that belongs to its function.
type owned struct{ begun, done bool }

func (x *owned) Act(t *act.Task) act.Directive {
	if !x.begun {
		x.begun = true
		return t.Offload(func() { x.done = true })
	}
	return act.Done
}

// racing uses nested scopes with deadlines.
func racing(w *sim.World) func(*coro.Co) error {
	return func(co *coro.Co) error {
		return untilOrder(co, func() error {
			long, short := time.Duration(w.Rand().Int64N(int64(time.Second))), time.Duration(w.Rand().Int64N(int64(time.Second)))
			begun := co.Scheduler().Now()
			err := co.Within(long, func() error {
				return co.Within(short, func() error { return co.Sleep(time.Hour) })
			})
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			if passed := w.Now() - begun; passed < min(long, short) {
				w.Errorf("what was bounded by %v and %v was ended after %v", long, short, passed)
			}
			return nil
		})
	}
}

// awaitingFutures waits for a future that a body on any scheduler resolves, and for futures that it derives from others.
func awaitingFutures(w *sim.World, first *future.Future[time.Duration]) func(*coro.Co) error {
	return func(co *coro.Co) error {
		s := co.Scheduler()
		if s.Index() == 0 {
			w.At(w.Now()+time.Second, func() { _ = first.Resolve(w.Now()) })
		}
		err := co.UntilOrder(func() error {
			then, err := coro.Value(co, first)
			if err == nil && then > w.Now() {
				w.Errorf("a future was resolved at %v and seen at %v", then, w.Now())
			}
			return err
		})
		if err != nil && !errors.Is(err, coro.ErrOrdered) {
			return err
		}
		return untilOrder(co, func() error {
			d, n := time.Duration(w.Rand().Int64N(int64(time.Second))), w.Rand().IntN(100)
			begun := w.Now()
			f := future.Do(s, &listener.Sleep{For: d}, func() int { return n })
			got, err := coro.Value(co, future.Map(f, func(n int) (int, error) { return n + 1, nil }).Within(time.Second/2))
			switch late := errors.Is(err, os.ErrDeadlineExceeded); {
			case late && d < time.Second/2-slackOfAWorld:
				w.Errorf("a value of %v did not come within %v", d, time.Second/2)
			case late, errors.Is(err, act.ErrDropped):
				return nil
			case err == nil && got != n+1:
				w.Errorf("%d came out instead of %d", got, n+1)
			case err == nil && w.Now()-begun > time.Second/2+slackOfAWorld:
				w.Errorf("a wait that was bounded by %v took %v", time.Second/2, w.Now()-begun)
			}
			return err
		})
	}
}

// phases runs some tasklets that share a table.
func phases(w *sim.World, s *act.Scheduler) error {
	shared := &table{w: w, on: tasklet.RunnerOf(s), count: bodies.Get(s)}
	for range 3 {
		x := &phased{table: shared}
		if err := shared.on.Schedule(x, pick(w, tasklet.Sync, tasklet.Async)); err != nil {
			return err
		}
		shared.all = append(shared.all, x)
	}
	return nil
}

type table struct {
	w     *sim.World
	on    *tasklet.Runner
	count *bodyCount
	all   []*phased
}

// phased goes through random phases, and checks that it is in the phase that it has asked for.
type phased struct {
	*table
	in, done bool
	asked    tasklet.Directive // 0: another task has resumed it
}

func (x *phased) Task(s *tasklet.Runner) (d tasklet.Directive) {
	here := s.Act().Internals().Here()
	switch {
	case x.in:
		x.w.Errorf("a tasklet is in two phases")
	case x.count.closed:
		x.w.Errorf("a phase runs when its scheduler is closed")
	case x.asked != 0 && here != (x.asked == tasklet.Sync):
		x.w.Errorf("a phase was to be %v, and is not", x.asked)
	}
	x.in = true
	defer func() {
		x.in, x.asked, x.done = false, d, d == tasklet.Done
		if d == tasklet.Wait { // another task may resume it either way
			x.asked = 0
		}
	}()
	if s.Act().Group().Order() != nil {
		return tasklet.Done
	}
	return x.step(s, here)
}

// step draws the next phase.
func (x *phased) step(s *tasklet.Runner, here bool) tasklet.Directive {
	w := x.w
	d := time.Duration(w.Rand().Int64N(int64(time.Second)))
	switch w.Rand().IntN(16) { // most often it rests
	case 0:
		return tasklet.Sync
	case 1:
		return tasklet.Async
	case 2: // resumed before it waits
		x.check(s.Suspend(x).Resume(tasklet.Sync))
	case 3, 4: // resumed by another task later
		again, as := s.Suspend(x), pick(w, tasklet.Sync, tasklet.Async)
		w.At(w.Now()+d, func() { _ = again.Resume(as) })
	case 5: // another one is resumed, whatever its phase
		other := x.all[w.Rand().IntN(len(x.all))]
		if other.asked = 0; !other.done {
			x.check(s.Schedule(other, pick(w, tasklet.Sync, tasklet.Async)))
		}
		return pick(w, tasklet.Sync, tasklet.Async)
	case 6:
		other := x.all[w.Rand().IntN(len(x.all))]
		if was := other.asked; !other.done {
			other.asked = 0
			if err := tasklet.With(s, other); errors.Is(err, tasklet.ErrInPhase) {
				other.asked = was
			} else {
				x.check(err)
			}
		}
		return tasklet.Sync
	default:
		if !here {
			return tasklet.Sync
		}
		return s.Await(x, &listener.Sleep{For: d})
	}
	return tasklet.Wait
}

func (x *phased) check(err error) {
	if err != nil {
		x.w.Errorf("%v", err)
	}
}

// slackOfAWorld bounds the time of the turns between a deadline and the body that it ends.
const slackOfAWorld = 50 * time.Millisecond
