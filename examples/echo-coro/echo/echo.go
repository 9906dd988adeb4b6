// Package echo sends back what it receives.
package echo

import (
	"io"

	"github.com/daimon-go/daimon/coro"
)

// Echo is the conversation of one connection. A client that does not read is not read either, and after its half-close
// what it sent is still sent back whole. While nothing comes there is no buffer: see coro.Conn.WriteTo. On an order it
// goes on until the client has closed.
func Echo(c *coro.Conn) error {
	_, err := io.Copy(c, c)
	return err
}
