package httpd_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// start runs a server on a real socket, behind filters. It returns its address, and a function that ends it.
func start(web *httpd.Server, filters ...listener.Filter) (address string, stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	tcp := &service.Listener{Address: "127.0.0.1:0", Filters: filters, Handler: web.Serve}
	up, over := make(chan struct{}), make(chan error, 1)
	cfg := act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Time: servertest.Timeout, Drop: true}}
	go func() {
		over <- act.Run(ctx, cfg, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	select {
	case <-up:
	case err := <-over:
		panic(err)
	}
	return tcp.Addr().String(), func() error {
		cancel()
		return <-over
	}
}

// serve runs a server for the length of the test and returns its address.
func serve(t testing.TB, web *httpd.Server, filters ...listener.Filter) string {
	address, stop := start(web, filters...)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return address
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
