// Command graceful is a server with short, long and streaming requests, WebSocket, and a demon in the background, which can be
// ended and replaced in order.
//
//	go build ./examples/graceful && ./graceful
//	curl http://127.0.0.1:8080/slow?for=5s
//
// End it while requests are under way; it says each second what it waits for:
//
//	./graceful -drain 10s
//	curl http://127.0.0.1:8080/slow?for=1m & kill $(pidof graceful)
//
// Replace it by a newer binary, while requests are under way:
//
//	go build ./examples/graceful && kill -USR2 $(pidof graceful)
package main

import (
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/examples/graceful/site"
	"github.com/daimon-go/daimon/examples/internal/withtls"
	"github.com/daimon-go/daimon/httpd"
)

func main() {
	server := withtls.Parse("127.0.0.1:8080", "http/1.1")
	web := &httpd.Server{Handler: site.Routes().Serve}
	server.Run(background{}, server.Listen(server.Addr, web.Serve))
}

// background is a service without a socket: its demon does something each minute, until an order ends it.
type background struct{}

func (background) Setup(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	ticks := 0
	s.Install(demon.Every(time.Minute, func(*act.Task) act.Directive {
		ticks++
		s.Logger().Info("the demon in the background is at work", zap.Int("ticks", ticks))
		return act.Wait
	}))
	return nil
}
