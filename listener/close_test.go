package listener_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	for name, end := range map[string]func(*listener.Conn){
		"Close": func(c *listener.Conn) { _ = c.Close() },
		"Abort": (*listener.Conn).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
			servertest.Send(t, peer, "unread")
			readable(l, c, 6)
			require.Equal(t, peer.LocalAddr().String(), c.RemoteAddr().String())
			require.Equal(t, peer.RemoteAddr().String(), c.LocalAddr().String())
			var earlier error
			l.Turn(func(*act.Task) {
				_, earlier = c.Peek(7)
				end(c)
				_, zero := c.Peek(0)
				_, read := c.Read(make([]byte, 1))
				_, nothing := c.Read(nil)
				_, write := c.WriteString("x")
				for i, err := range []error{zero, read, nothing, write, c.Flush(), c.CloseWrite(), c.SetDeadline(time.Now()),
					c.SetReadDeadline(time.Now()), c.SetWriteDeadline(time.Now())} {
					require.Equal(t, net.ErrClosed, err, "call %d", i)
				}
				require.Zero(t, c.Buffered()+c.Queued())
				require.Nil(t, c.LocalAddr())
				require.Equal(t, name == "Abort", c.RemoteAddr() != nil, "for a log")
				require.NoError(t, c.Close(), "a second one does nothing")
				c.Abort()
			})
			armed := false
			o := spawn(l.S, act.Func(func(task *act.Task) act.Directive {
				if armed {
					return act.Done
				}
				armed = true
				return listener.Next(task, earlier)
			}))
			require.Equal(t, act.Done, o.over(l), "a task that is armed too late is woken")
			l.Until("nothing lingers", func() bool { return l.OS.Count("close")+l.OS.Count("reset") == 1 })
			require.Same(t, l.S, c.Scheduler())
		})
	}
}

// Memory does not grow with the connections that were: what is kept for the next ones is bounded.
func TestKeptBuffersAreBounded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var conns []*listener.Conn
	for range 100 {
		c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
		servertest.Send(t, peer, "x")
		conns = append(conns, c)
	}
	l.Until("all have input", func() bool {
		n := 0
		l.Turn(func(*act.Task) {
			for _, c := range conns {
				_, _ = c.Peek(1)
				n += c.Buffered()
			}
		})
		return n == len(conns)
	})
	l.Turn(func(*act.Task) {
		for _, c := range conns {
			_, _ = c.WriteString("y")
			require.NoError(t, c.Close())
		}
	})
	buffers, busy := listener.Kept(l.S)
	require.LessOrEqual(t, buffers, 64)
	require.LessOrEqual(t, busy, 64)
	require.NoError(t, l.S.Run())
}

func TestCloseReturnsTheErrorOfTheLastSend(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	l.OS.Fail = servertest.Failing("send", syscall.EPIPE)
	l.Turn(func(*act.Task) {
		_, err := c.WriteString("goodbye")
		require.NoError(t, err)
		require.Equal(t, syscall.EPIPE, c.Close())
		require.NoError(t, c.Close(), "it is closed nevertheless")
	})
	require.Equal(t, 1, l.OS.Count("reset"), "and the peer does not take it for an orderly end")
	require.NoError(t, l.S.Run())
}
