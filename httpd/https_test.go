package httpd_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/internal/servertest"
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

// secured starts web behind TLS, and returns its address and a config for clients that trust it.
func secured(t testing.TB, web *httpd.Server) (at string, trust *tls.Config) {
	return serve(t, web, secure.Server(tlsConfig(), nil)), trusting()
}

func trusting() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(tlsConfig().Certificates[0].Leaf)
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{"http/1.1"}}
}

// A visitor is a client of crypto/tls that knows how its transport has ended.
type visitor struct {
	*tls.Conn
	*bufio.Reader
	transport *observed
}

// observed is a net.Conn that notes its end.
type observed struct {
	net.Conn
	ended error
}

func (o *observed) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if err != nil {
		o.ended = err
	}
	return n, err
}

func (v *visitor) Read(p []byte) (int, error) { return v.Reader.Read(p) }

func enter(t testing.TB, at string, cfg *tls.Config) *visitor {
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	o := &observed{Conn: c}
	v := &visitor{Conn: tls.Client(o, cfg), transport: o}
	v.Reader = bufio.NewReader(v.Conn)
	require.NoError(t, v.Handshake())
	return v
}

// answer reads one response.
func (v *visitor) answer(t testing.TB) (status int, closes bool, body string) {
	t.Helper()
	r, err := http.ReadResponse(v.Reader, nil)
	require.NoError(t, err)
	content, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, r.Close, string(content)
}

// isClosed requires close_notify and then the end of the transport, with nothing before it.
func (v *visitor) isClosed(t testing.TB) {
	t.Helper()
	rest, err := io.ReadAll(v.Reader)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, v.transport.ended, "the transport has ended without close_notify")
	_, err = v.transport.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func TestTheLastAnswerEndsWithCloseNotify(t *testing.T) {
	at, trust := secured(t, &httpd.Server{Handler: hello})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, says := range []string{get + "Connection: close\n\n", "GET / HTTP/1.0\n\n", "nonsense\n\n"} {
			trust.MaxVersion = version
			v := enter(t, at, trust)
			servertest.Send(t, v, raw(get+"\n"+says))
			status, _, body := v.answer(t)
			require.Equal(t, "200 Hello, World!", fmt.Sprintf("%d %s", status, body))
			_, closes, _ := v.answer(t)
			require.True(t, closes)
			v.isClosed(t)
		}
	}
}

// With TLS the end of the client's side is a message, which Ended notices as well.
func TestCloseNotifyIsTheEndOfAClient(t *testing.T) {
	at, trust := secured(t, &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			if !r.Ended(t) {
				return act.Wait
			}
			_, _ = w.WriteString("ended")
			return act.Done
		})
	}})
	v := enter(t, at, trust)
	servertest.Send(t, v, raw(get+"\n"))
	require.NoError(t, v.CloseWrite())
	_, _, body := v.answer(t)
	require.Equal(t, "ended", body)
	v.isClosed(t)
}

// An order to drain closes idle connections with close_notify; what is under way is answered before.
func TestADrainEndsWithCloseNotify(t *testing.T) {
	begun, finish := make(chan struct{}, 1), make(chan struct{})
	address, stop := start(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if string(r.Path()) == "/" {
			return hello(w, r)
		}
		return act.Seq(act.Func(func(t *act.Task) act.Directive {
			begun <- struct{}{}
			return act.Done
		}), &act.Call[struct{}]{F: func() (struct{}, error) { <-finish; return struct{}{}, nil }}, act.Func(func(*act.Task) act.Directive {
			_, _ = w.WriteString("finished")
			return act.Done
		}))
	}}, secure.Server(tlsConfig(), nil))
	fresh, idle, busy := enter(t, address, trusting()), enter(t, address, trusting()), enter(t, address, trusting())
	servertest.Send(t, idle, raw(get+"\n"))
	idle.answer(t)
	servertest.Send(t, busy, raw("GET /busy HTTP/1.1\nHost: a\n\n"))
	servertest.Receive(t, begun)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	fresh.isClosed(t)
	idle.isClosed(t)
	for _, v := range []*visitor{fresh, idle} {
		_ = v.transport.Close()
	}
	close(finish)
	status, closes, body := busy.answer(t)
	require.Equal(t, "200 true finished", fmt.Sprintf("%d %t %s", status, closes, body))
	busy.isClosed(t)
	_ = busy.transport.Close()
	require.NoError(t, servertest.Receive(t, stopped))
}

