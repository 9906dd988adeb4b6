// Command websocket-echo sends back each message of WebSocket at /ws, of up to 16 MiB. It speaks the subprotocol chat.v1 with
// clients that ask for it.
//
//	go run ./examples/websocket-echo
//	websocat ws://127.0.0.1:8080/ws
//
// With -compress it compresses messages of at least 256 bytes for clients that can, which browsers are.
package main

import (
	"flag"

	"github.com/daimon-go/daimon/examples/internal/withtls"
	"github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
)

func main() {
	var compression websocket.Compression
	flag.BoolVar(&compression.On, "compress", false, "compress messages for clients that can (permessage-deflate)")
	server := withtls.Parse("127.0.0.1:8080", "http/1.1")
	web := &httpd.Server{Handler: echo.Site(compression)}
	server.Run(server.Listen(server.Addr, web.Serve))
}
