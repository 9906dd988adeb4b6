package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/servertest"
)

// behind is what the proxy passes on to.
func behind(t *testing.T) *net.TCPListener {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// pair is a connection through the proxy: its two ends.
func pair(t *testing.T, proxy *exectest.Program, l *net.TCPListener) (near, far *net.TCPConn) {
	near = dial(t, proxy.Addr)
	require.NoError(t, l.SetDeadline(time.Now().Add(patience)))
	far, err := l.AcceptTCP()
	require.NoError(t, err)
	require.NoError(t, far.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}

func TestProxy(t *testing.T) {
	outside(t)
	t.Parallel()
	l := behind(t)
	proxy := serve(t, "proxy", "-to", l.Addr().String())

	for _, farFirst := range []bool{false, true} {
		both := func() (first, second *net.TCPConn) {
			near, far := pair(t, proxy, l)
			if farFirst {
				return far, near
			}
			return near, far
		}
		// One direction goes on when the other has ended.
		first, second := both()
		say(t, first, "last words")
		require.NoError(t, first.CloseWrite())
		hearAll(t, second, "last words")
		say(t, second, "an answer to that")
		require.NoError(t, second.CloseWrite())
		hearAll(t, first, "an answer to that")

		// A reset is passed on, also behind the end of what one side sends, where no Read returns it.
		first, second = both()
		say(t, first, "hello")
		hear(t, second, "hello")
		require.NoError(t, first.SetLinger(0))
		require.NoError(t, first.Close())
		_, err := second.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)

		first, second = both()
		require.NoError(t, first.CloseWrite())
		hearAll(t, second, "")
		require.NoError(t, first.SetLinger(0))
		require.NoError(t, first.Close())
		exectest.Eventually(t, patience, "a reset behind an end", func() bool { return socketError(t, second) == syscall.EPIPE })
	}

	// A client that does not read delays its own peer alone.
	near, far := pair(t, proxy, l)
	other, otherFar := pair(t, proxy, l)
	data := content(3, 10<<20)
	sent := make(chan error, 1)
	go func() { sent <- errors.Join(written(near, data, 4), near.CloseWrite()) }()
	for range 100 {
		say(t, other, "ping")
		hear(t, otherFar, "ping")
	}
	require.Empty(t, sent, "40 MiB are under way, and nothing reads them")
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.True(t, bytes.Equal(bytes.Repeat(data, 4), got))
	for _, c := range []net.Conn{near, far, other, otherFar} {
		require.NoError(t, c.Close())
	}
	proxy.Stop(t)
	require.NotContains(t, proxy.Said(), "failed")
}

// socketError takes the error that the system has for a connection.
func socketError(t *testing.T, c *net.TCPConn) (err error) {
	raw, fail := c.SyscallConn()
	require.NoError(t, fail)
	require.NoError(t, raw.Control(func(fd uintptr) {
		n, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		err = syscall.Errno(n)
	}))
	return err
}

func TestProxyConnectionRefused(t *testing.T) {
	outside(t)
	t.Parallel()
	to := servertest.Vacant(t).String()
	proxy := serve(t, "proxy", "-to", to)
	c := dial(t, proxy.Addr)
	hearAll(t, c, "")
	require.NoError(t, c.Close()) // the proxy lingers until then
	proxy.Stop(t)
	require.Contains(t, proxy.Said(), "connect to "+to+": connection refused")
}

func written(c net.Conn, content []byte, times int) error {
	for range times {
		if _, err := c.Write(content); err != nil {
			return err
		}
	}
	return nil
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// hearAll wants text and the end.
func hearAll(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}
