package sim_test

import (
	"cmp"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/internal/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return values[w.Rand().IntN(len(values))] }

// setUps are the set-up functions of an engine.
type setUps []func(*act.Scheduler) error

// anyEngine draws the engine of a server: the set-up functions that come before the others.
func anyEngine(w *sim.World) setUps { return pick(w, nil, nil, nil, setUps{sim.Completions}) }

// patient returns Limits with a Linger that is long enough for slow clients.
func patient(w *sim.World) listener.Limits {
	high := pick(w, 0, 1000, 20_000)
	return listener.Limits{Read: pick(w, 0, 100, 5000), High: high, Low: high / pick(w, 2, 10), Linger: time.Hour}
}

// mixed is a server with a bit of everything: sockets of both kinds, timers, offloads, posts, mailboxes, demons, and
// perhaps an order at a random time.
func mixed(t testing.TB) func(w *sim.World) {
	return func(w *sim.World) {
		cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 16, 0)}
		limits := patient(w)
		tcp := &service.TCP{Address: "10.0.0.1:7007", Handler: measured(w, limits), MaxConns: pick(w, 0, 1, 5), Limits: limits, Backlog: pick(w, 0, 2)}
		unix := &service.Unix{Path: "/run/echo", Handler: measured(w, limits), MaxConns: pick(w, 0, 1, 5), Limits: limits}
		shy := &service.TCP{Address: "10.0.0.1:7008", Handler: shyEcho(w)}
		v, err := w.Server("echo", cfg, append(anyEngine(w), tcp.Setup, unix.Setup, shy.Setup, chores(w))...)
		require.NoError(t, err)
		for range 2 {
			w.Client("10.0.0.1:7008", func(c *sim.Client) error {
				if _, err := c.Read(make([]byte, 1)); err != io.EOF {
					return err
				}
				return nil
			})
		}
		visited(w, v, "10.0.0.1:7007", "unix:/run/echo")
	}
}

// visited adds a dozen clients, and perhaps an order.
func visited(w *sim.World, v *sim.Server, addresses ...string) {
	for range 12 {
		w.Client(pick(w, addresses...), party.Echoes(w))
	}
	if terms, given := order(w); given {
		w.At(time.Duration(w.Rand().Int64N(int64(3*time.Second))), func() { v.Shutdown(shutdown.Now{Terms: terms}) })
	}
}

// measured is an echo handler that checks in each turn how much is queued, since the client may not read.
func measured(w *sim.World, limits listener.Limits) func(*listener.Conn) act.Action {
	most := cmp.Or(limits.High, 64<<10) + 4<<10 // the high mark, and what a turn gathers
	return func(c *listener.Conn) act.Action {
		inner := echo.Echo(c)
		return act.Func(func(t *act.Task) act.Directive {
			if n := c.Queued(); n > most {
				w.Errorf("%d bytes are queued, %d is the bound", n, most)
			}
			return inner.Act(t)
		})
	}
}

// shyEcho is an echo handler that closes a connection after some silence, and checks that the deadline is not early.
func shyEcho(w *sim.World) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		d := time.Duration(w.Rand().Int64N(int64(time.Second)))
		due := time.Duration(0)
		return act.Func(func(t *act.Task) act.Directive {
			if due == 0 {
				due = w.Now() + d
				_ = c.SetReadDeadline(t.Scheduler().Clock().Wall().Add(d))
			}
			_, err := c.Peek(1)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				if w.Now() < due {
					w.Errorf("a deadline at %v came at %v", due, w.Now())
				}
				return act.Done
			}
			return c.Next(t, err)
		})
	}
}

func order(w *sim.World) (terms shutdown.Policy, given bool) {
	turns, bound := 1+w.Rand().IntN(5), time.Duration(w.Rand().Int64N(int64(time.Second)))
	switch w.Rand().IntN(8) {
	case 0:
		return shutdown.Policy{Kind: shutdown.Endless}, true
	case 1:
		return shutdown.Policy{Kind: shutdown.Halting, Drop: true}, true
	case 2:
		return shutdown.Policy{Time: bound + 1, Drop: true}, true
	case 3:
		return shutdown.Policy{Turns: turns, Time: bound + 1, Drop: true}, true
	case 4:
		return shutdown.Policy{Turns: turns, Time: bound + 1}, true
	}
	return terms, false
}

// chore is a task that runs until it is notified of an order.
type chore struct {
	turn    func(t *act.Task) act.Directive
	ordered bool
}

func (c *chore) Act(t *act.Task) act.Directive {
	if c.ordered {
		return act.Done
	}
	return c.turn(t)
}

func (c *chore) Stop(*act.Task, shutdown.Order) { c.ordered = true }

