package e2e

import (
	"bufio"
	"net"
	"net/http"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// secondAddress returns the second address that a program logs.
func secondAddress(t *testing.T, said func() string) string {
	t.Helper()
	var found [][]string
	exectest.Eventually(t, patience, "two addresses", func() bool {
		found = regexp.MustCompile(`listening on (\S+)\n`).FindAllStringSubmatch(said(), -1)
		return len(found) == 2
	})
	return found[1][1]
}

// refused waits until the server accepts no more.
func refused(t *testing.T, server *exectest.Program) {
	t.Helper()
	exectest.Eventually(t, patience, "new clients are refused", func() bool {
		c, err := net.Dial("tcp", server.Addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// streaming begins to read a stream.
func streaming(t *testing.T, server *exectest.Program, lines string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := dial(t, server.Addr)
	servertest.Send(t, c, "GET /stream?lines="+lines+" HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	body := bufio.NewReader(answer.Body)
	_, err = body.ReadString('\n')
	require.NoError(t, err)
	return c, body
}

// A service of its own tells load balancers that the server is not ready any more, and answers until all else has ended.
func TestTheHealthServiceIsThereToTheLast(t *testing.T) {
	t.Parallel()
	outside(t)
	const ready, healthy = "/readyz", "/healthz"
	server := serve(t, "graceful", "-health", "127.0.0.1:0", "-drain", "20m", "-reactors", "1")
	health := "http://" + secondAddress(t, server.Said)
	require.Equal(t, "200", status(t, health+ready))
	c, body := streaming(t, server, "1000000")
	server.Signal(t, syscall.SIGTERM)
	refused(t, server)
	for range 3 {
		require.Equal(t, "503", status(t, health+ready))
		require.Equal(t, "200", status(t, health+healthy))
		_, err := body.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, c.Close())
	require.Zero(t, server.Exit(t))
	require.Contains(t, server.Said(), "ended in order")
}
