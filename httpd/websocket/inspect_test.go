package websocket_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// What a page of package inspect says of a client and a server, and what they count.
func TestWhatConnectionsOfWebSocketSay(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var here, there *websocket.Conn
	receives := func(kept **websocket.Conn, c *websocket.Conn) act.Action {
		*kept = c
		return act.Func(func(t *act.Task) act.Directive {
			_, err := c.Receive()
			return listener.Next(t, err)
		})
	}
	sockets := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action { return receives(&there, c) }}
	v := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: sockets.Serve}).Serve}
	require.NoError(t, v.Setup(l.S))
	accepts := "connections to " + v.Addr().String()

	silent, err := net.Listen("tcp", "127.0.0.1:0") // does not answer the handshake
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	mute := &websocket.Client{URL: "ws://" + silent.Addr().String(), Handler: func(*websocket.Conn) act.Action { return nil }}
	l.S.Spawn(mute.Dial())
	l.UntilSaid(accepts, "the answer to a handshake of WebSocket", "input from "+silent.Addr().String())

	client := &websocket.Client{URL: "ws://" + v.Addr().String(),
		Handler: func(c *websocket.Conn) act.Action { return receives(&here, c) }}
	l.S.Spawn(client.Dial())
	says := func(is func(what string) bool) bool { return slices.ContainsFunc(servertest.Said(l.S)[3:], is) }
	l.Until("both wait", func() bool {
		return there != nil && says(func(what string) bool { return strings.HasPrefix(what, "input from ") })
	})
	l.Turn(func(*act.Task) {
		require.NoError(l.T, here.Send(websocket.Text, []byte("hello")))
		require.NoError(l.T, there.Push(websocket.Prepare(websocket.Text, []byte("hello"))))
	})
	l.Until("both have one", func() bool { return servertest.CountsOf(l.S)["websocket_received_total"] == 2 })
	require.EqualValues(t, 2, servertest.CountsOf(l.S)["websocket_sent_total"])
}
