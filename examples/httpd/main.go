// Command httpd is a web server.
//
//	go run ./examples/httpd -root docs
//	curl http://127.0.0.1:8080/
//	curl --data-binary @README.md http://127.0.0.1:8080/echo
//	curl http://127.0.0.1:8080/files/simulation.md
//
// The directory is opened at the start, and again on SIGHUP: send one when a deployment has switched a link, or renamed it.
//
// It speaks HTTP/1.1, and HTTP/2 with clients that begin with its preface:
//
//	curl --http2-prior-knowledge http://127.0.0.1:8080/
//
// With TLS, and a self-signed certificate, clients choose HTTP/2 by ALPN:
//
//	go run ./examples/httpd -tls-self
//	curl -k --http2 https://127.0.0.1:8080/
//
// With a line for each request in a file, which it opens again on SIGHUP:
//
//	go run ./examples/httpd -access-log access.log
//
// For a load balancer /readyz answers 200, and 503 while a shutdown is announced, with -announce; /healthz answers
// 200.
//
// Ctrl-C shuts it down gracefully: idle connections are closed, and requests that have begun are answered, within
// -drain. A second Ctrl-C cuts off connections that are still open.
package main

import (
	"crypto/tls"
	"flag"
	"io/fs"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	root := &files.Directory{}
	flag.Func("root", "a `directory` whose files are served under /files/; no link leads out of it; SIGHUP opens it again",
		func(dir string) error {
			root.Path = dir
			return root.Reload()
		})
	log, limits := &accesslog.Log{}, &admission.Limiter{Messages: -1}
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&proxyproto.Config{},
		limits,
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1", "http/1.0"}}},
		log,
		&inspect.Inspector{},
	}}
	server.Parse()
	var served fs.FS
	if root.Path != "" {
		served, server.Reload = root, root.Reload
	}
	site := &httpd.Server{Handler: httpd.Limited(limits.Take, routes(served).Serve), MaxBody: 1 << 30, OnResponse: log.OnResponse()}
	server.Run(server.Listen(server.Addr, site.Serve))
}
