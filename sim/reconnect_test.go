package sim_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// untilEnd is the action of a connection until the peer ends it.
func untilEnd(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive { _, err := c.Peek(1); return c.Next(t, err) })
}

// TestReconnect follows the pauses through failures and through connections of several lengths, and then gives an order.
func TestReconnect(t *testing.T) {
	const ms = time.Millisecond
	script := []struct { // of one dial after the other
		address string
		lasts   time.Duration
		pause   time.Duration // after it, before it is shortened
	}{
		{dead4, 0, time.Second}, {mute4, 0, 2 * time.Second}, {dead4, 0, 4 * time.Second}, {dead4, 0, 7 * time.Second}, {dead4, 0, 7 * time.Second},
		{good4, 3 * time.Second, 7 * time.Second}, {good4, 8 * time.Second, time.Second}, {good4, 400 * ms, 2 * time.Second},
	}
	for name, end := range map[string]struct {
		address  string
		at, ends time.Duration // after the end of the last pause
	}{
		"an order in a pause":      {good4, -500 * ms, -500 * ms},
		"an order in a dial":       {mute4, 3 * time.Second, 3 * time.Second},
		"an order in a connection": {good4, 500 * ms, 6 * time.Second}, // longer than a Linger
	} {
		for style, spawn := range map[string]func(*act.Scheduler, act.Action){
			"action": func(s *act.Scheduler, r act.Action) { s.Spawn(r) },
			"coroutine": func(s *act.Scheduler, r act.Action) {
				s.Spawn(coro.New(func(co *coro.Co) error { return co.Do(r) }))
			},
		} {
			t.Run(name+", "+style, func(t *testing.T) {
				w := sim.New(sim.Options{Storm: time.Hour})
				w.Delay(mute4, time.Hour)
				w.Host("name", script[0].address)
				lasts := script[0].lasts
				tcp := &service.Listener{Address: good4 + ":80", Handler: func(*listener.Conn) act.Action { return &listener.Sleep{For: lasts} }}
				_, err := w.Server("host", act.Config{}, tcp.Setup)
				require.NoError(t, err)
				var program *sim.Server
				asked, shortened := 0, time.Duration(0)
				r := listener.Reconnect{To: listener.Connect{Address: "name:80"}, Handler: untilEnd, Most: 7 * time.Second}
				r.Again = func(err error, pause time.Duration) bool {
					was := script[asked]
					require.LessOrEqual(t, pause, was.pause, "pause %d", asked)
					require.GreaterOrEqual(t, pause, was.pause/2, "pause %d", asked)
					require.ErrorIs(t, err, map[string]error{dead4: syscall.ECONNREFUSED, mute4: os.ErrDeadlineExceeded, good4: nil}[was.address])
					shortened += was.pause - pause
					if asked++; asked < len(script) {
						lasts = script[asked].lasts
						w.Host("name", script[asked].address)
						return true
					}
					lasts = 6 * time.Second
					w.Host("name", end.address)
					over := w.Now() + pause
					w.At(over+end.at, func() { program.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded}) })
					w.At(over+end.ends-ms, func() { require.False(t, program.Ended()) })
					w.At(over+end.ends+100*ms, func() { require.True(t, program.Ended()) })
					return true
				}
				program, err = w.Server("program", act.Config{}, func(s *act.Scheduler) error { spawn(s, r.Action()); return nil })
				require.NoError(t, err)
				w.At(3*time.Minute, func() {})
				require.NoError(t, w.Run())
				require.Len(t, script, asked)
				require.Positive(t, shortened)
			})
		}
	}
}

// TestWorldReconnect has clients keep up connections to a server that is cut off, and cuts them off, at any time. When the
// faults are over, each has one, unless an order has come.
func TestWorldReconnect(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		w.Host("name", dead4, good6, good4)
		tcp := &service.Listener{Address: good4 + ":80", Filters: []listener.Filter{paused(w)}, Handler: func(*listener.Conn) act.Action {
			return &listener.Sleep{For: time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 10*time.Second))))}
		}}
		_, err := w.Server("host", act.Config{}, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		ordered, last := false, time.Duration(0)
		program, err := w.Server("program", act.Config{Schedulers: pick(w, 1, 2)}, append(anyEngine(w), func(s *act.Scheduler) error {
			s.Spawn(listener.Reconnect{To: listener.Connect{Address: "name:80", Filters: []listener.Filter{paused(w)}}, Most: 5 * time.Second,
				Handler: func(c *listener.Conn) act.Action { last = w.Now(); return untilEnd(c) }}.Action())
			return nil
		})...)
		require.NoError(t, err)
		w.Client(good4+":80", func(c *sim.Client) error {
			if c.Sleep(2*time.Minute - w.Now()); !ordered && last < 100*time.Second {
				w.Errorf("the last connection was made at %v", last)
			}
			return nil
		})
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(time.Minute))), func() {
				ordered = true
				program.Shutdown(terms)
			})
		}
	})
}
