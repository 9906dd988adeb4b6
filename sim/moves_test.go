package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldMoves has connections that move to another scheduler whenever they are idle. No byte is lost and no wake-up, and
// the place of a connection in MaxConns moves with it.
func TestWorldMoves(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		r := &roaming{World: w}
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: r.echo, MaxConns: pick(w, 0, 1, 5), Limits: patient(w)}
		unix := &service.Listener{Address: "unix:/run/echo", Handler: r.echo, MaxConns: pick(w, 0, 1, 5), Limits: patient(w)}
		cfg := act.Config{Schedulers: pick(w, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 16, 0)}
		v, err := w.Server("echo", cfg, append(anyEngine(w), tcp.Setup, unix.Setup)...)
		require.NoError(t, err)
		visited(w, v, "10.0.0.1:7007", "unix:/run/echo")
	})
}

type roaming struct{ *sim.World }

// echo serves c until it is idle. Then it may go to another scheduler, or to its own again.
func (r *roaming) echo(c *listener.Conn) act.Action {
	inner := echo.Echo(c)
	return act.Func(func(t *act.Task) act.Directive {
		d := inner.Act(t)
		if d != act.Wait || r.Rand().IntN(2) == 0 {
			return d
		}
		m, err := c.Internals().Release()
		if err != nil {
			return d
		}
		all := t.Scheduler().Group().Schedulers()
		there := all[r.Rand().IntN(len(all))]
		adopt := func(s *act.Scheduler) {
			if c, err := m.Adopt(s); err == nil {
				s.Spawn(act.Seq(act.Func(func(t *act.Task) act.Directive { t.Own(c); return act.Done }), r.echo(c)))
			}
		}
		if there.Post(adopt) != nil {
			adopt(t.Scheduler()) // its inbox is full
		}
		return act.Done
	})
}
