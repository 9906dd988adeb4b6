package httpd_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// serve runs a server for the length of the test and returns its address.
func serve(t testing.TB, web *httpd.Server) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tcp := &service.TCP{Address: "127.0.0.1:0", Handler: web.Serve}
	up, over := make(chan struct{}), make(chan error, 1)
	cfg := act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Time: 5 * time.Second, Drop: true}}
	go func() {
		over <- act.Run(ctx, cfg, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	select {
	case <-up:
	case err := <-over:
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-over)
	})
	return tcp.Addr().String()
}

var plainText = httpd.NewField("Content-Type", "text/plain; charset=utf-8")

func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	w.AddField(plainText)
	_, _ = w.WriteString("Hello, World!")
	return nil
}

func echo(w *httpd.Response, r *httpd.Request) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := r.Body.Peek()
		if err != nil {
			return listener.Next(t, err)
		}
		n, err := w.Write(in)
		r.Body.Discard(n)
		return listener.Next(t, err)
	})
}

func TestHello(t *testing.T) {
	at := serve(t, &httpd.Server{Handler: hello})
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for range 3 {
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, "Hello, World!", string(body))
		t.Log(res)
	}
}

func TestEcho(t *testing.T) {
	at := serve(t, &httpd.Server{Handler: echo})
	for _, n := range []int{0, 1, 5000, 1 << 20} {
		text := strings.Repeat("x", n)
		for _, body := range []io.Reader{strings.NewReader(text), struct{ io.Reader }{strings.NewReader(text)}} {
			res, err := http.Post("http://"+at, "text/plain", body)
			require.NoError(t, err)
			got, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
			t.Log(res.Proto, res.Header, res.ContentLength)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
