package websocket

import (
	"fmt"

	"github.com/daimon-go/daimon/act"
)

func (x *session) Describe(d *act.Description) {
	said := d.Internals()
	first := said.Waits.Len()
	x.Child.Describe(d)
	if x.phase == ending { // the action is over, or what it waits for does not count any more
		said.Waits.Truncate(first)
		d.WaitsFor("the end of the connection")
	}
	if x.sign != unasked {
		d.WaitsFor("a sign of life, such as the answer to a ping")
	}
	if n := x.waits(); n > 0 {
		d.WaitsFor(fmt.Sprintf("room for %d messages that were pushed", n))
	}
	d.Of(x.conn)
}

func (x *shake) Describe(d *act.Description) {
	switch {
	case x.connect == nil:
	case x.conn == nil:
		x.connect.Describe(d)
	default:
		d.WaitsFor("the answer to a handshake of WebSocket")
		d.Of(x.conn)
	}
}
