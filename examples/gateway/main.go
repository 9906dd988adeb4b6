// Command gateway passes requests of HTTP on to other servers.
//
//	go run . -config gateway.toml
//	go run . -config gateway.toml -check
//
// The file has routes and groups of back ends: see gateway.toml. SIGHUP reads it again. If it has mistakes, they are logged, and
// what was in force stays so. Requests that are under way are not disturbed.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/httpd/gateway"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	path := flag.String("config", "gateway.toml", "the `file` with routes and groups; SIGHUP reads it again")
	check := flag.Bool("check", false, "only check the file")
	log, limits := &accesslog.Log{}, &admission.Limiter{Messages: -1}
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&proxyproto.Config{},
		limits,
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1", "http/1.0"}}},
		log,
		&inspect.Inspector{},
	}}
	server.Parse()
	g := &gateway.Gateway{}
	f := files{path: *path}
	server.Reload = func() error {
		table, err := f.read()
		if err == nil {
			g.Swap(table)
		}
		return err
	}
	if err := server.Reload(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *check {
		return
	}
	site := &httpd.Server{Handler: httpd.Limited(limits.Take, g.Serve), OnResponse: log.OnResponse()}
	web := server.Listen(server.Addr, site.Serve)
	web.Limits.Conns = 2 // one is dialled for each that is accepted
	server.Run(&monitor.NameCache{}, g, web)
}
