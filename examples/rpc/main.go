// Command rpc is a service that speaks gRPC, gRPC-Web and Connect: a log that clients append to and follow. Its handlers are those
// of connectrpc.com/connect, and run on schedulers by package nethttp.
//
//	go run .
//	curl --json '{"text": "hello"}' http://127.0.0.1:8080/log.v1.Log/Append
//	grpcurl -plaintext -proto logv1/log.proto -d '{"from": 1, "follow": true}' 127.0.0.1:8080 log.v1.Log/Read
//
// Clients of gRPC speak HTTP/2: with prior knowledge, or with TLS by ALPN:
//
//	go run . -tls-self
//	curl -k --json '{"text": "hello"}' https://127.0.0.1:8080/log.v1.Log/Append
//
// Ctrl-C shuts it down gracefully: clients that follow the log are told that the server is unavailable, and all other calls that have
// begun go on, within -drain.
package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os/signal"
	"syscall"

	"connectrpc.com/connect"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/rpc/logv1/logv1connect"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
)

// mostOfMessage bounds a message, in bytes.
const mostOfMessage = 4 << 20

func main() {
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
	}}
	server.Parse()

	ending, forget := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer forget()
	mux := http.NewServeMux()
	mux.Handle(logv1connect.NewLogHandler(newJournal(ending.Done()), connect.WithReadMaxBytes(mostOfMessage)))
	adapter := &nethttp.Adapter{Handler: mux, Most: 10000}
	// The client of a stream may be silent for as long as it likes. A connection that is dead does not answer PING.
	web := &httpd.Server{Handler: adapter.Serve, MaxStreams: 1000, Timeouts: httpd.Timeouts{Body: -1}}
	server.Run(server.Listen(server.Addr, web.Serve))
}