// Over TLS the protocol is agreed on by ALPN (RFC 7301): this server knows HTTP/1.1, also for clients without ALPN.
func TestTheProtocolIsNegotiated(t *testing.T) {
	at, trust := secured(t, &httpd.Server{Handler: hello})
	for want, offers := range map[string][]string{"http/1.1": {"h2", "http/1.1"}, "": nil} {
		trust.NextProtos = offers
		v := enter(t, at, trust)
		require.Equal(t, want, v.ConnectionState().NegotiatedProtocol)
		servertest.Send(t, v, raw("GET https://localhost/ HTTP/1.1\nHost: localhost\n\n"))
		status, _, _ := v.answer(t)
		require.Equal(t, 200, status, "an absolute target")
		_ = v.Close()
	}
	trust.NextProtos = []string{"h2"}
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	require.ErrorContains(t, tls.Client(c, trust).Handshake(), "no application protocol")
	_ = c.Close()
}

// More than all buffers hold, and a client that begins to read late: it gets every byte, and the next answer behind it.
func TestALargeAnswerOverTLS(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 512<<10)
	name := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(name, large, 0o600))
	root, err := os.OpenRoot(filepath.Dir(name))
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	var site httpd.Mux
	site.Handle("/whole", func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetBody(large); return nil })
	site.Handle("/files/{path...}", (&files.Server{FS: root.FS()}).Serve)
	at, trust := secured(t, &httpd.Server{Handler: site.Serve})
	for _, path := range []string{"/whole", "/files/large"} {
		v := enter(t, at, trust)
		servertest.Send(t, v, raw("GET "+path+" HTTP/1.1\nHost: a\n\nGET /files/large HTTP/1.1\nHost: a\nRange: bytes=5-9\n\n"))
		time.Sleep(50 * time.Millisecond) // so that the buffers are full
		status, _, body := v.answer(t)
		require.Equal(t, 200, status)
		require.True(t, string(large) == body, path)
		status, _, body = v.answer(t)
		require.Equal(t, "206 56789", fmt.Sprintf("%d %s", status, body))
		_ = v.Close()
	}
}

// net/http keeps its connections, and sends bodies with a length, in chunks, and after 100 (Continue).
func TestAClientOfNetHTTPOverTLS(t *testing.T) {
	at, trust := secured(t, &httpd.Server{Handler: echo})
	transport := &http.Transport{TLSClientConfig: trust, ExpectContinueTimeout: servertest.Timeout, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: servertest.Timeout}
	for i := range 60 {
		body := bytes.Repeat([]byte{byte(i)}, i*i*100)
		sent := io.Reader(bytes.NewReader(body))
		if i%2 == 0 {
			sent = io.MultiReader(sent) // of unknown length
		}
		request, err := http.NewRequest("POST", "https://"+at+"/echo", sent)
		require.NoError(t, err)
		if i%3 == 0 {
			request.Header.Set("Expect", "100-continue")
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.True(t, bytes.Equal(body, got), "%d bytes", len(body))
		require.Equal(t, "http/1.1", response.TLS.NegotiatedProtocol)
	}
}

func TestCurlOverTLS(t *testing.T) {
	curl := tier.Tool(t, "curl")
	at, _ := secured(t, &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if w.SwitchProtocols("once", func(c *listener.Conn) act.Action { _, _ = c.WriteString("switched"); return nil }) == nil {
			return nil
		}
		return echo(w, r)
	}})
	run := func(arguments ...string) string {
		out, err := exec.Command(curl, append([]string{"-ksS", "--noproxy", "*", "-m", "20"}, arguments...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	url := "https://" + at + "/"
	body := strings.Repeat("0123456789", 200_000)
	name := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	require.True(t, body == run("--data-binary", "@"+name, url), "with its length, after 100 (Continue)")
	require.True(t, body == run("-H", "Transfer-Encoding: chunked", "--data-binary", "@"+name, url), "in chunks")
	require.True(t, body == run("--tls-max", "1.2", "--data-binary", "@"+name, url), "over TLS 1.2")
	require.Equal(t, "aaa", run("-d", "a", url, url, url))
	require.Equal(t, "a", run("-0", "-d", "a", url))
	require.Equal(t, "a1.1", run("-w", "%{http_version}", "-d", "a", "--http2", url))
	out := run("-i", "-H", "Connection: Upgrade", "-H", "Upgrade: once", url)
	require.True(t, strings.HasSuffix(out, "\r\n\r\nswitched"), out)
}
