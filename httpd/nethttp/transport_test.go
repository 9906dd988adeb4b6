package nethttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// outward is an http.Client over a Transport on two schedulers, and a server of net/http.
func outward(t *testing.T, h http.HandlerFunc) (*http.Client, *httptest.Server) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return over(t, &nethttp.Transport{}), server
}

func over(t *testing.T, tr *nethttp.Transport) *http.Client {
	run := servertest.Start(t, act.Config{Schedulers: 2}, tr.Setup)
	t.Cleanup(func() {
		run.Group.Shutdown(servertest.Drain)
		require.NoError(t, run.End())
	})
	return &http.Client{Transport: tr}
}

func TestAnHTTPClientOverATransport(t *testing.T) {
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/from":
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "v"})
			http.Redirect(w, r, "/to?a=b", http.StatusTemporaryRedirect)
		case "/to":
			c, _ := r.Cookie("c")
			var v map[string]int
			_ = json.NewDecoder(r.Body).Decode(&v)
			fmt.Fprint(w, r.Method, r.URL.RawQuery, c.Value, v["x"], r.ContentLength, r.UserAgent(), r.Host)
		}
	})
	web.Jar, _ = cookiejar.New(nil)
	answer, err := web.Post(server.URL+"/from", "application/json", strings.NewReader(`{"x":1}`))
	require.NoError(t, err)
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "POSTa=bv1 7Go-http-client/1.1"+answer.Request.URL.Host, string(content))
	require.Equal(t, "200 OK HTTP/1.1", answer.Status+" "+answer.Proto)
	require.Equal(t, int64(len(content)), answer.ContentLength)
}

// send sends a request, and fails the test if there is no answer.
func send(t *testing.T, web *http.Client, req *http.Request) *http.Response {
	answer, err := web.Do(req)
	require.NoError(t, err)
	return answer
}

func request(t *testing.T, ctx context.Context, method, url string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	require.NoError(t, err)
	return req
}

// The handler answers each piece of the request, before it has all of it.
func TestContentIsStreamedBothWaysWithTrailers(t *testing.T) {
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Got")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		p := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(p)
			_, _ = w.Write(p[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-Got", r.Trailer.Get("X-Sum"))
	})
	in, out := io.Pipe()
	req := request(t, t.Context(), "POST", server.URL, in)
	req.Trailer = http.Header{"X-Sum": nil}
	answer := send(t, web, req)
	require.Equal(t, http.Header{"X-Got": nil}, answer.Trailer)
	go func() {
		for _, n := range []int{1, 100, 1 << 20} {
			_, _ = out.Write([]byte(strings.Repeat("x", n)))
			if n == 1 {
				continue
			}
		}
		req.Trailer.Set("X-Sum", "7")
		_ = out.Close()
	}()
	first := make([]byte, 1)
	_, err := io.ReadFull(answer.Body, first)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.Equal(t, int64(100+1<<20), n)
	require.Equal(t, "7", answer.Trailer.Get("X-Got"))
	require.NoError(t, answer.Body.Close())
}

func TestCancellingAContextReachesTheServer(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{}, 1)
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/head" {
			_, _ = w.Write([]byte("first"))
			_ = http.NewResponseController(w).Flush()
		}
		begun <- struct{}{}
		if r.Method == "GET" {
			<-r.Context().Done()
		} else {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		gone <- struct{}{}
	})
	cause := errors.New("why")

	// Before the head, also while the body of the request is being read.
	in, out := io.Pipe()
	for _, body := range []io.ReadCloser{nil, in} {
		ctx, cancel := context.WithCancelCause(t.Context())
		req := request(t, ctx, "GET", server.URL, body)
		if body == in {
			req.Method = "POST"
		} else {
			req.Body = nil
		}
		go func() {
			<-begun
			cancel(cause)
		}()
		_, err := web.Do(req)
		require.ErrorIs(t, err, cause)
		<-gone
	}
	_, err := out.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)

	// After the head.
	ctx, cancel := context.WithCancelCause(t.Context())
	answer := send(t, web, request(t, ctx, "GET", server.URL+"/head", nil))
	<-begun
	cancel(cause)
	<-gone
	_, err = io.ReadAll(answer.Body)
	require.ErrorIs(t, err, cause)
	require.NoError(t, answer.Body.Close())

	// Close of a body does the same.
	answer = send(t, web, request(t, t.Context(), "GET", server.URL+"/head", nil))
	<-begun
	require.NoError(t, answer.Body.Close())
	<-gone
	_, err = answer.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
}

