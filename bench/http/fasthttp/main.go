// Command fasthttp is the measured server of github.com/valyala/fasthttp: a Server with only its handler set. Its README
// also advises one CPU for each instance with GOMAXPROCS=1 ("Performance optimization tips for multi-core systems"); the
// program that starts it sees to that.
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
