// Package fake starts servers in the process of a test, so that they may do what no server should. Only tests import it.
package fake

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/bench/internal/server"
)

// Listen returns a listener on a free port.
func Listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// Serve calls f with each connection that l accepts, on a goroutine of its own, and closes the connection behind it. With
// the test l is closed, and every f has to return.
func Serve(t testing.TB, l net.Listener, f func(net.Conn)) *server.Process {
	var all sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				f(c)
			})
		}
	})
	return &server.Process{Name: "fake", Port: l.Addr().(*net.TCPAddr).Port, PID: os.Getpid()}
}

// Echo returns an echo of messages of size bytes, of which spoil changes the nth of each connection. If what it returns is
// shorter, the connection is closed behind it.
func Echo(size, nth int, spoil func([]byte) []byte) func(net.Conn) {
	return func(c net.Conn) {
		for i := 0; ; i++ {
			m := make([]byte, size)
			if _, err := io.ReadFull(c, m); err != nil {
				return
			}
			if i == nth {
				m = spoil(m)
			}
			if _, err := c.Write(m); err != nil || len(m) < size {
				return
			}
		}
	}
}
