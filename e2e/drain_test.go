package e2e

import (
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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
	says(1, `WARN\scut: httpd: GET /slow of tcp ADDR, peer <slow>, still for [45](\.\d)?s, waits for the end of <slow>, a timer due in `)
	says(1, `WARN\scut: httpd: GET /large of tcp ADDR, peer <large>, still for .*, room: \d+ bytes queued for <large>, a timer due in `)
	says(1, `WARN\scut: \S+/site\.echo\.func1 of tcp ADDR, peer <ws>, still for .*, waits for .*input from <ws>, a timer due in `)
	says(1, `WARN\scut: a closed connection of tcp ADDR, peer <closed>, still for .*, waits for its peer to close, a timer due in `)
}
