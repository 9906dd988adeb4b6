package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldEnded has tasks that never read, and wait only for the end of their connection: bytes, an end, and a reset after
// it. A task that is not woken never ends.
func TestWorldEnded(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve := func(local bool) func(*listener.Conn) act.Action {
			return func(c *listener.Conn) act.Action { return &witness{w: w, c: c, local: local} }
		}
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: serve(false)}
		unix := &service.Listener{Address: "unix:/run/wake", Handler: serve(true)}
		_, err := w.Server("wake", act.Config{Schedulers: pick(w, 1, 2)}, append(anyEngine(w), tcp.Setup, unix.Setup)...)
		require.NoError(t, err)
		for range 5 {
			w.Client("10.0.0.1:7007", leave)
			w.Client("unix:/run/wake", leave)
		}
	})
}

// leave sends for a while to a task that does not read. It closes in two steps, or in one.
func leave(c *sim.Client) error {
	for range c.Rand().IntN(5) {
		if _, err := c.Write([]byte("are you there?")); err != nil {
			return err
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	}
	if c.Rand().IntN(2) == 0 {
		if err := c.CloseWrite(); err != nil {
			return err
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	}
	c.Abort()
	return nil
}

type witness struct {
	w     *sim.World
	c     *listener.Conn
	local bool
	half  bool
	idle  int // turns without news
}

func (x *witness) Act(t *act.Task) act.Directive {
	half, err := x.c.Ended(t)
	if half == x.half && err == nil {
		if x.idle++; x.idle > 2 { // the first turn, and an order
			x.w.Errorf("woken for nothing")
		}
	}
	x.half = half
	if err != nil || half && x.local { // over a Unix socket there is no reset
		return act.Done
	}
	return act.Wait
}

// TestWorldWokenBetweenDemons has a demon wake a task from outside while others of its pass are still to have their turns.
func TestWorldWokenBetweenDemons(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		var bell act.AtomicWaker
		rung, heard := false, false
		_, err := w.Server("server", act.Config{}, func(s *act.Scheduler) error {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if bell.Set(t.Waker()); !rung {
					return act.Wait
				}
				heard = true
				return act.Done
			}))
			s.Install(once(func() { rung = true; bell.Wake() }))
			for range 3 {
				s.Install(once(func() {}))
			}
			return nil
		})
		require.NoError(t, err)
		w.At(time.Second, func() {
			if !heard {
				w.Errorf("the task sleeps, and has been woken")
			}
		})
	})
}

// once is a demon that has one turn.
type once func()

func (f once) Act(*act.Task) act.Directive {
	f()
	return act.Done
}

func (once) Stop(*act.Task, shutdown.Order) {}
