package nethttp_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

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

// ours is a server of this package.
func ours(h http.Handler, cfg *tls.Config, j *journal) (string, func() error, error) {
	var filters []listener.Filter
	if cfg != nil {
		filters = append(filters, secure.Server(cfg, nil))
	}
	web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: h}).Serve}
	tcp := &service.TCP{Address: "127.0.0.1:0", Filters: filters, Handler: web.Serve}
	ctx, cancel := context.WithCancel(context.Background())
	up, over := make(chan struct{}), make(chan error, 1)
	set := act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Time: 5 * time.Second, Drop: true},
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(j), zapcore.InfoLevel))}
	go func() {
		over <- act.Run(ctx, set, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	select {
	case <-up:
		return tcp.Addr().String(), func() error { cancel(); return <-over }, nil
	case err := <-over:
		cancel()
		return "", nil, err
	}
}
