package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim/framing"
	"github.com/daimon-go/daimon/topic"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// The packets of the conversations. The flags of a CONNECT are clean and will.
const (
	kept, clean, will = 0, 2, 4
	welcome, again    = "\x20\x02\x00\x00", "\x20\x02\x01\x00"
	ping, pong        = "\xc0\x00", "\xd0\x00"
	bye               = "\xe0\x00"
	gone              = "<gone>" // the end of a connection: of the client without bye, or of the broker
)

func said(flags byte, topic, data string) string { return raw(0x30|flags, text(topic), data) }

// sent is a PUBLISH of quality of service 1.
func sent(flags byte, id uint16, topic, data string) string {
	return raw(0x32|flags, text(topic), number(id), data)
}

func number(id uint16) string   { return string([]byte{byte(id >> 8), byte(id)}) }
func received(id uint16) string { return raw(0x40, number(id)) }

// wants is a SUBSCRIBE of number 7, and granted the answer.
func wants(filter string, qos byte) string {
	return raw(0x82, "\x00\x07", text(filter), string([]byte{qos}))
}
func granted(qos byte) string { return raw(0x90, "\x00\x07", string([]byte{qos})) }

// many joins numbered packets.
func many(from, to int, packet func(n int) string) (all string) {
	for n := from; n <= to; n++ {
		all += packet(n)
	}
	return all
}

// line is a line of a conversation: what a client says, and all that it hears then.
type line struct{ client, says, hears string }

// echo waits until all that was published before has been passed on.
var echo = line{"echo", hi("echo", clean) + wants("echo", 0) + said(0, "echo", ""), welcome + granted(0) + said(0, "echo", "")}

