package sim_test

import (
	"cmp"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return values[w.Rand().IntN(len(values))] }

// setUps are set-up functions of a server.
type setUps = []func(*act.Scheduler) error

// inBatches are the set-up functions that come first if system calls are made in batches, even of one.
func inBatches() setUps { return setUps{monitor.Use(monitor.Uring)} }

// anyEngine draws how system calls are made: by the set-up functions that come first.
func anyEngine(w *sim.World) setUps { return pick(w, nil, inBatches()) }

// patient returns Limits with a Linger that is long enough for slow clients.
func patient(w *sim.World) listener.Limits {
	high := pick(w, 0, 1000, 20_000)
	return listener.Limits{Read: pick(w, 0, 100, 5000), High: high, Low: high / pick(w, 2, 10), Linger: time.Hour}
}

// mixed is a server with sockets of both kinds, bridges, the tasks of TestWorldSessions, a demon, and perhaps an order
// at a random time.
func mixed(t testing.TB) func(w *sim.World) {
	return func(w *sim.World) {
		cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 16, 0)}
		limits := patient(w)
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: pick(w, measured(w, limits), bridged(w)), MaxConns: pick(w, 0, 1, 5), Limits: limits, Backlog: pick(w, 0, 2)}
		unix := &service.Listener{Address: "unix:/run/echo", Handler: pick(w, measured(w, limits), bridged(w)), MaxConns: pick(w, 0, 1, 5), Limits: limits}
		chores := func(s *act.Scheduler) error {
			s.Install(demon.Every(10*time.Millisecond, func(*act.Task) act.Directive { return act.Yield }))
			return (&talkServer{w: w}).spawnTasks(s)
		}
		v, err := w.Server("echo", cfg, append(anyEngine(w), tcp.Setup, unix.Setup, chores)...)
		require.NoError(t, err)
		visited(w, v, "10.0.0.1:7007", "unix:/run/echo")
	}
}

// visited adds a dozen clients, and perhaps an order.
func visited(w *sim.World, v *sim.Server, addresses ...string) {
	for range 12 {
		w.Client(pick(w, addresses...), party.Echoes(w))
	}
	w.ClientAfterStorm(addresses[0], party.Echoes(w))
	if terms, given := order(w); given {
		w.At(time.Duration(w.Rand().Int64N(int64(3*time.Second))), func() { v.Shutdown(terms) })
	}
}

// bridged is an echo handler of functions that block. The world wants each of them to return, also under an order.
func bridged(w *sim.World) func(*listener.Conn) act.Action {
	return func(c *listener.Conn) act.Action {
		piece := 1 + w.Rand().IntN(40_000)
		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, piece))
			return err
		}}
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

func order(w *sim.World) (terms shutdown.Policy, given bool) {
	turns, bound := 1+w.Rand().IntN(5), time.Duration(w.Rand().Int64N(int64(time.Second)))
	switch w.Rand().IntN(8) {
	case 0:
		return shutdown.Policy{Kind: shutdown.Unbounded}, true
	case 1:
		return shutdown.Policy{Kind: shutdown.Halt, Drop: true}, true
	case 2:
		return shutdown.Policy{Time: bound + 1, Drop: true}, true
	case 3:
		return shutdown.Policy{Turns: turns, Time: bound + 1, Drop: true}, true
	case 4:
		return shutdown.Policy{Turns: turns, Time: bound + 1}, true
	}
	return terms, false
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
			tcp := &service.Listener{Address: address, Handler: handler, Limits: patient(w), MaxConns: pick(w, 0, 0, 5)}
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
