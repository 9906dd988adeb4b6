package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
)

const (
	answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n"
	last   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nConnection: close\r\n\r\nHello, world!\n"
	large  = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

func TestHello(t *testing.T) {
	t.Parallel()
	outside(t)
	underEachIdle(t, answers)
}

func answers(t *testing.T, idle idle) {
	server := serve(t, "hello", idle...)
	url := "http://" + server.Addr + "/"

	t.Run("curl", func(t *testing.T) {
		for _, row := range []struct {
			arguments, want string
		}{
			{url, "Hello, world!\n"},
			{url + " " + url + " " + url, strings.Repeat("Hello, world!\n", 3)},
			{"-0 " + url, "Hello, world!\n"},
			{"-d body " + url, "Hello, world!\n"},
			{"-I -w %{http_code} -o /dev/null " + url, "200"},
		} {
			out, err := exec.Command(tier.Tool(t, "curl"), strings.Fields("-sS --noproxy * --max-time 20 "+row.arguments)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, row.want, string(out), row.arguments)
		}
	})

	t.Run("a client that keeps its connections", func(t *testing.T) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client := http.Client{Transport: transport, Timeout: patience}
		for range 100 {
			response, err := client.Get(url)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, "Hello, world!\n", string(body))
		}
	})

	for _, row := range []struct{ name, request, answer string }{
		{"an end without a request", "", ""},
		{"half a request", "GET / HTTP/1.1\r\nHost: x\r\n", ""},
		{"blank lines before a request", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", answer},
		{"lines that end in LF alone", "GET / HTTP/1.1\n\n", answer},
		{"several requests at once", strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1000), strings.Repeat(answer, 1000)},
		{"the last request", "GET / HTTP/1.1\r\nconnection: CLOSE\r\n\r\nGET / HTTP/1.1\r\n\r\n", last},
		{"an old client", "GET / HTTP/1.0\r\n\r\n", last},
		{"a request with a body", "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", last},
		{"a long line", "GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\n\r\n", large},
		{"many lines", "GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 2000) + "\r\n", large},
		{"blank lines without end", strings.Repeat("\r\n", 5000), large},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := dial(t, server.Addr)
			_, err := io.WriteString(c, row.request)
			require.NoError(t, err)
			require.NoError(t, c.CloseWrite())
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, row.answer, string(got))
		})
	}

	t.Run("a request byte by byte", func(t *testing.T) {
		c := dial(t, server.Addr)
		for _, b := range []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n") {
			_, err := c.Write([]byte{b})
			require.NoError(t, err)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 200 OK\r\n", line)
	})

	server.Stop(t)
	require.NotContains(t, server.Said(), "failed")
}
