package service_test

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

const loopback = "127.0.0.1:0"

func TestTCPConnectionsSpreadOverTheSchedulers(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		const clients = 64
		x := newShares(2)
		v := &service.TCP{Address: loopback, Handler: x.of(echo)}
		w := begin(t, cfg, v.Setup)
		for range clients {
			c := servertest.Dial(t, v.Addr())
			servertest.Echo(t, c, "hello")
		}
		require.EqualValues(t, clients, x.sum())
		eventually(t, "all are open", func() bool { return v.Open() == clients })
		for i := range x { // by hash of the address: that one gets less than 8 of 64 has a chance of 10⁻¹⁰
			if netpoll.SpreadsTCP {
				require.GreaterOrEqual(t, x[i].Load(), int64(8), "scheduler %d", i)
			}
		}
		require.Error(t, w.order(servertest.Cut))
		require.Zero(t, v.Open())
	})
}

// The host decides who can reach the service. "" is everything there is, IPv4 and IPv6. A machine without IPv6
// is one where its addresses are bad and no server can be dialled at them.
func TestTCPHosts(t *testing.T) {
	for _, row := range []struct {
		host    string
		reached []string
		not     []string
	}{
		{"127.0.0.1", []string{"127.0.0.1"}, []string{"::1", "127.0.0.2"}},
		{"127.0.0.2", []string{"127.0.0.2"}, []string{"127.0.0.1"}},
		{"0.0.0.0", []string{"127.0.0.1", "127.0.0.2"}, []string{"::1"}},
		{"::1", []string{"::1"}, []string{"127.0.0.1"}},
		{"::", []string{"::1", "127.0.0.1"}, nil},
		{"", []string{"::1", "127.0.0.1"}, nil},
		{"localhost", []string{"localhost"}, nil},
	} {
		t.Run("host "+row.host, func(t *testing.T) {
			v := &service.TCP{Address: net.JoinHostPort(row.host, "0"), Handler: answers("hello")}
			if !has(row.host) {
				sentence(t, setUp(t, 2, v.Setup), v.Address)
				return
			}
			begin(t, act.Config{Schedulers: 2}, v.Setup)
			_, port, err := net.SplitHostPort(v.Addr().String())
			require.NoError(t, err)
			for _, host := range row.reached {
				c, err := net.Dial("tcp", net.JoinHostPort(host, port))
				if !has(host) {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				servertest.Expect(t, c, "hello")
				require.NoError(t, c.Close())
			}
			for _, host := range row.not {
				_, err := net.Dial("tcp", net.JoinHostPort(host, port))
				require.Error(t, err)
				if has(host) {
					require.ErrorIs(t, err, syscall.ECONNREFUSED)
				}
			}
		})
	}
}

// has reports whether this machine can listen at the host: IPv6 may be switched off, or have no ::1.
func has(host string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
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
			v := &service.TCP{Address: row.address, Handler: echo}
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
	v := &service.TCP{Address: loopback, Handler: answers("mine")}
	begin(t, act.Config{Schedulers: 2}, v.Setup)
	address := v.Addr().String()

	t.Run("by a service of the same process", func(t *testing.T) {
		err := setUp(t, 2, (&service.TCP{Address: address, Handler: answers("yours")}).Setup)
		sentence(t, err, address, "in use")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	})
	t.Run("by a service of the same Group", func(t *testing.T) {
		a := &service.TCP{Address: loopback, Handler: echo}
		err := setUp(t, 2, a.Setup, func(s *act.Scheduler) error {
			return (&service.TCP{Address: a.Addr().String(), Handler: echo}).Setup(s)
		})
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		sentence(t, err, a.Addr().String())
	})
	t.Run("by another instance of the program", func(t *testing.T) {
		said, err := playChild(t, "listen on TCP", address)
		require.Error(t, err)
		require.Equal(t, "cannot listen on "+address+": address already in use\n", said)
	})
	for range 32 { // no other server has come between
		servertest.Expect(t, servertest.Dial(t, v.Addr()), "mine")
	}
}

func init() {
	children["listen on TCP"] = func(address string) error {
		return listenFor(&service.TCP{Address: address, Handler: echo})
	}
	children["listen on Unix"] = func(address string) error {
		return listenFor(&service.Unix{Path: address, Handler: echo})
	}
}

// listenFor is a program that ends as soon as it listens.
func listenFor(v interface {
	Setup(*act.Scheduler) error
}) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return act.Run(ctx, act.Config{Schedulers: 2, Logger: zap.NewNop()}, v.Setup)
}

// What the first scheduler has opened is closed when the second cannot follow.
func TestASetUpErrorOnTheSecondSchedulerFreesThePort(t *testing.T) {
	for _, v := range both(t, echo) {
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
	for _, v := range both(t, echo) {
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

func TestSetupWithoutAHandlerPanics(t *testing.T) {
	s := act.New(act.Config{})
	defer s.Close()
	require.PanicsWithValue(t, "service: without a Handler", func() { _ = (&service.TCP{Address: loopback}).Setup(s) })
	require.PanicsWithValue(t, "service: without a Handler", func() { _ = (&service.Unix{Path: "x"}).Setup(s) })
}

// An error of accept that is neither of the one connection nor of resources would come again for ever: the
// service ends on that scheduler, is reported once, and does not spin.
func TestAnErrorOfAcceptThatWillNotPassEndsTheService(t *testing.T) {
	for _, kind := range both(t, answers("hello")) {
		t.Run(kind.name, func(t *testing.T) {
			system := &servertest.OS{Fail: servertest.Failing("accept", syscall.ENOTSOCK)}
			w := begin(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
				readiness.Inject(s, system)
				return nil
			}, kind.Setup)
			if c, err := net.Dial(kind.Addr().Network(), kind.Addr().String()); err == nil { // not reset so soon
				defer c.Close()
			}
			require.NoError(t, w.End(), "nothing is left to do")
			require.Equal(t, 1, system.Count("accept"))
			require.Equal(t, []string{"listener: accept: socket operation on non-socket"}, w.failures())
		})
	}
}
