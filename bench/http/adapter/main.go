// Command adapter is the measured server of Daimon's httpd/nethttp, with the handler of the one of net/http.
package main

import (
	"flag"
	"net/http"

	"github.com/daimon-go/daimon/bench/http/handler"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/program"
)

func main() {
	adapter := &nethttp.Adapter{Handler: http.HandlerFunc(handler.Serve)}
	flag.BoolVar(&adapter.Inline, "inline", false, "run the handler on the reactor's thread")
	server := program.Server{Addr: "127.0.0.1:7007"}
	server.Parse()
	web := &httpd.Server{Handler: adapter.Serve}
	server.Run(server.Listen(server.Addr, web.Serve))
}