var conversations = map[string][]line{
	"[MQTT-3.1.0-1] a client begins with a CONNECT": {{"a", said(0, "t", "v"), gone}},
	"[MQTT-3.1.0-2] and sends no other one":         {{"a", hi("a", clean), welcome}, {"a", hi("a", clean), gone}},
	"[MQTT-3.1.2-2] another version is refused":     {{"a", raw(0x10, text("MQTT"), "\x05\x02\x00\x02", text("a")), "\x20\x02\x00\x01" + gone}},
	"[MQTT-3.1.3-8] a session needs an identifier":  {{"a", hi("", kept), "\x20\x02\x00\x02" + gone}},
	"[MQTT-3.1.3-6] others have one of the broker":  {{"a", hi("", clean), welcome}, {"b", hi("", clean), welcome}, {"a", ping, pong}},
	"quality of service 2 is granted as 1, and not published": {
		{"a", hi("a", clean) + wants("t", 2), welcome + granted(1)},
		{"a", raw(0x34, text("t"), "\x00\x01"), gone},
	},
	"[MQTT-3.3.4-1] quality of service is that of the message or the filter, the lower one": {
		{"a", hi("a", clean) + wants("t", 1), welcome + granted(1)}, {"b", hi("b", clean) + wants("t", 0), welcome + granted(0)},
		{"a", sent(0, 5, "t", "v"), received(5) + sent(0, 1, "t", "v")}, {"b", "", said(0, "t", "v")},
		{"b", said(0, "t", "w"), said(0, "t", "w")}, {"a", "", said(0, "t", "w")},
	},
	"[MQTT-3.3.1-5] a retained message comes with the filter, until an empty one": {
		{"a", hi("a", clean) + sent(1, 9, "t", "v"), welcome + received(9)},
		{"b", hi("b", clean) + wants("t", 0), welcome + granted(0) + said(1, "t", "v")}, {"b", wants("t", 1), granted(1) + sent(1, 1, "t", "v")},
		{"a", said(1, "t", "") + ping, pong}, {"b", received(1), said(0, "t", "")}, {"b", wants("t", 0), granted(0)},
	},
	"[MQTT-3.10.4-2] nothing comes after an UNSUBSCRIBE": {
		{"a", hi("a", clean) + wants("t", 1), welcome + granted(1)}, {"a", raw(0xa2, "\x00\x08", text("t"), text("x")), raw(0xb0, "\x00\x08")},
		{"a", sent(0, 1, "t", "v"), received(1)}, echo,
	},
	"[MQTT-3.8.4-3] a filter replaces itself": {
		{"a", hi("a", clean) + wants("t", 1) + wants("t", 0), welcome + granted(1) + granted(0)}, {"a", sent(0, 1, "t", "v"), received(1) + said(0, "t", "v")},
	},
	"[MQTT-3.3.5-1] filters of different qualities each bring a message": {
		{"a", hi("a", clean) + wants("+", 1) + wants("t", 0), welcome + granted(1) + granted(0)},
		{"a", sent(0, 1, "t", "v"), received(1) + sent(0, 1, "t", "v") + said(0, "t", "v")},
	},
	"[MQTT-3.1.2-8] a will is published when its client is gone": {
		{"a", hi("a", clean) + wants("#", 0), welcome + granted(0)},
		{"b", hi("b", clean|will, text("t"), text("gone")), welcome}, {"b", gone, ""}, {"a", "", said(0, "t", "gone")},
		{"b", hi("b", clean|will, text("t"), text("wrong")), welcome}, {"b", "\x00\x00", gone}, {"a", "", said(0, "t", "wrong")},
		{"b", hi("b", clean|will, text("t"), text("not welcome"), "more"), gone},
		{"b", hi("b", clean|will, text("t"), text("never")), welcome}, {"b", bye, gone}, {"a", said(0, "t", "ever"), said(0, "t", "ever")},
	},
	"[MQTT-3.1.4-2] a client takes over, and the will of its older connection is published": {
		{"a", hi("a", clean|will, text("t"), text("older")), welcome}, {"b", hi("b", clean) + wants("t", 0), welcome + granted(0)},
		{"c", hi("a", clean), welcome}, {"a", "", gone}, {"b", "", said(0, "t", "older")}, {"c", ping, pong},
	},
	"[MQTT-3.1.2-5] a session goes on": {
		{"a", hi("a", kept) + wants("t", 1), welcome + granted(1)}, {"a", bye, gone}, {"b", hi("b", clean) + sent(0, 1, "t", "v"), welcome + received(1)},
		{"a", hi("a", kept), again + sent(0, 1, "t", "v")}, {"a", gone, ""},
		{"a", hi("a", kept), again + sent(8, 1, "t", "v")}, {"a", received(1) + ping, pong}, {"a", bye, gone},
		{"a", hi("a", kept) + ping, again + pong}, {"b", sent(0, 2, "t", "w"), received(2)}, {"a", "", sent(0, 2, "t", "w")},
	},
	"[MQTT-3.1.2-6] a clean session ends the old one": {
		{"a", hi("a", kept) + wants("t", 1), welcome + granted(1)}, {"a", bye, gone}, {"a", hi("a", clean) + sent(0, 1, "t", "v"), welcome + received(1)}, echo,
		{"a", bye, gone}, {"a", hi("a", kept), welcome},
	},
	"[MQTT-4.7.2-1] what begins with $ is not matched by a wildcard, nor published": {
		{"a", hi("a", clean) + wants("#", 0) + wants("$a", 0), welcome + granted(0) + granted(0)}, {"b", hi("b", clean) + said(0, "$a", "v"), welcome + gone},
		{"a", said(0, "a", "v"), said(0, "a", "v")},
	},
	"a client that acknowledges nothing gets a window": {
		{"a", hi("a", clean) + wants("t", 1), welcome + granted(1)}, {"b", hi("b", clean), welcome},
		{"b", many(1, window+2, func(n int) string { return sent(0, uint16(n), "t", fmt.Sprint(n)) }), many(1, window+2, func(n int) string { return received(uint16(n)) })},
		{"a", "", many(1, window, func(n int) string { return sent(0, uint16(n), "t", fmt.Sprint(n)) })},
		{"a", received(2) + ping, pong}, // the window begins with the oldest
		{"a", received(1), sent(0, window+1, "t", fmt.Sprint(window+1)) + sent(0, window+2, "t", fmt.Sprint(window+2))},
	},
	"a client that is absent for too long loses its session": {
		{"a", hi("a", kept) + wants("t", 1), welcome + granted(1)}, {"a", bye, gone}, {"b", hi("b", clean), welcome},
		{"b", many(1, maxQueue+1, func(n int) string { return sent(0, uint16(n), "t", "v") }), many(1, maxQueue+1, func(n int) string { return received(uint16(n)) })}, echo,
		{"a", hi("a", kept), welcome},
	},
	"and with quality of service 0 the oldest messages": {
		{"a", hi("a", kept) + wants("t", 0), welcome + granted(0)}, {"a", bye, gone}, {"b", hi("b", clean), welcome},
		{"b", many(1, maxQueue+1, func(n int) string { return said(0, "t", fmt.Sprint(n)) }), ""}, echo,
		{"a", hi("a", kept), again + many(2, maxQueue+1, func(n int) string { return said(0, "t", fmt.Sprint(n)) })},
	},
}

