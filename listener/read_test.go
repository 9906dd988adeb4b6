package listener_test

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// Read with much room receives by itself. It has to mind what Peek does.
func TestALargeRead(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{})
	p := make([]byte, 10_000)
	read := func() (n int, err error) {
		l.Turn(func(*act.Task) { n, err = c.Read(p) })
		return n, err
	}
	await := func(want string) {
		t.Helper()
		n, err := 0, error(nil)
		l.Until("input", func() bool { n, err = read(); return n > 0 || !isBlocked(err) })
		require.NoError(t, err)
		require.Equal(t, want, string(p[:n]))
	}
	_, err := read()
	require.True(t, isBlocked(err))

	var got string
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		n, err := c.Read(p)
		if got = string(p[:n]); err != nil {
			return listener.Next(t, err)
		}
		return act.Done
	}))
	l.For(0)
	servertest.Send(t, peer, "hello")
	l.Until("the task is woken", func() bool { return got == "hello" })
	require.Zero(t, c.Buffered())

	servertest.Send(t, peer, "unread")
	readable(l, c, 6)
	servertest.Send(t, peer, strings.Repeat("x", 5000))
	await("unread")
	await(strings.Repeat("x", 5000))

	servertest.Send(t, peer, "late")
	require.NoError(t, c.SetReadDeadline(clock.Wall()))
	l.For(0)
	_, err = read()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	await("late")

	require.NoError(t, peer.Close())
	l.Until("the end", func() bool { _, err = read(); return !isBlocked(err) })
	require.Equal(t, io.EOF, err)
	c.Abort()
	_, err = read()
	require.Equal(t, net.ErrClosed, err)
}

func isBlocked(err error) bool {
	_, is := err.(act.Blocked)
	return is
}
