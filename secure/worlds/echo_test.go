package worlds_test

import (
	"cmp"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldEcho has clients of crypto/tls that write and read in all ways, are slow, and cut their connections at any byte; and
// a shutdown request may come at any time.
func TestWorldEcho(t *testing.T) {
	var seen counts
	try(t, sim.Options{Faults: sim.Anything()}, func(w *world) { w.echoServer(t, &seen) })
	t.Log(seen)
	party.Happened(t, "was a connection served to its end", seen.whole)
	party.Happened(t, "was a session resumed", seen.resumed)
}

func (w *world) echoServer(t *testing.T, seen *counts) {
	const address = "10.0.0.1:7007"
	limits := party.Limits(w.World)
	handler := w.measured(limits, pick(w.World, echo.Echo, coro.Serve(func(c *coro.Conn) error {
		_, err := io.Copy(c, c)
		return err
	})))
	tcp := &service.Listener{Address: address, Handler: handler, Limits: limits, MaxConns: pick(w.World, 0, 0, 3),
		Filters: w.filters(), FilterTimeout: time.Hour, EvictAfter: -1} // with a slow segment a handshake is idle
	v, err := w.Server("echo", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
	require.NoError(t, err)
	for range 6 {
		w.At(time.Duration(w.Rand().Int64N(int64(pick(w.World, time.Microsecond, time.Second)))), func() { w.Client(address, w.echoes(seen)) })
	}
	party.MayEnd(w.World, v, time.Millisecond, 50*time.Millisecond, 3*time.Second)
}

// measured checks in each turn how much is queued, since the peer may not read, and that the state is known.
func (w *world) measured(limits listener.Limits, handler func(*listener.Conn) act.Action) func(*listener.Conn) act.Action {
	most := cmp.Or(limits.High, 64<<10) + 4<<10 // the high mark, and what a turn gathers
	most += most/1000*32 + 100                  // what TLS adds to records that may be short
	return func(c *listener.Conn) act.Action {
		if state, ok := secure.State(c); !ok || !state.HandshakeComplete || state.NegotiatedProtocol != "echo" || state.ServerName != "world" {
			w.Errorf("the state is %+v", state)
		}
		return &watched{Child: act.Child{Action: handler(c)}, after: func() {
			if n := c.Queued(); n > most {
				w.Errorf("%d bytes are queued, %d is the bound", n, most)
			}
		}}
	}
}

// watched calls after after each turn.
type watched struct {
	act.Child
	after func()
}

func (x *watched) Act(t *act.Task) act.Directive {
	d := x.Child.Act(t)
	x.after()
	return d
}
