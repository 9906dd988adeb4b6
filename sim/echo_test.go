package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// addEcho adds an echo server and its clients.
func addEcho(t *testing.T, w *sim.World) {
	server := &service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo, Limits: listener.Limits{Linger: time.Hour}}
	_, err := w.Server("echo", act.Config{Schedulers: 3}, server.Setup)
	require.NoError(t, err)
	for range 20 {
		w.Client("10.0.0.1:7007", party.Echoes(w))
	}
}
