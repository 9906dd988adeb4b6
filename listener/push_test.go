package listener_test

import (
	"bytes"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// The tasks are others than the one that owns the connection, which waits for input.
func TestWhatOthersPushGoesOutWithTheirTurns(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	owner := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, err := c.Peek(1)
		return c.Next(t, err)
	})).begun(l)
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		require.NoError(t, c.Push([]byte("one ")))
		require.NoError(t, c.Push([]byte("two ")))
		require.Zero(t, l.OS.Count("send"))
	})
	require.Equal(t, 1, l.OS.Count("send"))
	posted := 0
	for range 20 {
		require.NoError(t, l.S.Post(func(*act.Scheduler) {
			require.NoError(t, c.Push([]byte("and ")))
			posted++
		}))
	}
	l.Until("all are called", func() bool { return posted == 20 })
	require.Equal(t, 2, l.OS.Count("send"), "those of one pass together")
	servertest.Expect(t, peer, "one two "+string(bytes.Repeat([]byte("and "), 20)))
	require.Equal(t, 1, owner.turns)
	require.NoError(t, peer.Close())
	require.Equal(t, act.Done, owner.over(l))
	c.Abort()
}

func TestPushSaysWhyItTookNothing(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{High: 1000, Overflow: listener.Drop})
	l.Turn(func(*act.Task) {
		require.NoError(t, c.Push(nil))
		require.Equal(t, listener.ErrTooLong, c.Push(make([]byte, 1001)), "there would never be room")
		require.NoError(t, c.Push([]byte("taken")))
	})
	require.NoError(t, c.SetWriteDeadline(start.Add(2*time.Second)))
	pass(l, clock, 2*time.Second)
	require.Equal(t, os.ErrDeadlineExceeded, c.Push([]byte("late")))
	require.NoError(t, c.SetWriteDeadline(time.Time{}))
	require.NoError(t, c.CloseWrite())
	require.EqualError(t, c.Push([]byte("later")), "monitor: the write side was closed")
	require.Zero(t, c.Dropped())
	servertest.Expect(t, peer, "taken")
	servertest.ExpectEOF(t, peer)
	c.Abort()
	require.Equal(t, net.ErrClosed, c.Push(nil))
}

// What was broken: the count was gone when a service could have logged it.
func TestDroppedIsKeptAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*listener.Conn){"Close": func(c *listener.Conn) { _ = c.Close() }, "Abort": (*listener.Conn).Abort} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{High: 1000, Overflow: listener.Drop, SendBuffer: 4 << 10})
		l.Turn(func(*act.Task) {
			for c.Dropped() < 3 {
				require.NoError(t, c.Push(make([]byte, 1000)))
			}
			end(c)
			require.Equal(t, 3, c.Dropped(), name)
		})
		require.Equal(t, 3, c.Dropped(), name)
		require.Zero(t, c.Buffered())
		require.Same(t, l.S, c.Scheduler())
		require.NoError(t, peer.Close())
	}
}
