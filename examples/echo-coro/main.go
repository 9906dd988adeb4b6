// Command echo-coro is examples/echo with a coroutine for each connection. Its code looks as if it blocked, but no other
// connection waits for it. From outside, the two servers behave alike.
//
//	go run ./examples/echo-coro
//	nc 127.0.0.1 7007
package main

import (
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo-coro/echo"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	program.Serve("127.0.0.1:7007", coro.Serve(echo.Echo), &proxyproto.Config{}, &admission.Limiter{}, &secure.TLS{}, &inspect.Inspector{})
}
