package nethttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// ListenAndServe serves h on a TCP address, "host:port", with one scheduler for each CPU. A nil h means
// http.DefaultServeMux, and "" means ":http".
//
// After SIGINT or SIGTERM it accepts no more connections. It returns nil when all requests that had begun are answered and
// all handlers have returned: unlike http.ListenAndServe, so log.Fatal must not be called with nil. After 30 s it returns a
// *shutdown.Cut, which says what was cut off. A second signal cuts what is left, and a third one ends the process. Any other
// error says why it cannot serve.
//
// For other bounds, limits and services, use an [Adapter].
func ListenAndServe(address string, h http.Handler) error {
	return serve(socket(cmp.Or(address, ":http"), h))
}

// ListenAndServeTLS is ListenAndServe with TLS: certFile has the certificate and those of its issuers, keyFile has its key,
// both as PEM. They are read again on SIGHUP. An empty address means ":https".
func ListenAndServeTLS(address, certFile, keyFile string, h http.Handler) error {
	files := &secure.Files{Cert: certFile, Key: keyFile}
	config := &tls.Config{GetCertificate: files.GetCertificate, NextProtos: []string{"http/1.1", "http/1.0"}}
	return serve(socket(cmp.Or(address, ":https"), h, secure.Server(config, nil)), files.Setup)
}

func socket(address string, h http.Handler, filters ...listener.Filter) *service.TCP {
	web := &httpd.Server{Handler: (&Adapter{Handler: h}).Serve}
	return &service.TCP{Address: address, Handler: web.Serve, Filters: filters}
}

func serve(tcp *service.TCP, before ...func(*act.Scheduler) error) error {
	setup := append(before, tcp.Setup, monitor.Signals(shutdown.Policy{}))
	return act.Run(context.Background(), act.Config{}, setup...)
}
