package main

import (
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

// wire is a connection. Its methods are as in a listener.Conn.
type wire interface {
	Peek(n int) ([]byte, error)
	Discard(n int)
	Push(p []byte) error
	// share pushes a message of quality of service 0. Its packet is made once for all clients.
	share(m *topic.Message) error
}

// stream is a connection of TCP or TLS.
type stream struct{ *listener.Conn }

var framed = topic.NewFraming(func(m *topic.Message) []byte { return encodePublish(m, 0, false) })

func (x stream) share(m *topic.Message) error { return x.PushShared(framed.Of(m)) }

// socket is a connection of WebSocket. A message need not end where a packet ends [MQTT-6.0.0-2].
type socket struct {
	conn *websocket.Conn
	rest []byte // unread
}

var prepared = topic.NewFraming(func(m *topic.Message) *websocket.Prepared {
	return websocket.Prepare(websocket.Binary, framed.Of(m))
})

func (x *socket) share(m *topic.Message) error { return x.conn.Push(prepared.Of(m)) }

func (x *socket) Push(p []byte) error { return x.conn.Send(websocket.Binary, p) }

func (x *socket) Peek(n int) ([]byte, error) {
	for len(x.rest) < n {
		m, err := x.conn.Receive()
		if err == nil && m.Type != websocket.Binary {
			err = violation("6.0.0-1")
		}
		if err != nil {
			return x.rest, err
		}
		x.rest = append(x.rest, m.Data...)
	}
	return x.rest, nil
}

func (x *socket) Discard(n int) {
	if x.rest = x.rest[n:]; len(x.rest) == 0 {
		x.rest = nil
	}
}
