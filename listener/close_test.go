package listener_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
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
			require.Same(t, l.S, c.Scheduler())
			require.Equal(t, peer.LocalAddr().String(), c.RemoteAddr().String())
			require.Equal(t, peer.RemoteAddr().String(), c.LocalAddr().String())
			var earlier error
			l.Turn(func(*act.Task) { _, earlier = c.Peek(7) })
			l.Turn(func(task *act.Task) {
				end(c)
				_, err := c.Peek(1)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Peek(0)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Read(make([]byte, 1))
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Read(nil)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Write([]byte("x"))
				require.Equal(t, net.ErrClosed, err)
				_, err = c.WriteString("x")
				require.Equal(t, net.ErrClosed, err)
				require.Equal(t, net.ErrClosed, c.Flush())
				require.Equal(t, net.ErrClosed, c.CloseWrite())
				require.Equal(t, net.ErrClosed, c.SetDeadline(time.Now()))
				require.Equal(t, net.ErrClosed, c.SetReadDeadline(time.Now()))
				require.Equal(t, net.ErrClosed, c.SetWriteDeadline(time.Now()))
				require.Zero(t, c.Buffered())
				require.Zero(t, c.Queued())
				require.Nil(t, c.LocalAddr())
				if name == "Abort" {
					require.Equal(t, peer.LocalAddr().String(), c.RemoteAddr().String(), "for a log")
				} else {
					require.Nil(t, c.RemoteAddr())
				}
				require.NoError(t, c.Close(), "a second one does nothing")
				c.Abort()
				require.Equal(t, act.Wait, listener.Next(task, earlier), "and a task that is armed too late is woken")
			})
			o := spawn(l.S, act.Func(func(task *act.Task) act.Directive {
				if earlier != nil {
					d := listener.Next(task, earlier)
					earlier = nil
					return d
				}
				return act.Done
			}))
			require.Equal(t, act.Done, o.over(l))
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
