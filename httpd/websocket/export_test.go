package websocket

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// DialOn is Dial on a connection that is made already.
func (v *Client) DialOn(c *listener.Conn) act.Action {
	return &dialled{shake: &shake{client: v, conn: c}}
}
