package service_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

// A connection is no goroutine: a server has those of its schedulers and a dozen more, however many clients there are.
func TestConnectionsBringNoGoroutines(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		const clients = 300
		v := &service.TCP{Address: loopback, Handler: echo}
		w := begin(t, cfg, v.Setup)
		for range clients {
			c := servertest.Dial(t, v.Addr())
			servertest.Echo(t, c, "!")
		}
		eventually(t, "all are open", func() bool { return v.Open() == clients })
		require.LessOrEqual(t, runtime.NumGoroutine(), cfg.Schedulers+12)
		require.Error(t, w.order(servertest.Cut))
		require.Zero(t, v.Open())
	})
}
