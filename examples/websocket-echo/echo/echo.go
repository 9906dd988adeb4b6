// Package echo is a server of WebSocket that sends each message back.
package echo

import (
	"bytes"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
)

// MaxMessage is the size of the largest message.
const MaxMessage = 16 << 20

// batch is how many messages are echoed in a turn.
const batch = 64

// Site returns the handler of the server, whose connections of WebSocket are at /ws.
func Site(o websocket.Options) httpd.Handler {
	o.Subprotocols, o.MaxMessage = []string{"chat.v1"}, MaxMessage
	sockets := &websocket.Server{Handler: Echo, Options: o}
	site := &httpd.Mux{}
	site.Handle("/ws", sockets.Serve)
	return site.Serve
}

// Echo is the action of a connection.
func Echo(c *websocket.Conn, _ *httpd.Request) act.Action { return &echo{conn: c} }

type echo struct {
	conn *websocket.Conn
	kept websocket.Message // for which there was no room; without a Type: none
}

// Act receives no further message while there is no room for the last one, so a client that does not read is not read from.
func (e *echo) Act(t *act.Task) act.Directive {
	for range batch {
		m := e.kept
		if m.Type == 0 {
			var err error
			if m, err = e.conn.Receive(); err != nil {
				return e.conn.Next(t, err)
			}
		}
		if err := e.conn.Send(m.Type, m.Data); err != nil {
			if e.kept.Type == 0 {
				m.Data = bytes.Clone(m.Data) // it was lent for this turn
				e.kept = m
			}
			return e.conn.Next(t, err)
		}
		e.kept = websocket.Message{}
	}
	return act.Yield
}
