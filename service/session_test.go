package service_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// An actor is an action made of functions that reports what became of it.
type actor struct {
	act    act.Func
	stop   func(*act.Task, shutdown.Order)
	closed *atomic.Int64
}

func (a *actor) Act(t *act.Task) act.Directive { return a.act(t) }

func (a *actor) Stop(t *act.Task, o shutdown.Order) {
	if a.stop != nil {
		a.stop(t, o)
	}
}

func (a *actor) Close() error {
	a.closed.Add(1)
	return nil
}

func (a *actor) String() string { return "actor" }

// afterTheFirst waits for input in its first turn, so that the scheduler has had it for
// some time, and then does as last says.
func afterTheFirst(c *listener.Conn, last func(*act.Task) act.Directive) act.Func {
	return func(t *act.Task) act.Directive {
		if _, err := c.Peek(1); err != nil {
			return listener.Next(t, err)
		}
		return last(t)
	}
}

// How a connection ends follows from how its action ends; a failure is reported once, and no other task notices.
func TestTheEndOfAConnection(t *testing.T) {
	gone := fmt.Errorf("reading a request: %w", syscall.ECONNRESET)
	fault := fmt.Errorf("reading a request: %w", &listener.PeerError{Err: errors.New("bad record MAC")})
	for _, row := range []struct {
		name     string
		handler  func(c *listener.Conn, closed *atomic.Int64) act.Action
		sees     func(*testing.T, net.Addr)
		reported []string
		closed   int64
	}{
		{
			"the handler panics", func(*listener.Conn, *atomic.Int64) act.Action { panic("no room") },
			resets, []string{"panic: no room"}, 0,
		},
		{
			"the handler answers nil", func(c *listener.Conn, _ *atomic.Int64) act.Action {
				_, _ = c.WriteString("full")
				return nil
			}, says("full"), nil, 0,
		},
		{
			"done", func(c *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: answers("bye")(c).Act, closed: closed}
			}, says("bye"), nil, 1,
		},
		{
			"failed", func(c *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(t *act.Task) act.Directive {
					_, _ = c.WriteString("sorry")
					return t.Fail(errors.New("out of luck"))
				}, closed: closed}
			}, says("sorry"), []string{"out of luck"}, 1,
		},
		{
			"failed because the peer has gone", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(t *act.Task) act.Directive { return t.Fail(gone) }, closed: closed}
			}, says(""), nil, 1,
		},
		{
			"failed because the peer has broken the protocol below", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(t *act.Task) act.Directive { return t.Fail(fault) }, closed: closed}
			}, says(""), nil, 1,
		},
		{
			"failed because another server could not be reached", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				failed := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}, Err: syscall.EHOSTUNREACH}
				return &actor{act: func(t *act.Task) act.Directive { return t.Fail(failed) }, closed: closed}
			}, says(""), []string{"dial tcp 192.0.2.1:7: no route to host"}, 1,
		},
		{
			"failed because another connection is closed", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(t *act.Task) act.Directive { return t.Fail(net.ErrClosed) }, closed: closed}
			}, says(""), []string{net.ErrClosed.Error()}, 1,
		},
		{
			"panics in its first turn", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(*act.Task) act.Directive { panic("early") }, closed: closed}
			}, resets, []string{"panic: early"}, 1,
		},
		{
			"panics later", func(c *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: afterTheFirst(c, func(*act.Task) act.Directive { panic("late") }), closed: closed}
			}, func(t *testing.T, a net.Addr) {
				c := servertest.Dial(t, a)
				servertest.Send(t, c, "x")
				hearReset(t, c)
			}, []string{"panic: late"}, 1,
		},
		{
			"no verdict", func(_ *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(*act.Task) act.Directive { return 0 }, closed: closed}
			}, resets, []string{"panic: act: an action returned Directive(0), which is not a valid Directive: " +
				"return Yield, Wait, Async, Done or Failed"}, 1,
		},
		{
			"aborts by itself", func(c *listener.Conn, closed *atomic.Int64) act.Action {
				return &actor{act: func(*act.Task) act.Directive {
					c.Abort()
					return act.Done
				}, closed: closed}
			}, resets, nil, 1,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var closed atomic.Int64
			var others atomic.Bool
			v := &service.Listener{Address: loopback, Handler: func(c *listener.Conn) act.Action {
				if others.Load() {
					return echo.Echo(c)
				}
				return row.handler(c, &closed)
			}}
			w := begin(t, act.Config{Schedulers: 2}, v.Setup)
			row.sees(t, v.Addr())
			eventually(t, "the connection is gone", func() bool { return v.Conns() == 0 })

			others.Store(true)
			neighbour := servertest.Dial(t, v.Addr())
			servertest.Echo(t, neighbour, "well?")
			require.NoError(t, neighbour.Close())

			require.NoError(t, w.order(servertest.Drain))
			require.Equal(t, row.reported, w.failures())
			for _, failed := range w.Logs.FilterMessage("a task failed").All() {
				require.Contains(t, failed.ContextMap()["peer"], "127.0.0.1:", "whose task it was")
			}
			require.Equal(t, row.closed, closed.Load())
		})
	}
}

