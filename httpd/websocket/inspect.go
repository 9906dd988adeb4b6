package websocket

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/hook"
)

// Waits implements hook.Waiting.
func (x *session) Waits(add func(what string)) {
	if x.ending {
		add("the end of the connection")
	} else {
		hook.AskWaits(x.Child.Action, add)
	}
	if x.asked {
		add("a sign of life, such as the answer to a ping")
	}
	if n := x.waits(); n > 0 {
		add(fmt.Sprintf("room for %d messages that were pushed", n))
	}
	x.conn.Waits(add)
}

// Waits implements hook.Waiting.
func (b *blockedMessage) Waits(add func(what string)) {
	add("the end of a message that is sent in pieces")
}

// Waits implements hook.Waiting.
func (x *shake) Waits(add func(what string)) {
	switch {
	case x.connect == nil:
	case x.conn == nil:
		x.connect.Waits(add)
	default:
		add("the answer to a handshake of WebSocket")
		x.conn.Waits(add)
	}
}
