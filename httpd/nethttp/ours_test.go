package nethttp_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// untimed are the time-outs of servers here: a busy machine is not a slow client.
var untimed = httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}

// run starts a server of this package on one scheduler, whose shutdowns have the given bound. over gets what act.Run
// returns.
func (j *journal) run(a *nethttp.Adapter, cfg *tls.Config, bound time.Duration) (
	address string, order func(), over chan error, err error,
) {
	var filters []listener.Filter
	if cfg != nil {
		filters = append(filters, secure.Server(cfg, nil))
	}
	web := &httpd.Server{Handler: a.Serve, Connect: a.Serve, Timeouts: untimed}
	tcp := &service.Listener{Address: "127.0.0.1:0", Filters: filters, Handler: web.Serve}
	ctx, order := context.WithCancel(context.Background())
	up, over := make(chan struct{}), make(chan error, 1)
	set := act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Time: bound, Drop: true},
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(j), zapcore.InfoLevel))}
	go func() {
		over <- act.Run(ctx, set, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	select {
	case <-up:
		return tcp.Addr().String(), order, over, nil
	case err := <-over:
		order()
		return "", nil, nil, err
	}
}

// ours is the server of this package in the worlds.
func ours(h http.Handler, cfg *tls.Config, j *journal) (string, func() error, error) {
	return start(&nethttp.Adapter{Handler: h}, cfg, j)
}

// inline is the one whose handlers run on the scheduler's thread.
func inline(h http.Handler, cfg *tls.Config, j *journal) (string, func() error, error) {
	return start(&nethttp.Adapter{Handler: h, Inline: true}, cfg, j)
}

func start(a *nethttp.Adapter, cfg *tls.Config, j *journal) (string, func() error, error) {
	address, order, over, err := j.run(a, cfg, patience)
	return address, func() error { order(); return <-over }, err
}

// host is a server of one test.
type host struct {
	*scene
	order func()
	over  chan error // what Run has returned
}

// serve starts a server whose shutdowns have the given bound.
func serve(t testing.TB, a *nethttp.Adapter, bound time.Duration) *host {
	t.Helper()
	h := &host{scene: &scene{TB: t, site: &site{name: t.Name()}}}
	inner := a.Handler
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.running.Add(1)
		defer h.running.Add(-1)
		inner.ServeHTTP(w, r)
	})
	var err error
	h.address, h.order, h.over, err = h.log.run(a, nil, bound)
	require.NoError(t, err)
	t.Cleanup(h.order)
	return h
}

// end shuts the server down, and returns what Run has.
func (h *host) end() error {
	h.order()
	return <-h.over
}
