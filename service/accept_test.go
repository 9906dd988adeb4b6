package service_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// accepting is a service on a scheduler whose time passes when the test says so. It has no place but the given.
func accepting(t *testing.T, places int) (*servertest.Stepped, *servertest.Clock, *service.Listener) {
	clock := &servertest.Clock{}
	clock.Pass(time.Second)
	l := servertest.New(t, act.Config{Clock: clock})
	v := &service.Listener{Address: loopback, Handler: echo.Echo, MaxConns: places, EvictAfter: -1, Limits: listener.Limits{Linger: 1}}
	require.NoError(t, v.Setup(l.S))
	return l, clock, v
}

// A connection that the poller does not take, for want of memory, is given up.
func TestWithoutDescriptorsAServicePausesAndRecovers(t *testing.T) {
	for errno, call := range map[syscall.Errno]string{
		syscall.EMFILE: "accept", syscall.ENFILE: "accept", syscall.ENOBUFS: "accept", syscall.ENOMEM: "accept", syscall.ENOSPC: "add",
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			l, clock, v := accepting(t, 10)
			spare, _ := l.Stream("tcp")
			l.For(0)
			before := l.OS.Count(call)
			l.OS.Fail = servertest.Failing(call, errno)
			for range 20 {
				servertest.Dial(t, v.Addr())
			}
			l.Until("it has tried", func() bool { return l.OS.Count(call) > before })
			l.For(0)
			require.Equal(t, before+1, l.OS.Count(call), "no time has passed, and it does not spin")
			for n := 2; n <= 12; n++ { // also for the line in the log
				clock.Pass(100 * time.Millisecond)
				l.For(0)
				require.Equal(t, before+n, l.OS.Count(call), "once in a while")
			}
			require.Zero(t, v.Conns())
			require.Equal(t, 1, l.Logs.FilterMessage("accepting pauses").Len())

			l.OS.Fail = nil
			spare.Abort() // gives a descriptor back: no time passes
			l.Until("connections", func() bool { return v.Conns() > 0 })
		})
	}
}

func TestErrorsOfOneConnectionArePassedOver(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN,
		syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH,
		syscall.ECONNRESET, syscall.ETIMEDOUT} {
		l, _, v := accepting(t, 1)
		l.OS.Fail = func(call string, _ int) error {
			if call == "accept" && l.OS.Count("accept") == 1 {
				return errno
			}
			return nil
		}
		servertest.Dial(t, v.Addr())
		l.Until("the connection", func() bool { return v.Conns() == 1 })
		require.Zero(t, l.Logs.Len(), "an everyday matter")
	}
}

func TestAnUnknownErrorFailsTheService(t *testing.T) {
	l, _, v := accepting(t, 1)
	l.OS.Fail = servertest.Failing("accept", syscall.EINVAL)
	servertest.Dial(t, v.Addr())
	l.Until("it has failed", func() bool { return l.Logs.Len() == 1 })
	require.Contains(t, l.Logs.All()[0].ContextMap()["error"], "service: accept: invalid argument")
	require.Zero(t, v.Conns())
}
