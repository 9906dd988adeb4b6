package libraries

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server calls a function with a blocking connection to each client.
type server struct {
	*servertest.Running
	socket *service.Listener
}

func start(t *testing.T, f func(net.Conn) error) *server {
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: f}
	}}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 2}, s.socket.Setup)
	return s
}

func (s *server) address() string { return s.socket.Addr().String() }

// drain requires that all tasks end and none has failed.
func (s *server) drain() {
	s.T.Helper()
	s.Group.Shutdown(servertest.Drain)
	require.NoError(s.T, s.End())
	require.Empty(s.T, s.Logs.FilterMessage("a task failed").All())
}

// The tests that the Go project has for each net.Conn, with a Bridge at one end.
func TestABridgeIsANetConn(t *testing.T) {
	given := make(chan net.Conn)
	ended := make(chan struct{})
	s := start(t, func(c net.Conn) error {
		given <- c
		<-ended
		return nil
	})
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c2, err = net.Dial("tcp", s.address())
		if err != nil {
			return nil, nil, nil, err
		}
		c1 = <-given
		return c1, c2, func() {
			_, _ = c1.Close(), c2.Close()
			ended <- struct{}{}
		}, nil
	})
	s.drain()
}
