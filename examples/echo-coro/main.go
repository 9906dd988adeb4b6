// Command echo-coro is examples/echo with a coroutine for each connection. Its code looks as if it blocked, but no other
// connection waits for it. From outside, the two servers behave alike.
//
//	go run ./examples/echo-coro
//	nc 127.0.0.1 7007
package main

import (
	"io"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	program.Serve("127.0.0.1:7007", coro.Serve(echo), &proxyproto.Config{}, &admission.Limiter{}, &secure.TLS{}, &inspect.Inspector{})
}

// echo serves one connection. A client that stops reading is no longer read from. When it has sent its last byte, all of
// it is still sent back. While no bytes arrive there is no buffer: see coro.Conn.WriteTo. After a shutdown request it
// goes on until the client has closed.
func echo(c *coro.Conn) error {
	_, err := io.Copy(c, c)
	return err
}