// chores returns a set-up function for the tasks of the server beside its connections.
func chores(w *sim.World) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		box := monitor.NewMailbox[time.Duration](4)
		for _, turn := range []func(*act.Task) act.Directive{
			sleeper(w), sleeper(w), yielding(w), offloader(w), caller(w), reader(w, box), poster(w, box),
		} {
			s.Spawn(&chore{turn: turn})
		}
		s.Install(demon.Every(10*time.Millisecond, func(*act.Task) act.Directive { return act.Yield }))
		return nil
	}
}

// sleeper sleeps for short and long times, and checks that it is not woken early.
func sleeper(w *sim.World) func(*act.Task) act.Directive {
	var tm act.Timer
	var due time.Duration
	return func(t *act.Task) act.Directive {
		if tm.Armed() {
			return act.Wait // woken by another cause
		}
		if w.Now() < due {
			w.Errorf("a timer for %v fired at %v", due, w.Now())
		}
		d := time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 49*time.Millisecond, 3*time.Second))))
		due = w.Now() + d
		if d >= 50*time.Millisecond {
			due = t.Scheduler().Now() + d // a long time counts from the time that the pass has read
		}
		t.WakeAfter(&tm, d)
		t.Waker()
		return act.Wait
	}
}

// yielding yields for a while, then rests.
func yielding(w *sim.World) func(*act.Task) act.Directive {
	var tm act.Timer
	left := 0
	return func(t *act.Task) act.Directive {
		if tm.Armed() {
			return act.Wait
		}
		if left--; left > 0 {
			return act.Yield
		}
		left = w.Rand().IntN(300)
		t.WakeAfter(&tm, time.Second)
		return act.Wait
	}
}

// offloader offloads functions, and checks that each of them runs once.
func offloader(w *sim.World) func(*act.Task) act.Directive {
	begun, done := 0, 0
	var tm act.Timer
	return func(t *act.Task) act.Directive {
		if tm.Armed() {
			return act.Wait
		}
		if begun != done {
			w.Errorf("%d functions were offloaded and %d have run", begun, done)
		}
		if begun++; begun%2 == 0 {
			return t.Offload(func() { done++ })
		}
		done++
		t.WakeAfter(&tm, 500*time.Millisecond)
		return act.Wait
	}
}

// caller waits for a function and a timer at once.
func caller(w *sim.World) func(*act.Task) act.Directive {
	var leaf act.Action
	return func(t *act.Task) act.Directive {
		if leaf == nil {
			leaf = listener.Within(time.Duration(1+w.Rand().Int64N(int64(time.Second))),
				act.Seq(&listener.Sleep{For: time.Millisecond}, &act.Call[int]{F: func() (int, error) { return 1, errors.New("as expected") }}))
		}
		d := leaf.Act(t)
		if d.Finished() {
			leaf = nil
			return act.Yield
		}
		return d
	}
}

// reader receives from its mailbox, and checks the order.
func reader(w *sim.World, box *monitor.Mailbox[time.Duration]) func(*act.Task) act.Directive {
	last := time.Duration(-1)
	receive := &listener.Receive[time.Duration]{From: box}
	return func(t *act.Task) act.Directive {
		d := receive.Act(t)
		if d != act.Done {
			return d
		}
		if receive.Value < last {
			w.Errorf("%v was received after %v", receive.Value, last)
		}
		last = receive.Value
		receive = &listener.Receive[time.Duration]{From: box}
		return act.Yield
	}
}

// poster posts to all schedulers of its group, which send to its mailbox.
func poster(w *sim.World, box *monitor.Mailbox[time.Duration]) func(*act.Task) act.Directive {
	var tm act.Timer
	return func(t *act.Task) act.Directive {
		if tm.Armed() {
			return act.Wait
		}
		all := t.Scheduler().Group().Schedulers()
		all[w.Rand().IntN(len(all))].Post(func(*act.Scheduler) { box.Send(w.Now()) })
		t.WakeAfter(&tm, time.Duration(w.Rand().Int64N(int64(time.Second))))
		return act.Wait
	}
}

func TestWorldMixed(t *testing.T) {
	t.Parallel()
	sim.Test(t, mixed(t))
}

// TestWorldProxy runs echo clients through a proxy. A reset of one of the two connections resets the other, and a client
// sees only its own.
func TestWorldProxy(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve := func(name, address string, handler func(*listener.Conn) act.Action) {
			tcp := &service.TCP{Address: address, Handler: handler, Limits: patient(w), MaxConns: pick(w, 0, 0, 5)}
			_, err := w.Server(name, act.Config{Schedulers: pick(w, 1, 2, 3)}, append(anyEngine(w), tcp.Setup)...)
			require.NoError(t, err)
		}
		serve("echo", "10.0.0.2:7007", echo.Echo)
		serve("proxy", "10.0.0.1:7009", proxy.To("10.0.0.2:7007"))
		for range 8 {
			w.Client("10.0.0.1:7009", party.Echoes(w))
		}
		w.Excuse(func(_ *sim.Client, err error) bool { return w.Counts().Broken > 0 && cutOff(err) })
	})
}

// cutOff reports whether err is that of a connection that the other side has ended.
func cutOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTCONN)
}
