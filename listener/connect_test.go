package listener_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// listenAndGreet listens for the length of the test and greets each client.
func listenAndGreet(t testing.TB, network, at string) net.Addr {
	t.Helper()
	ln, err := net.Listen(network, at)
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("welcome"))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-over })
	return ln.Addr()
}

// calls is an Executor that counts.
type calls struct{ n atomic.Int64 }

func (e *calls) Execute(f func()) { e.n.Add(1); go f() }

func TestConnectToEachKindOfAddress(t *testing.T) {
	tcp := listenAndGreet(t, "tcp", "127.0.0.1:0").(*net.TCPAddr)
	path := filepath.Join(servertest.ShortDir(t), "s")
	listenAndGreet(t, "unix", path)
	_, port, err := net.SplitHostPort(tcp.String())
	require.NoError(t, err)
	for address, lookups := range map[string]int64{
		tcp.String():                               0,
		"unix:" + path:                             0,
		net.JoinHostPort("localhost", port):        1, // also where it is ::1 first: the second works
		net.JoinHostPort("::ffff:127.0.0.1", port): 0,
	} {
		t.Run(address, func(t *testing.T) {
			executor := &calls{}
			l := servertest.New(t, act.Config{Executor: executor})
			c := &listener.Connect{Address: address}
			var conn *listener.Conn
			o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
				d := c.Act(t)
				if d == act.Done {
					require.Equal(l.T, act.Done, c.Act(t), "it says so again")
					conn = c.Conn()
				}
				return d
			}))
			require.Equal(t, act.Done, o.over(l), "%v", o.err)
			require.Equal(t, lookups, executor.n.Load(), "looked up on another goroutine")
			readable(l, conn, 7)
			conn.Abort()
		})
	}
}

func TestConnectFailsWithASentenceThatNamesTheAddress(t *testing.T) {
	unused := servertest.Vacant(t).String()
	for address, row := range map[string]struct {
		is   error
		says string
	}{
		unused:                   {syscall.ECONNREFUSED, "connection refused"},
		"unix:/nowhere/at/all":   {syscall.ENOENT, "no such file"},
		"unix:" + long:           {syscall.ENAMETOOLONG, "too long"},
		"no such host:80":        {nil, "no such host"},
		"127.0.0.1":              {nil, "missing port"},
		"127.0.0.1:no-such-port": {nil, "unknown port"},
		"":                       {nil, "missing port"},
	} {
		t.Run(address, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c := &listener.Connect{Address: address}
			o := spawn(l.S, c)
			require.Equal(t, act.Failed, o.over(l))
			require.ErrorContains(t, o.err, " "+address+": ")
			require.ErrorContains(t, o.err, row.says)
			if row.is != nil {
				require.ErrorIs(t, o.err, row.is)
			}
			require.Nil(t, c.Conn())
			l.Turn(func(task *act.Task) {
				require.Equal(t, act.Failed, c.Act(task), "it says so again")
				require.ErrorContains(t, task.Err(), row.says)
			})
			require.NoError(t, c.Close())
		})
	}
}

var long = "/" + strings.Repeat("x", 200)

// lookup is a Resolver.
type lookup func(ctx context.Context) ([]netip.Addr, error)

func (f lookup) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) { return f(ctx) }

// What was broken: Within, and act.Seq and its kind, closed the leaf as soon as it was Done, and with it
// the connection that it had just made.
func TestAConnectionSurvivesTheBoundOnItsMaking(t *testing.T) {
	at := listenAndGreet(t, "tcp", "127.0.0.1:0").String()
	for name, bound := range map[string]func(act.Action) act.Action{
		"Within":    func(a act.Action) act.Action { return listener.Within(servertest.Timeout, a) },
		"act.Seq":   func(a act.Action) act.Action { return act.Seq(a) },
		"act.First": func(a act.Action) act.Action { return act.First(a, &listener.Sleep{For: servertest.Timeout}) },
		"act.All":   func(a act.Action) act.Action { return act.All(a, &listener.Sleep{For: 5 * time.Millisecond}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c := &listener.Connect{Address: at}
			bounded := bound(c)
			var conn *listener.Conn
			o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
				d := bounded.Act(t)
				if d == act.Done {
					conn = c.Conn()
				}
				return d
			}))
			require.Equal(t, act.Done, o.over(l))
			require.NotNil(t, conn)
			readable(l, conn, 7)
			conn.Abort()
		})
	}
}

func TestAConnectionNotTakenIsAbortedWithTheTask(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	l := servertest.New(t, act.Config{})
	c := &listener.Connect{Address: ln.Addr().String()}
	require.Equal(t, act.Done, spawn(l.S, act.Seq(c)).over(l))
	peer, err := ln.Accept()
	require.NoError(t, err)
	defer peer.Close()
	_, err = io.Copy(io.Discard, peer)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Nil(t, c.Conn())
}

// dropEvents lets no event through, so that no connect is ever decided.
func dropEvents(l *servertest.Stepped) {
	l.OS.Events = func(got []netpoll.Event) []netpoll.Event { return got[:0] }
}

func TestAConnectClosedOnTheWayHasFailed(t *testing.T) {
	at := listenAndGreet(t, "tcp", "127.0.0.1:0").String()
	for name, c := range map[string]*listener.Connect{
		"while connecting": {Address: at},
		"while looking up": {Address: "localhost:80"},
		"before its begin": {Address: at},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			l.Engine()
			dropEvents(l)
			given := make(chan struct{})
			monitor.SetResolver(l.S, lookup(func(ctx context.Context) ([]netip.Addr, error) {
				<-ctx.Done()
				close(given)
				return nil, ctx.Err()
			}))
			if name != "before its begin" {
				l.Turn(func(task *act.Task) { require.Equal(t, act.Wait, c.Act(task)) })
			}
			require.NoError(t, c.Close())
			require.NoError(t, c.Close(), "again")
			require.Nil(t, c.Conn())
			l.Turn(func(task *act.Task) {
				require.Equal(t, act.Failed, c.Act(task))
				require.ErrorIs(t, task.Err(), net.ErrClosed)
			})
			l.For(0) // no task waits for the lookup any more
			if name == "while looking up" {
				servertest.Receive(t, given) // and it was told
			}
		})
	}
}

// What was broken: bad Limits were found when the connection stood, and its descriptor stayed open.
func TestAConnectWithAFieldThatIsWrongFails(t *testing.T) {
	address := listenAndGreet(t, "tcp", "127.0.0.1:0").String()
	for says, c := range map[string]*listener.Connect{
		"a Filter is nil":              {Filters: []listener.Filter{nil}},
		"a negative FilterTimeout: -1": {FilterTimeout: -1},
		"Limits with a negative bound": {Limits: listener.Limits{High: -1}},
	} {
		c.Address = address
		l := servertest.New(t, act.Config{})
		o := spawn(l.S, c)
		require.Equal(t, act.Failed, o.over(l))
		require.ErrorContains(t, o.err, says)
		require.Zero(t, l.OS.Count("add"), "nothing is dialled")
	}
}
