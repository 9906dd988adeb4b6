package httpd_test

import (
	"crypto/tls"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// A transport that ends without close_notify is the work of somebody between the two, who cannot forge a record but can cut
// the connection off at any byte (RFC 8446 6.1). No handler takes a part for the whole.
func TestATruncatedRequestIsNeverWhole(t *testing.T) {
	for _, torn := range []bool{false, true} { // between two records, or within one
		d := newDriver(t)
		d.sessions, d.bare, d.torn = tls.NewLRUClientSessionCache(0), !torn, torn
		for _, says := range []string{get + "Content-Length: 5\n\nhello", coded + "\n5;a\nhello\n0\nSum: 1\n\n", "\n" + get + "\n"} {
			says := raw(says)
			body := strings.Index(says, "\r\n\r\n") + 4
			for n := range len(says) {
				k := &recorder{}
				c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{}).send(says[:n])
				c.finish(io.EOF)
				d.settle()
				require.NotEqual(t, open, c.state, "%q", says[:n])
				switch {
				case n < body:
					require.Empty(t, k.entries, "%q", says[:n])
					require.Empty(t, string(c.out), "%q", says[:n])
				case torn:
					require.Contains(t, k.String(), " failed")
					require.Empty(t, string(c.out), "%q", says[:n])
					require.ErrorIs(t, c.err, io.ErrUnexpectedEOF)
					require.ErrorAs(t, c.err, new(*listener.PeerError), "a service takes it for no failure of its own")
				default:
					require.Contains(t, k.String(), " failed")
					require.Equal(t, "400!", statuses(c.check(t)), "%q", says[:n])
				}
			}
		}
	}
}

// A client that nobody here has written, over sockets.
func TestCurl(t *testing.T) {
	curl := tier.Tool(t, "curl")
	untimed := httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1} // a busy machine is no slow client
	web := &httpd.Server{Timeouts: untimed, Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if w.SwitchProtocols("once", func(c *listener.Conn) act.Action { _, _ = c.WriteString("switched"); return nil }) == nil {
			return nil
		}
		return echo(w, r)
	}}
	body := strings.Repeat("0123456789", 200_000)
	name := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	plain, encrypted := serve(t, web), serve(t, web, secure.Server(tlsConfig(), nil))
	for _, url := range []string{"http://" + plain + "/", "https://" + encrypted + "/"} {
		run := func(arguments ...string) string {
			arguments = append([]string{"-ksS", "--noproxy", "*", "-m", "120"}, arguments...)
			out, err := exec.Command(curl, arguments...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			return string(out)
		}
		require.True(t, body == run("--data-binary", "@"+name, url), "with its length, after 100 (Continue)")
		require.True(t, body == run("-H", "Transfer-Encoding: chunked", "--data-binary", "@"+name, url), "in chunks")
		require.Equal(t, "aaa", run("-d", "a", url, url, url))
		require.Equal(t, "a", run("-0", "-d", "a", url))
		require.Equal(t, "a1.1", run("-w", "%{http_version}", "-d", "a", "--http2", url), "it is agreed on by ALPN or Upgrade")
		out := run("-i", "-H", "Connection: Upgrade", "-H", "Upgrade: once", url)
		require.True(t, strings.HasSuffix(out, "\r\n\r\nswitched"), out)
	}
}