func TestConversations(t *testing.T) {
	for _, over := range []string{"TCP", "WebSocket"} {
		for name, lines := range conversations {
			t.Run(over+"/"+name, func(t *testing.T) { converse(t, over == "WebSocket", lines) })
		}
	}
}

func converse(t *testing.T, web bool, lines []line) {
	b := &broker{topics: topic.New(topic.Config{MaxMessage: maxPacket})}
	sockets := &websocket.Server{Handler: b.socket, Options: websocket.Options{Subprotocols: []string{"mqtt"}, CloseTimeout: -1}}
	site := &httpd.Server{Handler: sockets.Serve}
	at := &service.Listener{Address: "127.0.0.1:0", Handler: func(c *listener.Conn) act.Action { return newClient(b, stream{c}) }}
	if web {
		at.Handler = site.Serve
	}
	r := servertest.Start(t, act.Config{Schedulers: 1}, b.topics.Setup, at.Setup)
	peers := map[string]net.Conn{}
	for i, x := range lines {
		c := peers[x.client]
		if c == nil {
			c = servertest.Dial(t, at.Addr())
			if web {
				c = visit(t, c)
			}
			peers[x.client] = c
		}
		if x.says == gone {
			require.NoError(t, c.Close())
			delete(peers, x.client)
			continue
		}
		servertest.Send(t, c, x.says)
		hears, ends := strings.CutSuffix(x.hears, gone)
		got := make([]byte, len(hears))
		n, err := io.ReadFull(c, got)
		require.NoError(t, err, "line %d, after %q", i, got[:n])
		require.Equal(t, hears, string(got), "line %d", i)
		if ends {
			servertest.ExpectEOF(t, c)
			require.NoError(t, c.Close())
			delete(peers, x.client)
		}
	}
	for _, c := range peers {
		servertest.Send(t, c, ping)
		servertest.Expect(t, c, pong) // and nothing before it
		require.NoError(t, c.Close())
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

// The session of the longest absence ends when there are too many.
func TestAbsentClientsAreBounded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	b := &broker{topics: topic.New(topic.Config{})}
	require.NoError(t, b.topics.Setup(l.S))
	l.Turn(func(task *act.Task) {
		for n := range maxAbsent + 1 {
			s, _ := b.open(task, hello{id: fmt.Sprint(n)})
			require.NoError(t, s.Close())
		}
		for n, want := range []uint16{0, 1} {
			_, present := b.open(task, hello{id: fmt.Sprint(n)})
			require.Equal(t, want, present)
		}
	})
}

func TestWebSocketsOfAnotherKind(t *testing.T) {
	b := &broker{topics: topic.New(topic.Config{})}
	site := &httpd.Server{Handler: (&websocket.Server{Handler: b.socket, Options: websocket.Options{Subprotocols: []string{"mqtt"}}}).Serve}
	at := &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve}
	servertest.Start(t, act.Config{Schedulers: 1}, b.topics.Setup, at.Setup)
	for header, code := range map[string]int{"": 1000, "Sec-WebSocket-Protocol: mqtt\r\n": 1011} {
		web := framing.WebSocket{Conn: servertest.Dial(t, at.Addr()), Header: header}
		require.NoError(t, web.Open("/mqtt"))
		if header != "" { // otherwise it is closed at once [MQTT-6.0.0-3]
			require.NoError(t, web.Write(framing.Text, []byte(hi("a", clean)))) // [MQTT-6.0.0-1]
		}
		var closed *framing.Closed
		_, _, err := web.Read()
		require.ErrorAs(t, err, &closed)
		require.Equal(t, code, closed.Code, header)
	}
}

// visitor is a connection of WebSocket. What it writes, it cuts into short messages.
type visitor struct {
	net.Conn
	web  framing.WebSocket
	rest []byte
}

func visit(t *testing.T, c net.Conn) net.Conn {
	v := &visitor{Conn: c, web: framing.WebSocket{Conn: c, Header: "Sec-WebSocket-Protocol: mqtt\r\n"}}
	require.NoError(t, v.web.Open("/mqtt"))
	return v
}

func (v *visitor) Write(p []byte) (int, error) {
	for part := range slices.Chunk(p, 7) {
		if err := v.web.Write(framing.Binary, part); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (v *visitor) Read(p []byte) (n int, err error) {
	for len(v.rest) == 0 && err == nil {
		_, v.rest, err = v.web.Read()
	}
	if errors.As(err, new(*framing.Closed)) {
		err = io.EOF
	}
	n = copy(p, v.rest)
	v.rest = v.rest[n:]
	return n, err
}
