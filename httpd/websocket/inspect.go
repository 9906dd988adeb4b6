package websocket

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/hook"
)

// WaitsFor implements hook.Valued.
func (x *session) WaitsFor(w *hook.Waits) {
	if x.phase == ending {
		w.Add("the end of the connection")
	} else {
		hook.AskValues(x.Child.Action, w)
	}
	if x.sign != unasked {
		w.Add("a sign of life, such as the answer to a ping")
	}
	if n := x.waits(); n > 0 {
		w.Add(fmt.Sprintf("room for %d messages that were pushed", n))
	}
	x.conn.WaitsFor(w)
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
