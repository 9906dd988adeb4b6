package sim_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

type setUps []func(*act.Scheduler) error

// anyEngine draws the engine of a server: the set-up functions that come before the others.
func anyEngine(w *sim.World) setUps {
	return pick(w, nil, nil, nil, setUps{sim.Completions})
}

// TestWorldCompletions runs the server of TestWorldMixed over a completion engine.
func TestWorldCompletions(t *testing.T) {
	t.Parallel()
	sim.Test(t, mixed(t, sim.Completions))
}

// TestWorldArrivedBeforeTheOrder has clients that connect around the time of an order. If a connection has arrived before the
// order, the server serves it, even if it accepts it later.
func TestWorldArrivedBeforeTheOrder(t *testing.T) {
	t.Parallel()
	sim.TestWith(t, sim.Options{}, func(w *sim.World) {
		hello := func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				if _, err := c.WriteString("hello"); err != nil {
					return t.Fail(err)
				}
				return act.Done
			})
		}
		tcp := &service.TCP{Address: "10.0.0.1:7007", Handler: hello}
		v, err := w.Server("hello", act.Config{Schedulers: pick(w, 1, 3)}, append(pick(w, nil, setUps{sim.Completions}), tcp.Setup)...)
		require.NoError(t, err)
		var clients []*sim.Client
		served := map[*sim.Client]bool{}
		for range 20 {
			w.At(time.Duration(w.Rand().Int64N(int64(2*time.Millisecond))), func() {
				clients = append(clients, w.Client(tcp.Address, func(c *sim.Client) error {
					_, err := c.Write([]byte("x"))
					if err != nil {
						return nil
					}
					got, err := io.ReadAll(c)
					if served[c] && string(got) != "hello" {
						return fmt.Errorf("it has arrived before the order, but got %q, %v", got, err)
					}
					return nil
				}))
			})
		}
		w.At(time.Duration(w.Rand().Int64N(int64(2*time.Millisecond))), func() {
			for _, c := range clients {
				served[c] = c.Arrived() > 0
			}
			v.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: time.Minute}})
		})
	})
}
