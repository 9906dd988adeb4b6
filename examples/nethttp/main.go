// Command nethttp is a site whose handlers are written for net/http: a chi router with its middleware, embedded
// files, a stream of events, a reverse proxy, profiles and variables.
//
//	go run .
//	curl http://127.0.0.1:8080/me
//	curl -N http://127.0.0.1:8080/events
//	curl --data-binary @main.go http://127.0.0.1:8080/sha256
//
// Requests below /api/ go to another server, such as examples/httpd:
//
//	(cd ../.. && go run ./examples/httpd -addr 127.0.0.1:9090) &
//	go run . -upstream http://127.0.0.1:9090
//	curl http://127.0.0.1:8080/api/
//
// With TLS, and a self-signed certificate:
//
//	go run . -tls-self
//	curl -k https://127.0.0.1:8080/me
//
// Ctrl-C shuts it down gracefully: streams of events end, and requests that have begun are answered, within -drain.
// A second Ctrl-C cuts off open connections.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"os/signal"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	var o options
	flag.Func("upstream", "the `URL` of a server that gets the requests below /api/", o.setUpstream)
	cli.DurationVar(&o.timeout, "timeout", 10*time.Second, "the `duration` after which a page is given up")
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1", "http/1.0"}}},
	}}
	server.Parse()

	ending, forget := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer forget()
	adapter := &nethttp.Adapter{Handler: site(ending, o)}
	web := &httpd.Server{Handler: adapter.Serve, MaxBody: 1 << 30}
	server.Run(server.Listen(server.Addr, web.Serve))
}
