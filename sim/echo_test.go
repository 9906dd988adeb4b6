package sim_test

import (
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func TestEcho(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		server := &service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo, Limits: listener.Limits{Linger: time.Hour}}
		if _, err := w.Server("echo", act.Config{Schedulers: 3}, server.Setup); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			w.Client("10.0.0.1:7007", sim.Echo)
		}
	})
}
