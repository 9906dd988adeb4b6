package service_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// abandoner is an actor that counts calls of Abandon. Its offloaded function needs nothing of it.
type abandoner struct {
	actor
	abandoned *atomic.Int64
}

func (a *abandoner) Abandon() act.Action {
	a.abandoned.Add(1)
	return nil
}

// A filter under way has what an action has: an order reaches it, and it decides when the connection ends.
func TestStopReachesTheFilterUnderWay(t *testing.T) {
	for _, end := range []struct {
		name    string
		ready   bool
		hears   string
		handled int64
	}{
		{"the filter refuses", false, "", 0},
		{"the filter finishes, and the handler gets the same order", true, "so long", 1},
	} {
		t.Run(end.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				var stopped, closed, handled atomic.Int64
				v := &service.Listener{Address: loopback,
					Filters: []listener.Filter{func(c *listener.Conn) act.Action {
						return &actor{closed: &closed,
							stop: func(*act.Task, shutdown.Order) { stopped.Add(1) },
							act: func(t *act.Task) act.Directive {
								_, err := c.Peek(1)
								switch {
								case stopped.Load() == 0:
									return listener.Next(t, err)
								case end.ready:
									return act.Done
								}
								return t.Fail(errors.New("refused"))
							}}
					}},
					Handler: func(c *listener.Conn) act.Action { return polite(c, &handled) }}
				w := begin(t, cfg, v.Setup)
				c := servertest.Dial(t, v.Addr())
				eventually(t, "it is accepted", func() bool { return v.Conns() == 1 })
				w.Group.Shutdown(farewell{"so long"})
				hears(end.hears)(t, c)
				require.NoError(t, c.Close())
				require.NoError(t, w.End())
				require.Equal(t, []int64{1, 1, end.handled}, []int64{stopped.Load(), closed.Load(), handled.Load()})
				require.Empty(t, w.failures())
				require.Zero(t, v.Conns())
			})
		})
	}
}

// A drop does not wait for a function that a filter has offloaded: the filter is abandoned and the connection aborted.
func TestAbandonReachesTheFilterUnderWay(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		var closed, abandoned atomic.Int64
		begun, release, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
		v := &service.Listener{Address: loopback, Handler: echo.Echo,
			Filters: []listener.Filter{func(*listener.Conn) act.Action {
				return &abandoner{abandoned: &abandoned, actor: actor{closed: &closed, act: func(t *act.Task) act.Directive {
					return t.Offload(func() {
						close(begun)
						<-release
						close(returned)
					})
				}}}
			}}}
		w := begin(t, cfg, v.Setup)
		c := servertest.Dial(t, v.Addr())
		servertest.Receive(t, begun)
		var left *shutdown.Cut
		require.ErrorAs(t, w.order(servertest.Cut), &left, "Run ends before the function has returned")
		require.Equal(t, 1, left.Tasks)
		hearReset(t, c)
		require.EqualValues(t, 1, abandoned.Load())
		require.Zero(t, closed.Load(), "Abandon takes the place of Close")
		require.Zero(t, v.Conns())
		close(release)
		servertest.Receive(t, returned)
	})
}
