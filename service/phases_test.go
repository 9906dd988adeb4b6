package service_test

import (
	"errors"
	"io"
	"net"
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

// The phases and bounds of an end show in the simulated worlds (TestWorldEnds and its neighbours in sim).

// leaving is an echo that ends at an order.
func leaving(c *listener.Conn) act.Action {
	told, echoes := false, echo.Echo(c)
	return &actor{closed: new(atomic.Int64), stop: func(*act.Task, shutdown.Order) { told = true },
		act: func(t *act.Task) act.Directive {
			if told {
				return act.Done
			}
			return echoes.Act(t)
		}}
}

// ending is a service whose connections end in one of the ways.
func ending(at service.Ending) *service.Listener {
	return &service.Listener{Address: loopback, Handler: leaving, AtEnd: at}
}

// ended wants the server to end the connection, by a reset or in order.
func ended(t *testing.T, c net.Conn, reset bool) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	if timeout := net.Error(nil); errors.As(err, &timeout) {
		require.False(t, timeout.Timeout(), "it goes on")
	}
	require.Equal(t, !reset, err == io.EOF, "%v", err)
	require.NoError(t, c.Close()) // otherwise the server waits for that
}

// met returns a client of each service that has been answered.
func met(t *testing.T, all ...*service.Listener) (clients []net.Conn) {
	for _, v := range all {
		c := servertest.Dial(t, v.Addr())
		servertest.Echo(t, c, "before")
		clients = append(clients, c)
	}
	return clients
}

// Under an order the connections of each service end as it says. A service that is told is there to show that the order is in
// force, as no other is told.
func TestWhatBecomesOfConnectionsAtTheEnd(t *testing.T) {
	for _, schedulers := range []int{1, 2} {
		told, finish := ending(service.FinishRequest), ending(service.Finish)
		discard, last := ending(service.Discard), ending(service.LastOfAll)
		w := begin(t, act.Config{Schedulers: schedulers}, told.Setup, finish.Setup, discard.Setup, last.Setup)
		clients := met(t, told, finish, discard, last)
		w.Group.Shutdown(servertest.Drain)
		ended(t, clients[0], false)
		ended(t, clients[2], true)
		servertest.Echo(t, clients[1], "it knows nothing of the order")
		if schedulers == 1 { // else the last ones of the other scheduler may have ended already
			servertest.Echo(t, clients[3], "it is still there")
			another := met(t, last)
			require.NoError(t, another[0].Close(), "and it accepts")
		}
		require.NoError(t, clients[1].Close())
		ended(t, clients[3], false)
		require.NoError(t, w.End())
	}
}

// A service that another process continues is not needed to the last: its connections end with the others, even if the
// shutdown began first.
func TestConnectionsOfAServiceThatIsGivenEndWithTheOthers(t *testing.T) {
	for _, orderFirst := range []bool{false, true} {
		told, finish, last := ending(service.FinishRequest), ending(service.Finish), ending(service.LastOfAll)
		w := begin(t, act.Config{Schedulers: 2}, told.Setup, finish.Setup, last.Setup)
		clients := met(t, told, finish, last)
		if !orderFirst {
			last.Handover().Give()
		}
		w.Group.Shutdown(servertest.Drain)
		ended(t, clients[0], false)
		if orderFirst {
			last.Handover().Give()
		}
		ended(t, clients[2], false)
		servertest.Echo(t, clients[1], "it knows nothing of the order")
		require.NoError(t, clients[1].Close())
		require.NoError(t, w.End())
	}
}
