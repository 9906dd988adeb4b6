package sim_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func serve(t *testing.T, w *sim.World, name string, address string, handler func(*listener.Conn) act.Action) {
	tcp := &service.TCP{Address: address, Handler: handler, Limits: patient(w), MaxConns: pick(w, 0, 0, 5)}
	cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 3)}
	_, err := w.Server(name, cfg, append(anyEngine(w), tcp.Setup)...)
	require.NoError(t, err)
}

// TestWorldProxy runs echo clients through a proxy. A reset of one of the two connections resets the other, and a client
// sees only its own.
func TestWorldProxy(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve(t, w, "echo", "10.0.0.2:7007", echo.Echo)
		serve(t, w, "proxy", "10.0.0.1:7009", proxy.To("10.0.0.2:7007"))
		for range 8 {
			w.Client("10.0.0.1:7009", echoes)
		}
		w.Excuse(func(_ *sim.Client, err error) bool { return w.Counts().Broken > 0 && cutOff(err) })
	})
}

func cutOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTCONN)
}

// TestWorldFlood has more clients at once than a service can accept in one turn.
func TestWorldFlood(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve(t, w, "echo", "10.0.0.1:7007", echo.Echo)
		for range 300 {
			w.Client("10.0.0.1:7007", func(c *sim.Client) error {
				if _, err := fmt.Fprintln(c, "here I am"); err != nil {
					return err
				}
				_, err := bufio.NewReader(c).ReadString('\n')
				return err
			})
		}
	})
}
