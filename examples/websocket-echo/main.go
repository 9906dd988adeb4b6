// Command websocket-echo sends back each message of WebSocket at /ws, of up to 16 MiB. It speaks the subprotocol chat.v1 with
// clients that ask for it.
//
//	go run ./examples/websocket-echo
//	websocat ws://127.0.0.1:8080/ws
package main

import (
	"github.com/daimon-go/daimon/examples/internal/withtls"
	"github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
)

func main() {
	server := withtls.Parse("127.0.0.1:8080", "http/1.1")
	web := &httpd.Server{Handler: echo.Site()}
	server.Run(server.Listen(server.Addr, web.Serve))
}
