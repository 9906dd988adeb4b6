// Package echo sends back what it receives.
package echo

import (
	"io"

	"github.com/daimon-go/daimon/coro"
)

// Echo serves one connection. A client that stops reading is no longer read from. When it has sent its last byte, all of
// it is still sent back. While no bytes arrive there is no buffer: see coro.Conn.WriteTo. On an order it goes on until
// the client has closed.
func Echo(c *coro.Conn) error {
	_, err := io.Copy(c, c)
	return err
}
