package service_test

import (
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// apart keeps two connections from being idle since the same millisecond, which would let either be the first to go.
func apart() { time.Sleep(3 * time.Millisecond) }

func TestTheConnectionThatHasBeenIdleForLongestMakesRoom(t *testing.T) {
	v := &service.Listener{Address: loopback, Handler: echo.Echo, MaxConns: 3, EvictAfter: 10 * time.Millisecond}
	w := begin(t, act.Config{Schedulers: 1}, v.Setup)
	all := make([]net.Conn, 3)
	for i := range all {
		all[i] = servertest.Dial(t, v.Addr())
		servertest.Echo(t, all[i], "hello")
	}
	for _, i := range []int{1, 0, 2} { // the order in which they have to go
		apart()
		servertest.Echo(t, all[i], "again")
		servertest.Echo(t, all[i], "and again") // surely in a pass that began after the sleep
	}
	for _, i := range []int{1, 0, 2} {
		apart()
		next := servertest.Dial(t, v.Addr())
		servertest.Echo(t, next, "let me in")
		servertest.ExpectEOF(t, all[i])
		require.LessOrEqual(t, v.Conns(), 3)
	}
	require.Empty(t, w.failures())
	require.Error(t, w.order(servertest.Cut))
}

// searches lets time pass in which a service searches for idle connections several times.
func searches(w *world, c *servertest.Clock) {
	for range 10 {
		c.Pass(100 * time.Millisecond)
		w.On(0, func(*act.Scheduler) {})
	}
}

// busy is an echo that says when it is idle.
type busy struct {
	act.Action
	conn *listener.Conn
	idle bool
}

func (b *busy) IdleSince() (time.Duration, bool) {
	since, idle := b.conn.IdleSince()
	return since, idle && b.idle
}

// replaced gives its place to another action, as that of HTTP does when the protocol is switched.
type replaced struct{ by act.Action }

func (r *replaced) Act(t *act.Task) act.Directive {
	t.Action().(interface{ Replace(old, by act.Action) bool }).Replace(r, r.by)
	return r.by.Act(t)
}

func TestAConnectionThatIsNotIdleStays(t *testing.T) {
	saying := func(idle bool) func(*listener.Conn) act.Action {
		return func(c *listener.Conn) act.Action { return &busy{echo.Echo(c), c, idle} }
	}
	for name, row := range map[string]struct {
		after   time.Duration
		handler func(*listener.Conn) act.Action
	}{
		"by default, of an action that does not know": {0, echo.Echo},
		"of an action that says it is not":            {time.Millisecond, saying(false)},
		"of an action that has taken another's place": {time.Millisecond, func(c *listener.Conn) act.Action {
			return &replaced{by: echo.Echo(c)}
		}},
		"if the service never evicts": {-1, saying(true)},
		"with unread input": {time.Millisecond, func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(100)
				if c.Queued() == 0 {
					_, _ = c.Write(in)
				}
				return listener.Next(t, err)
			})
		}},
		"in a filter": {time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := &service.Listener{Address: loopback, Handler: row.handler, MaxConns: 1, EvictAfter: row.after}
			if v.Handler == nil {
				v.Handler = echo.Echo
				v.Filters = []listener.Filter{func(c *listener.Conn) act.Action {
					return act.Seq(answers("hello")(c), &listener.Sleep{For: servertest.Timeout})
				}}
			}
			now := &servertest.Clock{}
			w := begin(t, act.Config{Schedulers: 1, Clock: now}, v.Setup)
			first := servertest.Dial(t, v.Addr())
			if len(v.Filters) == 0 {
				servertest.Send(t, first, "hello")
			}
			servertest.Expect(t, first, "hello")
			second := servertest.Dial(t, v.Addr())
			servertest.Send(t, second, "let me in")
			searches(w, now)
			require.Equal(t, 1, v.Conns())
			if row.handler != nil && !strings.Contains(name, "unread") {
				servertest.Echo(t, first, "still here")
			}
			require.NoError(t, first.Close())
			require.Error(t, w.order(servertest.Cut))
		})
	}
}

// What was broken: the descriptors of a process may be fewer than its services have places, and then nobody made room.
func TestAnIdleConnectionMakesRoomInAShortageOfDescriptors(t *testing.T) {
	v := &service.Listener{Address: loopback, Handler: echo.Echo, EvictAfter: time.Millisecond, MaxConns: 100}
	system := &servertest.OS{Fail: func(call string, _ int) error {
		if call == "accept" && v.Conns() > 2 { // with the one that is looked for
			return syscall.EMFILE
		}
		return nil
	}}
	w := begin(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		engine.Below.Put(s, system)
		return nil
	}, v.Setup)
	for range 4 {
		servertest.Echo(t, servertest.Dial(t, v.Addr()), "hello")
	}
	require.Error(t, w.order(servertest.Cut))
}

// A filter of system calls denies accept(2) for ever. To close what is idle would not help.
func TestAnIdleConnectionStaysIfTheSystemDeniesAccept(t *testing.T) {
	v := &service.Listener{Address: loopback, Handler: echo.Echo, EvictAfter: time.Millisecond, MaxConns: 100}
	var denied atomic.Bool
	system := &servertest.OS{Fail: func(call string, _ int) error {
		if call == "accept" && denied.Load() {
			return syscall.EPERM
		}
		return nil
	}}
	w := begin(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		engine.Below.Put(s, system)
		return nil
	}, v.Setup)
	first := servertest.Dial(t, v.Addr())
	servertest.Echo(t, first, "hello")
	denied.Store(true)
	servertest.Dial(t, v.Addr())
	eventually(t, "accepting pauses, several times", func() bool { return system.Count("accept") > 300 })
	servertest.Echo(t, first, "still here")
	require.Error(t, w.order(servertest.Cut))
}

func TestAServiceDoesNotCloseConnectionsOfAnother(t *testing.T) {
	neighbour := &service.Listener{Address: loopback, Handler: echo.Echo, EvictAfter: time.Millisecond, MaxConns: 10}
	v := &service.Listener{Address: loopback, Handler: echo.Echo, MaxConns: 1, EvictAfter: time.Millisecond}
	w := begin(t, act.Config{Schedulers: 1}, neighbour.Setup, v.Setup)
	theirs := servertest.Dial(t, neighbour.Addr()) // idle for longer than all others
	servertest.Echo(t, theirs, "hello")
	for range 3 {
		apart()
		servertest.Echo(t, servertest.Dial(t, v.Addr()), "let me in")
	}
	servertest.Echo(t, theirs, "still here")
	require.Error(t, w.order(servertest.Cut))
}

// What was broken: with one count for all, of three schedulers two that asked alternately never came to the third.
func TestEachSchedulerAsksAllOthersForRoom(t *testing.T) {
	first, second := service.Asked(3, 4)
	require.Equal(t, []int{2, 1, 2, 1}, first)
	require.Equal(t, []int{2, 0, 2, 0}, second)
	first, second = service.Asked(2, 2)
	require.Equal(t, []int{1, 1}, first)
	require.Equal(t, []int{0, 0}, second)
}
