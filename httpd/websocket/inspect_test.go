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
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// receiving is the action of a connection that takes messages, until it is told to wait for something else.
type receiving struct {
	*websocket.Conn
	deaf bool
}

func (x *receiving) Act(t *act.Task) act.Directive {
	for !x.deaf {
		_, err := x.Receive()
		if err != nil {
			return listener.Next(t, err)
		}
	}
	t.Waker()
	return act.Wait
}

func (x *receiving) Waits(add func(what string)) {
	if x.deaf {
		add("a gate")
	}
}

func TestWhatConnectionsOfWebSocketSay(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var here, there *receiving
	sockets := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
		there = &receiving{Conn: c}
		return there
	}}
	v := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: sockets.Serve}).Serve}
	require.NoError(t, v.Setup(l.S))
	accepts := "connections to " + v.Addr().String()

	// A client whose server does not answer the handshake.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	mute := &websocket.Client{URL: "ws://" + silent.Addr().String(), Handler: func(*websocket.Conn) act.Action { return nil }}
	l.S.Spawn(mute.Dial())
	l.UntilSaid(accepts, "the answer to a handshake of WebSocket", "input from "+silent.Addr().String())

	// A connection, from both ends.
	client := &websocket.Client{URL: "ws://" + v.Addr().String(), Handler: func(c *websocket.Conn) act.Action {
		here = &receiving{Conn: c}
		return here
	}}
	l.S.Spawn(client.Dial())
	said := func() []string { return servertest.Said(l.S)[3:] }
	input := func(all []string) bool {
		return len(all) == 2 && strings.HasPrefix(all[0], "input from ") && strings.HasPrefix(all[1], "input from ")
	}
	l.Until("both wait", func() bool { return there != nil && input(said()) })

	// Messages.
	counts := func(name string) uint64 { return servertest.CountsOf(l.S)[name] }
	l.Turn(func(*act.Task) {
		require.NoError(l.T, here.Send(websocket.Text, []byte("hello")))
		require.NoError(l.T, there.Push(websocket.Prepare(websocket.Text, []byte("hello"))))
	})
	l.Until("both have one", func() bool { return counts("websocket_received_total") == 2 })
	require.EqualValues(t, 2, counts("websocket_sent_total"))

	// One that does not receive.
	here.deaf = true
	l.Turn(func(*act.Task) { require.NoError(l.T, there.Send(websocket.Text, []byte("wake up"))) })
	l.Until("the gate", func() bool { return slices.Contains(said(), "a gate") })
	large := websocket.Prepare(websocket.Binary, make([]byte, 1<<20))
	l.Until("messages wait", func() bool {
		l.Turn(func(*act.Task) { require.NoError(l.T, there.Push(large)) })
		return slices.ContainsFunc(said(), func(what string) bool {
			return strings.HasPrefix(what, "room for ") && strings.HasSuffix(what, " messages that were pushed")
		})
	})
}
