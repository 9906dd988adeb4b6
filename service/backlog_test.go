package service_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

// One scheduler may end before the others; they take what comes then.
func TestASchedulerThatHasEndedTakesNoConnectionsFromTheOthers(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		for i := range 2 {
			v := &service.Listener{Address: "unix:" + filepath.Join(servertest.ShortDir(t), "s"), Handler: answers("hello")}
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
