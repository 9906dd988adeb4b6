package service_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

// One scheduler may end before the others; they take what comes then.
func TestASchedulerThatHasEndedTakesNoConnectionsFromTheOthers(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		for i := range 2 {
			v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: answers("hello")}
			w := begin(t, cfg, v.Setup)
			w.Group.Schedulers()[i].Shutdown(servertest.Drain)
			w.On(i, func(*act.Scheduler) {})
			w.On(i, func(*act.Scheduler) {})
			for range 10 {
				c := servertest.Dial(t, v.Addr())
				hears("hello")(t, c)
				require.NoError(t, c.Close())
			}
			require.NoError(t, w.order(servertest.Drain))
		}
	})
}

func TestAClientConnectedBeforeTheOrderIsServedBehindManyEvents(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		cfg.Schedulers = 1
		v := &service.TCP{Address: loopback, Handler: greeting}
		w := begin(t, cfg, v.Setup)
		var busy, all []net.Conn
		for range 400 {
			c := servertest.Dial(t, v.Addr())
			servertest.Expect(t, c, "hello")
			busy = append(busy, c)
		}
		release := w.hold(0)
		for _, c := range busy {
			servertest.Send(t, c, "x")
		}
		for range 20 {
			all = append(all, servertest.Dial(t, v.Addr()))
		}
		w.Group.Shutdown(servertest.Drain)
		release()
		for _, c := range all {
			servertest.Expect(t, c, "hello")
		}
	})
}
