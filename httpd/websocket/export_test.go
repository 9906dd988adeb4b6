package websocket

import (
	"reflect"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// DialOn is Dial on a connection that is made already.
func (v *Client) DialOn(c *listener.Conn) act.Action {
	return &dialled{shake: &shake{client: v, conn: c}}
}

// AtRest reports whether c has no more than a connection at rest.
func (c *Conn) AtRest() bool { return c.extra == &none }

// NothingExtra reports whether what all connections at rest share is as it was in the beginning.
func NothingExtra() bool { return reflect.ValueOf(none).IsZero() }
