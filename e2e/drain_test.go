package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/servertest"
)

// TestAnEndSaysWhatItWaitsFor has a request that takes long, a client that does not read, one that does not close, and a client
// of WebSocket, and a server that waits for all of them in vain.
func TestAnEndSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	outside(t)
	server := serve(t, "graceful", "-reactors", "2", "-announce", "1500ms", "-spread", "1500ms", "-drain", "4500ms")
	from := map[string]string{}
	talks := func(who, request, answer string) {
		c := dial(t, server.Addr)
		from[who] = c.LocalAddr().String()
		servertest.Send(t, c, request)
		servertest.Expect(t, c, answer)
	}
	const begin, first = " HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	talks("slow", first+"GET /slow?for=1m"+begin, "HTTP/1.1 200 OK\r\n") // with the first answer the second request has begun
	talks("large", "GET /large"+begin, "HTTP/1.1 200 OK\r\n")
	ws := dial(t, server.Addr)
	upgrade(t, ws, "")
	from["ws"] = ws.LocalAddr().String()

	closed := dial(t, server.Addr) // but not by the client, which has its answer while the order is in force
	from["closed"] = closed.LocalAddr().String()
	servertest.Send(t, closed, "GET /slow?for=2200ms"+begin)
	server.Signal(t, syscall.SIGTERM)
	answer, err := io.ReadAll(closed)
	require.NoError(t, err)
	require.Contains(t, string(answer), "200 OK")
	require.Zero(t, server.Exit(t))

	said := server.Said()
	says := func(n int, pattern string) {
		t.Helper()
		pattern = strings.ReplaceAll(pattern, "ADDR", regexp.QuoteMeta(server.Addr))
		for who, peer := range from {
			pattern = strings.ReplaceAll(pattern, "<"+who+">", regexp.QuoteMeta(peer))
		}
		require.Len(t, regexp.MustCompile(`(?m)`+pattern).FindAllString(said, -1), n, "%s\n%s", pattern, said)
	}
	says(1, `INFO\sending for 1(\.\d)?s, announced, for 3(\.\d)?s more at most: 4 tasks, 3 demons \(.*4 × tcp ADDR.*\); 0 tasks ended since the last report; the oldest: `)
	says(1, `: 3 tasks, 1 lingering close \(3 × tcp ADDR\); 1 task ended since the last report; the oldest: httpd: GET /(slow|large) of tcp ADDR, peer (<slow>|<large>), still for `)
	says(1, `WARN\scut at the drain limit of 4\.5s.*"shutdown: dropped 3 tasks, 1 lingering close`)
	says(4, `WARN\scut: `)
	says(1, `WARN\scut: httpd: GET /slow of tcp ADDR, peer <slow>, still for [4-9](\.\d)?s, waits for the end of <slow>, a timer due in `)
	says(1, `WARN\scut: httpd: GET /large of tcp ADDR, peer <large>, still for .*, room: \d+ bytes queued for <large>, a timer due in `)
	says(1, `WARN\scut: \S+/site\.echo\.func1 of tcp ADDR, peer <ws>, still for .*, waits for .*input from <ws>, a timer due in `)
	says(1, `WARN\scut: a closed connection of tcp ADDR, peer <closed>, still for .*, waits for its peer to close, a timer due in `)
}

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

// A service of its own tells load balancers that the server is not ready any more, while all else goes on, and answers until all
// else has ended.
func TestTheHealthServiceIsThereToTheLast(t *testing.T) {
	t.Parallel()
	outside(t)
	const ready, healthy = "/readyz", "/healthz"
	start := func(flags ...string) (server *exectest.Program, health string) {
		server = serve(t, "graceful", append(flags, "-health", "127.0.0.1:0", "-drain", "20m", "-reactors", "1")...)
		health = "http://" + secondAddress(t, server.Said)
		require.Equal(t, "200", status(t, health+ready))
		return server, health
	}
	t.Run("announced", func(t *testing.T) {
		server, health := start("-announce", "10m")
		server.Signal(t, syscall.SIGTERM)
		exectest.Eventually(t, patience, "it is not ready", func() bool { return status(t, health+ready) == "503" })
		require.Equal(t, "200", status(t, health+healthy))
		require.Equal(t, "200", status(t, "http://"+server.Addr+"/"), "it still accepts and serves")
		server.Signal(t, syscall.SIGTERM)
		require.Zero(t, server.Exit(t))
	})
	t.Run("in force", func(t *testing.T) {
		server, health := start()
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
	})
}

// What becomes of a connection at rest, and of one in the middle of an answer.
func TestAtEnd(t *testing.T) {
	t.Parallel()
	outside(t)
	ask := func(t *testing.T, c net.Conn) *http.Response {
		servertest.Send(t, c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		_, err = io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer
	}
	const last = "line 20 of 20"
	whole := func(t *testing.T, body io.Reader) {
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Contains(t, string(text), last)
	}
	for word, check := range map[string]func(t *testing.T, rests net.Conn, body io.Reader){
		"request": func(t *testing.T, rests net.Conn, body io.Reader) {
			servertest.ExpectEOF(t, rests)
			whole(t, body)
		},
		"finish": func(t *testing.T, rests net.Conn, body io.Reader) {
			whole(t, body)
			require.False(t, ask(t, rests).Close, "it is told nothing")
		},
		"discard": func(t *testing.T, rests net.Conn, body io.Reader) {
			_, err := rests.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
			text, err := io.ReadAll(body)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			require.NotContains(t, string(text), last)
		},
	} {
		t.Run(word, func(t *testing.T) {
			server := serve(t, "graceful", "-at-end", word, "-drain", "20m", "-reactors", "1")
			rests := dial(t, server.Addr)
			ask(t, rests)
			c, body := streaming(t, server, "20")
			server.Signal(t, syscall.SIGTERM)
			refused(t, server)
			check(t, rests, body)
			require.NoError(t, rests.Close())
			require.NoError(t, c.Close())
			require.Zero(t, server.Exit(t))
			require.Contains(t, server.Said(), "ended in order")
		})
	}
}
