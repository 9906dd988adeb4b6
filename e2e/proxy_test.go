package e2e

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
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

// A reset is passed on, even after one side has ended its stream, when no Read returns the reset. TestWorldProxy shows
// what else a proxy passes on.
func TestProxyPassesOnAReset(t *testing.T) {
	outside(t)
	t.Parallel()
	l := behind(t)
	proxy := serve(t, "proxy", "-to", l.Addr().String())
	for _, farFirst := range []bool{false, true} {
		for _, ended := range []bool{false, true} {
			first, second := pair(t, proxy, l)
			if farFirst {
				first, second = second, first
			}
			say(t, first, "last words")
			if ended {
				require.NoError(t, first.CloseWrite())
				hearAll(t, second, "last words")
			} else {
				hear(t, second, "last words")
			}
			require.NoError(t, first.SetLinger(0))
			require.NoError(t, first.Close())
			if ended {
				exectest.Eventually(t, patience, "a reset behind an end", func() bool { return socketError(t, second) == syscall.EPIPE })
				continue
			}
			_, err := second.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
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