func TestARequestWithExpect(t *testing.T) {
	in, out := io.Pipe()
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		go func() { // nobody reads the content before the server asks for it
			_, _ = out.Write([]byte("content"))
			_ = out.Close()
		}()
		_, _ = io.Copy(w, r.Body)
	})
	req := request(t, t.Context(), "PUT", server.URL, in)
	req.Header.Set("Expect", "100-continue")
	answer := send(t, web, req)
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "200 OK content", answer.Status+" "+string(content))
	require.NoError(t, answer.Body.Close())
}

func TestAServerSwitchesProtocols(t *testing.T) {
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) {
		c, both, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		_, _ = io.WriteString(c, raw("HTTP/1.1 101 Switching\nConnection: upgrade\nUpgrade: "+r.Header.Get("Upgrade")+"\n\nhello\n"))
		_, _ = io.Copy(c, both)
	})
	req := request(t, t.Context(), "GET", server.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	answer := send(t, web, req)
	require.Equal(t, "101 Switching Protocols echo", answer.Status+" "+answer.Header.Get("Upgrade"))
	both := answer.Body.(io.ReadWriteCloser)
	_, err := io.WriteString(both, "line\n")
	require.NoError(t, err)
	lines := bufio.NewReader(both)
	for _, want := range []string{"hello\r\n", "line\n"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line)
	}
	require.NoError(t, both.Close())
}

func TestABodyHasTheLengthThatTheRequestSays(t *testing.T) {
	web, server := outward(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for _, length := range []int64{6, 8} {
		for _, whole := range []bool{true, false} {
			req := request(t, t.Context(), "PUT", server.URL, strings.NewReader("content"))
			if req.ContentLength = length; !whole {
				req.GetBody = nil
			}
			_, err := web.Do(req)
			if whole {
				require.ErrorContains(t, err, "longer or shorter")
			} else {
				require.ErrorContains(t, err, map[int64]string{6: "more", 8: "less"}[length])
			}
		}
	}
	for name, value := range map[string]string{"A b": "c", "A": "b\nc"} {
		req := request(t, t.Context(), "GET", server.URL, nil)
		req.Header[name] = []string{value}
		_, err := web.Do(req)
		require.ErrorContains(t, err, "field")
	}
}

// endless is content without an end, until it is closed.
type endless struct{ closed chan struct{} }

func (e endless) Read(p []byte) (int, error) { return len(p), nil }
func (e endless) Close() error               { close(e.closed); return nil }

func TestAServerAnswersBeforeItHasTheContent(t *testing.T) {
	web, server := outward(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	e := endless{make(chan struct{})}
	answer := send(t, web, request(t, t.Context(), "PUT", server.URL, e))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
	<-e.closed
}

// A connection is used again, unless the request says close; it is closed by CloseIdleConnections.
func TestConnectionsOfATransport(t *testing.T) {
	states := make(chan http.ConnState, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Close, strings.Repeat("x", int(r.ContentLength)))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew || s == http.StateClosed {
			states <- s
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	tr := &nethttp.Transport{}
	tr.Client.TLS = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	web := over(t, tr)
	for i := range 10 {
		answer := send(t, web, request(t, t.Context(), "POST", server.URL, strings.NewReader(strings.Repeat("x", 10000*i))))
		require.True(t, answer.TLS.HandshakeComplete)
		content, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Len(t, content, len("false")+10000*i)
		require.NoError(t, answer.Body.Close())
	}
	web.CloseIdleConnections()
	for _, want := range []http.ConnState{http.StateNew, http.StateClosed} {
		require.Equal(t, want, servertest.Receive(t, states))
	}
	req := request(t, t.Context(), "GET", server.URL, nil)
	req.Close = true
	answer := send(t, web, req)
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "true", string(content))
	for _, want := range []http.ConnState{http.StateNew, http.StateClosed} {
		require.Equal(t, want, servertest.Receive(t, states))
	}
	require.Empty(t, states)
}

// What waits for schedulers that have ended fails.
func TestATransportWhoseSchedulersHaveEnded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("first"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	tr := &nethttp.Transport{}
	web := &http.Client{Transport: tr}
	_, err := web.Get(server.URL)
	require.ErrorContains(t, err, "Setup")
	run := servertest.Start(t, act.Config{Schedulers: 1}, tr.Setup)
	run.On(0, func(*act.Scheduler) {
		require.PanicsWithValue(t, "nethttp: RoundTrip on the thread of a scheduler, which must not wait: use a client.Call",
			func() { _, _ = web.Get(server.URL) })
	})
	answer, err := web.Get(server.URL)
	require.NoError(t, err)
	run.Group.Shutdown(servertest.Cut)
	_, err = io.ReadAll(answer.Body)
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, answer.Body.Close())
	require.Error(t, run.End())
	late := make(chan error)
	go func() { _, err := web.Get(server.URL); late <- err }()
	_ = run.Group.Close()
	require.ErrorIs(t, servertest.Receive(t, late), act.ErrClosed)
}
