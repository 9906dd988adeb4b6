package service_test

import (
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
)

const loopback = "127.0.0.1:0"

// Connections have no goroutines: a server has one for each scheduler and a dozen more, however many clients there are.
func TestTCPConnectionsSpreadOverTheSchedulers(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		const clients = 64
		x := newShares(2)
		v := &service.Listener{Address: loopback, Handler: x.of(echo.Echo)}
		w := begin(t, cfg, v.Setup)
		for range clients {
			c := servertest.Dial(t, v.Addr())
			servertest.Echo(t, c, "hello")
		}
		require.EqualValues(t, clients, x.sum())
		eventually(t, "all are open", func() bool { return v.Conns() == clients })
		require.LessOrEqual(t, runtime.NumGoroutine(), cfg.Schedulers+12)
		for i := range x { // by hash of the address: that one gets less than 8 of 64 has a chance of 10⁻¹⁰
			if netpoll.SpreadsTCP {
				require.GreaterOrEqual(t, x[i].Load(), int64(8), "scheduler %d", i)
			}
		}
		require.Error(t, w.order(servertest.Cut))
		require.Zero(t, v.Conns())
	})
}

// "" is everything there is, IPv4 and IPv6, and a name is looked up. Which clients reach which address shows in netpoll.
func TestTCPHosts(t *testing.T) {
	for listens, dialled := range map[string][]string{"": {"127.0.0.1", "::1"}, "localhost": {"localhost"}} {
		v := &service.Listener{Address: net.JoinHostPort(listens, "0"), Handler: answers("hello")}
		begin(t, act.Config{Schedulers: 2}, v.Setup)
		_, port, err := net.SplitHostPort(v.Addr().String())
		require.NoError(t, err)
		for _, host := range dialled {
			c, err := net.Dial("tcp", net.JoinHostPort(host, port))
			if host == "::1" && err != nil {
				continue // a machine without it
			}
			require.NoError(t, err)
			servertest.Expect(t, c, "hello")
			require.NoError(t, c.Close())
		}
	}
}

func TestTCPErrorsNameTheAddress(t *testing.T) {
	for _, row := range []struct{ name, address, cause string }{
		{"no port", "127.0.0.1", "missing port"},
		{"a port out of range", "127.0.0.1:99999", "invalid port"},
		{"a port that is no number", "127.0.0.1:echos", "unknown port"},
		{"a host that there cannot be", "no such host:7007", "no such host"},
		{"an address of another machine", "192.0.2.1:7007", "cannot assign"},
		{"an unknown zone", "[fe80::1%nowhere]:7007", ""},
		{"nothing that is an address", "!", "missing port"},
		{"nothing", "", "missing port"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &service.Listener{Address: row.address, Handler: echo.Echo}
			err := setUp(t, 2, v.Setup)
			sentence(t, err, row.address, row.cause)
			if row.address != "" {
				require.Equal(t, 1, strings.Count(err.Error(), row.address), "%s, named twice", err)
			}
			require.Nil(t, v.Addr())
		})
	}
}

func TestTCPPortInUse(t *testing.T) {
	v := &service.Listener{Address: loopback, Handler: answers("mine")}
	begin(t, act.Config{Schedulers: 2}, v.Setup)
	address := v.Addr().String()

	t.Run("by a service of the same process", func(t *testing.T) {
		err := setUp(t, 2, (&service.Listener{Address: address, Handler: answers("yours")}).Setup)
		sentence(t, err, address, "in use")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	})
	t.Run("by a service of the same Group", func(t *testing.T) {
		a := &service.Listener{Address: loopback, Handler: echo.Echo}
		err := setUp(t, 2, a.Setup, func(s *act.Scheduler) error {
			return (&service.Listener{Address: a.Addr().String(), Handler: echo.Echo}).Setup(s)
		})
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		sentence(t, err, a.Addr().String())
	})
	for range 32 { // no other server has come between
		servertest.Expect(t, servertest.Dial(t, v.Addr()), "mine")
	}
}

// What the first scheduler has opened is closed when the second cannot follow.
func TestASetUpErrorOnTheSecondSchedulerFreesThePort(t *testing.T) {
	for _, v := range both(t, echo.Echo) {
		t.Run(v.name, func(t *testing.T) {
			refused := func(s *act.Scheduler) error {
				if s.Index() == 1 {
					return syscall.EPERM
				}
				return nil
			}
			require.ErrorIs(t, setUp(t, 2, v.Setup, refused), syscall.EPERM)
			require.NotNil(t, v.Addr())
			_, err := net.Dial(v.Addr().Network(), v.Addr().String())
			require.Error(t, err)
			require.NoError(t, setUp(t, 2, v.Setup), "the value can be set up again")
		})
	}
}

func TestSetUpTwiceOnOneSchedulerIsRefused(t *testing.T) {
	for _, v := range both(t, echo.Echo) {
		t.Run(v.name, func(t *testing.T) {
			sentence(t, setUp(t, 1, v.Setup, v.Setup), "already set up")
		})
	}
}

func TestAServiceInOneGroupIsRefusedToAnother(t *testing.T) {
	for _, v := range both(t, answers("still here")) {
		t.Run(v.name, func(t *testing.T) {
			begin(t, act.Config{Schedulers: 2}, v.Setup)
			sentence(t, setUp(t, 1, v.Setup), "another Group")
			servertest.Expect(t, servertest.Dial(t, v.Addr()), "still here")
		})
	}
}

func TestASetupWithAFieldThatIsWrongSaysWhich(t *testing.T) {
	s := act.New(act.Config{})
	defer s.Close()
	handler := func(*listener.Conn) act.Action { return nil }
	for says, server := range map[string]*service.Listener{
		"there is no Handler":             {},
		"a Filter is nil":                 {Handler: handler, Filters: []listener.Filter{nil}},
		"FilterTimeout is negative: -1ns": {Handler: handler, FilterTimeout: -1},
		"AtEnd has no value 77":           {Handler: handler, AtEnd: 77},
		"a negative Backlog: -1":          {Handler: handler, Backlog: -1},
		"Low is not below High":           {Handler: handler, Limits: listener.Limits{High: 1, Low: 1}},
	} {
		server.Address = loopback
		require.ErrorContains(t, server.Setup(s), says)
	}
}
