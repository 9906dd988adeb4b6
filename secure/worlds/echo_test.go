package worlds_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/stretchr/testify/require"
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

// TestWorldDeadlines has a client that neither reads nor writes. A deadline ends the server's Read, its Write, or both at the
// same time.
func TestWorldDeadlines(t *testing.T) {
	try(t, sim.Options{}, func(w *world) {
		const address = "10.0.0.1:7007"
		both := pick(w.World, true, false)
		handler := func(c *listener.Conn) act.Action {
			reads, writes := w.ends(c, false), w.ends(c, true)
			if both {
				return act.All(reads, writes)
			}
			return pick(w.World, reads, writes)
		}
		tcp := &service.Listener{Address: address, Handler: handler, Limits: party.Limits(w.World), Filters: w.filters()}
		_, err := w.Server("server", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		for range 4 {
			w.Client(address, func(c *sim.Client) error {
				x := newTalker(w, c, &counts{})
				x.Gap, x.ReadGap = 0, 0
				if err := x.shake(); err != nil {
					return err
				}
				x.Sleep(time.Minute)
				x.Abort()
				return nil
			})
		}
	})
}

// ends waits for more than the client sends or takes, until a deadline.
func (w *world) ends(under *listener.Conn, writing bool) act.Action {
	return coro.New(func(co *coro.Co) error {
		c := co.Conn(under)
		due := w.Now() + time.Second
		at := co.Scheduler().Clock().Wall().Add(time.Second)
		var err error
		if writing {
			_ = c.SetWriteDeadline(at)
			_, err = c.Write(make([]byte, 512<<10))
		} else {
			_ = c.SetReadDeadline(at)
			_, err = c.Read(make([]byte, 1))
		}
		if now := w.Now(); !errors.Is(err, os.ErrDeadlineExceeded) || now < due || now > due+10*time.Millisecond {
			w.Errorf("%v", fmt.Errorf("a deadline at %v has ended a call at %v: %w", due, now, err))
		}
		return nil
	})
}
