package listener_test

import (
	"bytes"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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
	c, peer := l.Conn("tcp", listener.Limits{High: 1000})
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
	servertest.Expect(t, peer, "taken")
	servertest.ExpectEOF(t, peer)
	c.Abort()
	require.Equal(t, net.ErrClosed, c.Push(nil))
}

func TestAMessageWithoutRoom(t *testing.T) {
	for _, end := range map[string]func(*listener.Conn){"Close": func(c *listener.Conn) { _ = c.Close() }, "Abort": (*listener.Conn).Abort} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{High: 1000})
		l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
		l.Turn(func(*act.Task) { require.NoError(t, c.Push(make([]byte, 999))) })
		l.OS.Fail = nil
		l.Turn(func(*act.Task) {
			require.Implements(t, (*act.Blocked)(nil), c.Push(make([]byte, 2)))
			require.Implements(t, (*act.Blocked)(nil), c.PushShared(make([]byte, 2)))
			require.Equal(t, 999, c.Queued())
			require.NoError(t, c.PushShared(nil))
			require.NoError(t, c.Push(make([]byte, 1)))
			end(c)
			require.Equal(t, net.ErrClosed, c.PushShared(nil))
		})
		require.Zero(t, c.Buffered())
		require.Same(t, l.S, c.Scheduler())
		require.NoError(t, peer.Close())
	}
}

// What was broken: a message was copied for each slow peer. A message that is long enough is referred to, and counts
// once, from the first reference to the last.
func TestWhatIsSharedIsHeldOnce(t *testing.T) {
	l := servertest.New(t, act.Config{})
	held := func() int { return budget.Of(l.S).Total() }
	large, small := bytes.Repeat([]byte("L"), 40<<10), bytes.Repeat([]byte("s"), 600)
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	conns, peers := make([]*listener.Conn, 50), make([]net.Conn, 50)
	for i := range conns {
		conns[i], peers[i] = l.Conn("unix", listener.Limits{High: 1 << 20})
	}
	for n := range 3 {
		l.Turn(func(*act.Task) {
			for _, c := range conns {
				require.NoError(t, c.PushShared(large))
				if n > 0 {
					require.NoError(t, c.PushShared(small))
				}
				require.NoError(t, c.Push([]byte("c")))
			}
		})
	}
	copies := len(conns) * (16<<10 + 1<<10) // a buffer and the references of each
	require.Less(t, held(), copies+len(large)+len(small)+1)
	require.Greater(t, held(), len(conns)*16<<10+len(large))
	for _, c := range conns[1:] {
		c.Abort()
	}
	require.Greater(t, held(), len(large)+len(small))
	l.OS.Fail = nil
	require.NoError(t, conns[0].Flush())
	servertest.Expect(t, peers[0], string(large)+"c"+strings.Repeat(string(large)+string(small)+"c", 2))
	require.Zero(t, held())
	conns[0].Abort()
}
