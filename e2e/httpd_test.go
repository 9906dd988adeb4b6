package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestSite(t *testing.T) {
	outside(t)
	underEachIdle(t, func(t *testing.T, idle idle) {
		root := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(root, "large.bin"), content(1, 3<<20), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(root, "small.txt"), []byte("a small file\n"), 0o644))
		visited(t, serve(t, "httpd", idle.with("-root", root)...), "http://", root)
		if idle[1] == "interrupt" {
			t.Run("over TLS", func(t *testing.T) {
				visited(t, serve(t, "httpd", idle.with("-root", root, "-tls-self")...), "https://", root)
			})
		}
	})
}

// A load balancer that asks hears of the end while it is announced, and clients are served until then and after.
func TestReadiness(t *testing.T) {
	outside(t)
	underEachIdle(t, func(t *testing.T, idle idle) {
		server := serve(t, "httpd", idle.with("-announce", "10m", "-drain", "20m")...)
		url := "http://" + server.Addr
		require.Equal(t, "ok\n", curl(t, url+"/readyz"))
		server.Signal(t, syscall.SIGTERM)
		exectest.Eventually(t, patience, "it is not ready", func() bool { return status(t, url+"/readyz") == "503" })
		require.Equal(t, "the server is about to end\n", curl(t, url+"/readyz"))
		require.Equal(t, "200", status(t, url+"/healthz"))
		require.Equal(t, "Hello, World!", curl(t, url+"/"))
		server.Signal(t, syscall.SIGTERM)
		server.Exit(t)
	})
}

// An end that is only announced is taken back by a signal, as often as one likes, and a load balancer hears of that.
func TestAnEndIsWithdrawn(t *testing.T) {
	outside(t)
	server := serve(t, "graceful", "-announce", "10m", "-drain", "20m", "-withdraw-on", "USR1", "-upgrade-on", "WINCH", "-reactors", "2")
	answers := func(code string) {
		t.Helper()
		exectest.Eventually(t, patience, "/readyz says "+code, func() bool {
			return status(t, "http://"+server.Addr+"/readyz") == code
		})
	}
	for range 2 {
		server.Signal(t, syscall.SIGTERM)
		answers("503")
		server.Signal(t, syscall.SIGUSR1)
		answers("200")
	}
	server.Signal(t, syscall.SIGUSR1)
	exectest.Eventually(t, patience, "a word that there is no end", func() bool {
		return strings.Contains(server.Said(), "there is no end that is only announced")
	})
	server.Signal(t, syscall.SIGTERM)
	answers("503")
	server.Signal(t, syscall.SIGWINCH)
	exectest.Eventually(t, patience, "a word that there is no upgrade", func() bool {
		return strings.Contains(server.Said(), "upgrade: this program is ending")
	})
	server.Signal(t, syscall.SIGTERM)
	require.Zero(t, server.Exit(t))
	require.Equal(t, 2, strings.Count(server.Said(), "the end is withdrawn"))
}

func visited(t *testing.T, server *exectest.Program, scheme, root string) {
	t.Run("curl", func(t *testing.T) { curled(t, scheme+server.Addr, root) })
	t.Run("a client of net/http", func(t *testing.T) { kept(t, scheme+server.Addr) })
	t.Run("raw bytes", func(t *testing.T) { spoken(t, scheme, server.Addr) })
	server.Stop(t)
	require.NotContains(t, server.Said(), "failed")
}

