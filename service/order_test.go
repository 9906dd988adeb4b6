package service_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// hold keeps the threads of these schedulers in the turn of a task, until release. That one has further
// turns, so that it is not the next pass that comes next.
func (w *world) hold(indices ...int) (release func()) {
	w.T.Helper()
	held, let := make(chan struct{}), make(chan struct{})
	for _, i := range indices {
		w.On(i, func(s *act.Scheduler) {
			turns := 3
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				if turns--; turns == 2 {
					held <- struct{}{}
					<-let
				}
				if turns > 0 {
					return act.Yield
				}
				return act.Done
			}))
		})
		servertest.Receive(w.T, held)
	}
	return func() { close(let) }
}

func TestUnderAnOrderNewClientsAreRefused(t *testing.T) {
	for _, kind := range both(t, echo.Echo) {
		t.Run(kind.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				w := begin(t, cfg, kind.Setup)
				c := servertest.Dial(t, kind.Addr())
				servertest.Echo(t, c, "before")
				w.Group.Shutdown(servertest.Drain)
				eventually(t, "new connections are refused", func() bool {
					late, err := net.Dial(kind.Addr().Network(), kind.Addr().String())
					if err == nil {
						_ = late.Close()
					}
					return err != nil
				})
				servertest.Send(t, c, "after") // a client that was accepted may stay
				servertest.Expect(t, c, "after")
				require.NoError(t, c.Close())
				require.NoError(t, w.End())
			})
		})
	}
}

func TestASuspendedServiceServesOn(t *testing.T) {
	for _, kind := range both(t, echo.Echo) {
		t.Run(kind.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				w := begin(t, cfg, kind.Setup)
				c := servertest.Dial(t, kind.Addr())
				servertest.Echo(t, c, "before")

				var left *shutdown.Cut
				require.ErrorAs(t, w.order(suspend), &left)
				require.Equal(t, 1, left.Tasks)
				require.Equal(t, 2, left.Demons)
				require.False(t, left.Dropped)
				servertest.Send(t, c, "meanwhile")
				late := servertest.Dial(t, kind.Addr())
				servertest.Send(t, late, "me too")

				w.Run()
				servertest.Expect(t, c, "meanwhile")
				servertest.Expect(t, late, "me too")
				require.NoError(t, c.Close())
				require.NoError(t, late.Close())
				require.NoError(t, w.order(servertest.Drain))
			})
		})
	}
}

// One value can serve one Group after another, also the same one twice, and on the same port at once.
func TestAServiceIsSetUpAgain(t *testing.T) { servertest.UnderEach(t, setUpAgain) }

func setUpAgain(t *testing.T, cfg act.Config) {
	for _, kind := range both(t, echo.Echo) {
		t.Run(kind.name, func(t *testing.T) {
			for range 3 {
				w := begin(t, cfg, kind.Setup)
				for range 2 {
					c := servertest.Dial(t, kind.Addr())
					servertest.Echo(t, c, "hello")
					eventually(t, "one is open", func() bool { return kind.Conns() == 1 })
					require.NoError(t, c.Close())
					require.NoError(t, w.order(servertest.Drain))
					require.Zero(t, kind.Conns())
					w.Run(kind.Setup)
				}
				require.NoError(t, w.order(servertest.Drain))
				require.NoError(t, w.Group.Close())
			}
		})
	}
}

// A kind is a service by the name of its socket's kind.
type kind struct {
	name string
	*service.Listener
}

// both is a service of each kind with the handler.
func both(t *testing.T, handler func(*listener.Conn) act.Action) []kind {
	return []kind{
		{"tcp", &service.Listener{Address: loopback, Handler: handler}},
		{"unix", &service.Listener{Address: "unix:" + filepath.Join(servertest.ShortDir(t), "s"), Handler: handler}},
	}
}