// says requires a connection to send a text and to end in order.
func says(text string) func(*testing.T, net.Addr) {
	return func(t *testing.T, a net.Addr) {
		c := servertest.Dial(t, a)
		hears(text)(t, c)
		require.NoError(t, c.Close())
	}
}

// resets requires a connection to be aborted, which can be so soon that the dial sees it.
func resets(t *testing.T, a net.Addr) {
	c, err := net.Dial(a.Network(), a.String())
	if err == nil {
		_, err = io.ReadAll(c)
		_ = c.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// hears requires a text and then the orderly end.
func hears(text string) func(*testing.T, net.Conn) {
	return func(t *testing.T, c net.Conn) {
		servertest.Expect(t, c, text)
		servertest.ExpectEOF(t, c)
	}
}

// What was broken: a subscriber that a broker had cut off was an error line.
func TestAConnectionThatThisSideHasAbortedOrClosedFailsNoTask(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*listener.Conn)
		peer bool
	}{
		"by Abort": {(*listener.Conn).Abort, true},
		"by Close": {func(c *listener.Conn) { _ = c.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			subscribers := make(chan *listener.Conn, 1)
			v := &service.Listener{Address: loopback, Handler: func(c *listener.Conn) act.Action {
				subscribers <- c
				return echo.Echo(c)
			}}
			w := begin(t, act.Config{Schedulers: 1}, v.Setup)
			c := servertest.Dial(t, v.Addr())
			subscriber := servertest.Receive(t, subscribers)
			w.On(0, func(*act.Scheduler) { row.end(subscriber) })
			eventually(t, "it has ended", func() bool {
				return w.Logs.FilterMessage("a connection was closed by this side").Len() == 1
			})
			if row.peer {
				require.Equal(t, c.LocalAddr().String(),
					w.Logs.FilterMessage("a connection was closed by this side").All()[0].ContextMap()["peer"])
			}
			require.NoError(t, c.Close())
			require.NoError(t, w.order(servertest.Drain))
			require.Empty(t, w.failures())
		})
	}
}

// A peer that ends in the middle is not the server's fault. A file that ends in the middle is.
func TestInputThatEndsInTheMiddleFailsNoTask(t *testing.T) {
	for _, c := range []struct {
		name     string
		end      func(net.Conn)
		failures []string
	}{
		{"of the peer", func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }, nil},
		{"of something else", func(net.Conn) {}, []string{"unexpected EOF"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &service.Listener{Address: loopback, Handler: func(k *listener.Conn) act.Action {
				return act.Func(func(t *act.Task) act.Directive {
					if _, err := k.Peek(2); c.failures == nil && err != io.EOF || k.Buffered() == 0 {
						return listener.Next(t, err)
					}
					return t.Fail(io.ErrUnexpectedEOF)
				})
			}}
			w := begin(t, act.Config{Schedulers: 1}, v.Setup)
			peer := servertest.Dial(t, v.Addr())
			servertest.Send(t, peer, "?")
			c.end(peer)
			_, _ = io.ReadAll(peer)
			require.NoError(t, peer.Close())
			require.NoError(t, w.order(servertest.Drain))
			require.Equal(t, c.failures, w.failures())
		})
	}
}

// farewell is an order of the application's own type.
type farewell struct{ words string }

func (farewell) Policy() shutdown.Policy { return servertest.Drain }

// polite says goodbye on an order, in the order's words.
func polite(c *listener.Conn, closed *atomic.Int64) act.Action {
	told := ""
	return &actor{
		act: func(t *act.Task) act.Directive {
			if told == "" {
				_, err := c.Peek(1)
				return listener.Next(t, err)
			}
			_, _ = c.WriteString(told)
			return act.Done
		},
		stop:   func(_ *act.Task, o shutdown.Order) { told = o.(farewell).words },
		closed: closed,
	}
}