// status returns the status code of an answer.
func status(t *testing.T, url string) string {
	t.Helper()
	return curl(t, "-o", "/dev/null", "-w", "%{http_code}", url)
}

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--noproxy", "*", "--max-time", "20"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func curled(t *testing.T, url, root string) {
	large := filepath.Join(root, "large.bin")
	require.Equal(t, "Hello, World!", curl(t, url+"/"))
	require.Equal(t, strings.Repeat("Hello, World!", 3), curl(t, url+"/", url+"/", url+"/"))
	require.Equal(t, "Hello, World!", curl(t, "-0", url+"/"))
	require.Regexp(t, `(?s)^HTTP/1.1 200 OK\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\nContent-Length: 13\r\n`+
		`Content-Type: text/plain; charset=utf-8\r\n\r\n$`, curl(t, "-I", url+"/"))

	whole := string(content(1, 3<<20))
	require.True(t, whole == curl(t, "--data-binary", "@"+large, url+"/echo"), "with its length, after 100 (Continue)")
	require.True(t, whole == curl(t, "-H", "Transfer-Encoding: chunked", "--data-binary", "@"+large, url+"/echo"), "in chunks")
	require.Empty(t, curl(t, "-d", "", url+"/echo"))

	require.Regexp(t, `^HTTP/1.1 405 .*\r\n(?s:.*)Allow: GET, HEAD\r\n`, curl(t, "-i", "-X", "DELETE", url+"/"))
	require.Regexp(t, `^HTTP/1.1 405 .*\r\n(?s:.*)Allow: POST\r\n`, curl(t, "-i", url+"/echo"))
	require.Regexp(t, `^HTTP/1.1 404 `, curl(t, "-i", url+"/anything/else"))
	require.Regexp(t, `^HTTP/1.1 501 `, curl(t, "-i", "-X", "BREW", url+"/"))

	require.True(t, whole == curl(t, url+"/files/large.bin"))
	require.True(t, whole[1<<20:2<<20] == curl(t, "-r", "1048576-2097151", url+"/files/large.bin"))
	require.Equal(t, "a small file\n", curl(t, url+"/files/small.txt"))
	require.Regexp(t, `^HTTP/1.1 404 `, curl(t, "-i", "--path-as-is", url+"/files/../main.go"))
	date := curl(t, "-o", filepath.Join(t.TempDir(), "-"), "-w", "%header{last-modified}", url+"/files/small.txt")
	require.Regexp(t, `^HTTP/1.1 304 `, curl(t, "-i", "-H", "If-Modified-Since: "+date, url+"/files/small.txt"))
}

// kept uses connections again.
func kept(t *testing.T, url string) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: patience}
	for i := range 100 {
		body := content(1, i*100)
		sent := io.Reader(bytes.NewReader(body))
		if i%2 == 0 {
			sent = io.MultiReader(sent) // of no known length: in chunks
		}
		response, err := client.Post(url+"/echo", "text/plain", sent)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.True(t, bytes.Equal(body, got))
	}
}

// spoken sends bytes that no client library would.
func spoken(t *testing.T, scheme, at string) {
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, row := range []struct {
		name, request string
		statuses      string
	}{
		{"nothing", "", ""},
		{"half a head", "GET / HTTP/1.1\r\nHost:", ""},
		{"several at once", strings.Repeat(get, 100), strings.Repeat("200 ", 100)},
		{"a good one and a bad one", get + "GET / HTTP/1.1\r\n\r\n" + get, "200 400 "},
		{"no client of ours", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", "400 "},
		{"the next version", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 "},
		{"a large head", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 65<<10) + "\r\n\r\n", "431 "},
		{"a long line", "GET /" + strings.Repeat("x", 17<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "414 "},
		{"two lengths", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx" + get, "400 "},
		{"a coding", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501 "},
		{"an expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n", "417 "},
		{"the last one", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + get, "200 "},
		{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n" + get, "200 "},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c interface {
				io.ReadWriter
				CloseWrite() error
			} = dial(t, at)
			if scheme == "https://" {
				over := tls.Client(c.(net.Conn), &tls.Config{InsecureSkipVerify: true})
				require.NoError(t, over.Handshake())
				c = over
			}
			_, err := io.WriteString(c, row.request)
			require.NoError(t, err)
			require.NoError(t, c.CloseWrite())
			var statuses strings.Builder
			for in := bufio.NewReader(c); ; {
				response, err := http.ReadResponse(in, nil)
				if err != nil {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF, "behind the last one")
					break
				}
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
				require.NotEmpty(t, response.Header.Get("Date"))
				statuses.WriteString(response.Status[:4])
			}
			require.Equal(t, row.statuses, statuses.String())
		})
	}
}

func TestHTTPDInvalidArguments(t *testing.T) {
	outside(t)
	for _, row := range []struct {
		arguments string
		status    int
		says      string
	}{
		{"-root /nowhere/at/all", 2, "no such file"},
		{"-addr nonsense", 1, "nonsense"},
		{"further", 2, "unexpected argument"},
		{"-access-log-format xml", 2, "is not combined, common or json"},
		{"-access-log /nowhere/at/all", 1, "cannot open the access log: open /nowhere/at/all: no such file or directory"},
	} {
		server := run(t, "httpd", nil, strings.Fields(row.arguments)...)
		require.Equal(t, row.status, server.Exit(t))
		require.Contains(t, server.Said(), row.says)
	}
}
