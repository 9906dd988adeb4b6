// Command websocket-echo sends back each message of WebSocket at /ws, of up to 16 MiB. It speaks the subprotocol chat.v1 with
// clients that ask for it.
//
//	go run ./examples/websocket-echo
//	websocat ws://127.0.0.1:8080/ws
//
// With -compress it compresses messages of at least 256 bytes for clients that can, as browsers do.
package main

import (
	"crypto/tls"
	"flag"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	compress := flag.Bool("compress", false, "compress messages for clients that can (permessage-deflate)")
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
	}}
	server.Parse()
	var options websocket.Options
	if *compress {
		options.Compress = 256
	}
	web := &httpd.Server{Handler: echo.Site(options)}
	server.Run(server.Listen(server.Addr, web.Serve))
}
