// Command echo-coro is examples/echo with a coroutine for each connection. Its code looks as if it blocked, but no other
// connection waits for it. From outside, the two servers behave alike.
//
//	go run ./examples/echo-coro
//	nc 127.0.0.1 7007
package main

import (
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo-coro/echo"
	"github.com/daimon-go/daimon/examples/internal/withtls"
)

func main() { withtls.Serve("127.0.0.1:7007", coro.Serve(echo.Echo)) }
