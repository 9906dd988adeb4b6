// Command echo is an echo server.
//
//	go run ./examples/echo
//	nc 127.0.0.1 7007
//
// With TLS, and a self-signed certificate:
//
//	go run ./examples/echo -tls-self
//	openssl s_client -quiet -connect 127.0.0.1:7007
//
// Ctrl-C shuts it down gracefully: it accepts no more connections, and open connections may go on for as long as -drain
// says. A second Ctrl-C cuts off connections that are still open.
package main

import (
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	program.Serve("127.0.0.1:7007", echo.Echo, &proxyproto.Config{}, &admission.Limiter{}, &secure.TLS{}, &inspect.Inspector{})
}
