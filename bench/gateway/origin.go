package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// event is what a stream begins with. Nothing follows.
const event = "data: hello\n\n"

// long is the content of /long: 1 MiB, in which a stretch of 32 KiB is not like the next one.
var long = strings.Repeat("HTTP/1.1 200 is what no content should be taken for. ", 1<<20/53+1)[:1<<20]

// origin is the server behind the proxies. It runs in this process, so that both ends of an abort have the same clock.
type origin struct {
	addr     string
	stop     func() error
	accepted atomic.Int64
	ended    chan time.Time // when a stream has ended, if no earlier one waits to be received
}

// startOrigin starts it with a scheduler on each of the CPUs. With none they are anywhere, as many as the machine has CPUs.
func startOrigin(ctx context.Context, cpus []int) (*origin, error) {
	x := &origin{ended: make(chan time.Time, 1)}
	var mux httpd.Mux
	mux.Handle("GET /short", func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.AddField(plainText)
		_, _ = w.WriteString(answer.Hello) // it fits
		return nil
	})
	mux.Handle("GET /long", sendLong)
	mux.Handle("GET /events", func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("Content-Type", "text/event-stream")
		w.Add("X-Accel-Buffering", "no") // for nginx, which would keep an event back
		_, _ = w.WriteString(event)
		return &stream{x, r}
	})
	web := &httpd.Server{Handler: mux.Serve, Timeouts: httpd.Timeouts{Idle: time.Hour}}
	tcp := &service.Listener{Address: "127.0.0.1:0", MaxConns: -1, Handler: func(c *listener.Conn) act.Action {
		x.accepted.Add(1)
		return web.Serve(c)
	}}
	config := act.Config{Schedulers: len(cpus), Logger: zap.NewNop()}
	if len(cpus) > 0 {
		config.Threads, config.CPUs = act.Bound, cpus
	}
	ctx, cancel := context.WithCancel(ctx)
	listens, ended := make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(listens) })
	go func() { ended <- act.Run(ctx, config, tcp.Setup, func(*act.Scheduler) error { once(); return nil }) }()
	x.stop = func() error { cancel(); return <-ended }
	select {
	case <-listens:
		x.addr = tcp.Addr().String()
		return x, nil
	case err := <-ended:
		cancel()
		return nil, err
	}
}

var plainText = httpd.NewField("Content-Type", "text/plain")

func sendLong(w *httpd.Response, _ *httpd.Request) act.Action {
	w.AddField(plainText)
	w.SetLength(int64(len(long)))
	left := []byte(long)
	return act.Func(func(t *act.Task) act.Directive {
		n, err := w.Write(left[:min(len(left), 32<<10)])
		if left = left[n:]; len(left) == 0 && err == nil {
			err = io.EOF
		}
		return listener.Next(t, err)
	})
}

// stream is idle until the proxy closes or resets the connection.
type stream struct {
	of *origin
	r  *httpd.Request
}

func (s *stream) Act(t *act.Task) act.Directive {
	if s.r.Ended(t) {
		return act.Done
	}
	return act.Wait
}

func (s *stream) Close() error {
	select {
	case s.of.ended <- time.Now():
	default:
	}
	return nil
}
