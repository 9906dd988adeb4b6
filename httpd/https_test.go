package httpd_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// encryption is the filter of a server that speaks TLS.
func encryption(t *testing.T) listener.Filter {
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	return secure.Server(&tls.Config{Certificates: []tls.Certificate{cert}}, nil)
}

// torn is a connection that loses the last byte of what is written.
type torn struct{ net.Conn }

func (c torn) Write(p []byte) (int, error) { return c.Conn.Write(p[:len(p)-1]) }

// Somebody between the two cannot forge a record, but can cut the connection off at any byte (RFC 8446 6.1). No handler takes a
// part for the whole. TestRequestsThatAreCutOff has all other places.
func TestARecordThatIsCutOffIsNoEndOfABody(t *testing.T) {
	got, encrypted := make(chan error, 1), make(chan bool, 1)
	logs := func(_ *httpd.Response, r *httpd.Request) { encrypted <- r.Conn().Internals().EndsInBand() }
	web := &httpd.Server{OnResponse: logs, Handler: func(_ *httpd.Response, r *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := r.Body.Peek()
			r.Body.Discard(len(in))
			if _, blocked := err.(act.Blocked); !blocked && err != nil {
				got <- err
			}
			return listener.Next(t, err)
		})
	}}
	tcp, err := net.Dial("tcp", serve(t, web, encryption(t)))
	require.NoError(t, err)
	defer tcp.Close()
	out := tls.Client(&struct{ net.Conn }{tcp}, &tls.Config{InsecureSkipVerify: true})
	_, err = io.WriteString(out, raw(post+"Content-Length: 6\n\nhello"))
	require.NoError(t, err)
	out.NetConn().(*struct{ net.Conn }).Conn = torn{tcp}
	_, err = out.Write([]byte("!"))
	require.NoError(t, err)
	require.NoError(t, tcp.(*net.TCPConn).CloseWrite())
	err = servertest.Receive(t, got)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorAs(t, err, new(*listener.PeerError), "a service takes it for no failure of its own")
	require.True(t, servertest.Receive(t, encrypted), "an access log says so")
}

// A client that nobody here has written, over sockets.
func TestCurl(t *testing.T) {
	curl := tier.Tool(t, "curl")
	untimed := httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1} // a busy machine is not a slow client
	web := &httpd.Server{Timeouts: untimed, Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if w.SwitchProtocols("once", func(c *listener.Conn) act.Action { _, _ = c.WriteString("switched"); return nil }) == nil {
			return nil
		}
		return echo(w, r)
	}}
	body := strings.Repeat("0123456789", 200_000)
	name := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	encrypted := serve(t, web, encryption(t))
	for _, url := range []string{"http://" + serve(t, web) + "/", "https://" + encrypted + "/"} {
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
