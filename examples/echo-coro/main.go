// Command echo-coro is examples/echo with a coroutine for each connection: its server is written as one that blocks
// is, and blocks nobody. It takes the same flags, and from outside it cannot be told from the other.
//
//	go run ./examples/echo-coro
//	nc 127.0.0.1 7007
package main

import (
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo-coro/echo"
	"github.com/daimon-go/daimon/program"
)

func main() { program.Serve("127.0.0.1:7007", coro.Serve(echo.Echo)) }
