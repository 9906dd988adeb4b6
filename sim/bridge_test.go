package sim_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldBridge has functions echo that block. The world wants each of them to return, also under an order.
func TestWorldBridge(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		serve := func(c *listener.Conn) act.Action {
			piece := 1 + w.Rand().IntN(40_000)
			return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
				_, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, piece))
				return err
			}}
		}
		server := &service.TCP{Address: "10.0.0.1:7007", Handler: serve, Limits: patient(w)}
		v, err := w.Server("echo", act.Config{Schedulers: pick(w, 1, 3), TurnsPerPass: pick(w, 0, 1, 8)},
			append(anyEngine(w), server.Setup)...)
		require.NoError(t, err)
		for range 20 {
			w.Client("10.0.0.1:7007", party.Echoes(w))
		}
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(time.Second))), func() { v.Shutdown(shutdown.Now{Terms: terms}) })
		}
	})
}
