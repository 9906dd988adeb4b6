// Command fasthttp is the server of github.com/valyala/fasthttp that is measured: a Server with nothing set
// but its handler. What its README advises beyond that, one CPU for each instance with GOMAXPROCS=1
// ("Performance optimization tips for multi-core systems"), is for who starts it.
package main

import (
	"log"

	"github.com/valyala/fasthttp"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	s := &fasthttp.Server{Handler: hello}
	log.Fatal(s.Serve(goserver.Listen()))
}

func hello(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain")
	ctx.SetBodyString("Hello, World!")
}
