package websocket_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/listener"
)

const (
	packedHello = "\xf2\x48\xcd\xc9\xc9\x07\x00" // RFC 7692 7.2.3.1
	helloAgain  = "\xf2\x00\x11\x00\x00"         // 7.2.3.2: it refers to the message before it
	offers      = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
)

// small returns p compressed.
func small(p string) string { return string(deflate.Compress(nil, []byte(p), nil)) }

func squeezed(p string) string { return packed(text(small(p))) }

var long = strings.Repeat("€ and so on, ", 10)

// compressions are what a client says to an echo of at most 1000 bytes that has agreed to compression without context
// takeover, as in rules. The echo does not compress what would not become smaller.
var compressions = []struct{ name, says, told string }{
	{"7.2.3.1 one block", packed(text(packedHello)) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.1 two fragments", packed(begin(packedHello[:3])) + last(packedHello[3:]) + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"7.2.3.2 no context", packed(text(packedHello)) + packed(text(helloAgain)),
		`text "Hello", close 1007 "malformed compressed data"`},
	{"7.2.3.6 nothing", packed(text("\x00")) + packed(one(frame.Binary, "\x00")) + bye(1000, ""), `text "", binary "", close 1000 ""`},
	{"7.2.2 no bytes", packed(text("")), `close 1007 "malformed compressed data"`},
	{"7.2.2 half of it", packed(begin(packedHello[:3])) + last(""), `close 1007 "malformed compressed data"`},
	{"6 messages of both kinds", text("a") + squeezed(long) + text("b") + packed(text(packedHello)) + begin("c") + last("d") + bye(1000, ""),
		`text "a", packed text of 150, text "b", text "Hello", text "cd", close 1000 ""`},
	{"6 a message that was not compressed", text(long) + bye(1000, ""), `packed text of 150, close 1000 ""`},
	{"6 a binary", packed(one(frame.Binary, small(long))) + bye(1000, ""), `packed binary of 150, close 1000 ""`},
	{"6.1 the bit of a continuation", packed(begin(packedHello[:3])) + packed(last(packedHello[3:])),
		`close 1002 "a reserved bit is set"`},
	{"6.1 the bit of a ping", packed(ping("a")), `close 1002 "a reserved bit is set"`},
	{"6.1 the bit of a close", packed(bye(1000, "")), `close 1002 "a reserved bit is set"`},
	{"6.1 another bit", "\xa1\x80\x00\x00\x00\x00", `close 1002 "a reserved bit is set"`},
	{"6.1 control frames between fragments", packed(begin(small(long)[:9])) + ping("1") + more(small(long)[9:20]) + ping("2") + last(small(long)[20:]) + bye(1000, ""),
		`pong "1", pong "2", packed text of 150, close 1000 ""`},
	{"6.1 a close between fragments", packed(begin(packedHello)) + bye(1000, ""), `close 1000 ""`},
	{"6.1 a compressed text between fragments", packed(begin(packedHello)) + packed(text(packedHello)),
		`close 1002 "a message within a message, or a continuation of none"`},
	{"6.1 empty fragments", packed(begin("")) + more("") + more(packedHello) + last("") + bye(1000, ""), `text "Hello", close 1000 ""`},
	{"RFC 6455 8.1 no UTF-8", packed(text(small("a\xffb"))), `close 1007 "a text that is not UTF-8"`},
	{"RFC 6455 8.1 it ends in a character", packed(text(small("a\xe2\x82"))), `close 1007 "a text that is not UTF-8"`},
	{"RFC 6455 8.1 what comes is no text", packed(text("\x00\x03\x00\xfc\xff\xe2\x82\xac\x00")) + bye(1000, ""), `text "€", close 1000 ""`},
	{"RFC 6455 8.1 a binary is anything", packed(one(frame.Binary, small("\xff"))) + bye(1000, ""), `binary "\xff", close 1000 ""`},
	{"RFC 6455 10.4 the largest", packed(text(small(strings.Repeat("x", 1000)))) + bye(1000, ""), `packed text of 1000, close 1000 ""`},
	{"RFC 6455 10.4 one more", packed(text(small(strings.Repeat("x", 1001)))), `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 much more", packed(begin(small(strings.Repeat("x", 30_000)))) + last(""), `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 more than it can need", packed(one(frame.Binary, strings.Repeat("\x00\x00\x00\xff\xff", 250)))[:8], `close 1009 "a message is too large"`},
	{"RFC 6455 10.4 in fragments", packed(begin(strings.Repeat("\x00\x00\x00\xff\xff", 200))) + more(strings.Repeat("\x00\x00\x00\xff\xff", 50)),
		`close 1009 "a message is too large"`},
}

// A server without compression refuses what has not been agreed upon; so does one whose client has offered nothing.
func TestCompressionIsAgreedUpon(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		compress int
		fields   string
		agreed   string
		refuses  bool
	}{
		{0, offers, "", true},
		{256, "", "", true},
		{256, "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n", "", true},
		{256, "Sec-WebSocket-Extensions: x\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
			"permessage-deflate; server_no_context_takeover; client_no_context_takeover", false},
	} {
		v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compress: row.compress}}
		c, agreed := w.offer(v, listener.Limits{}, row.fields)
		require.Equal(t, row.agreed, agreed)
		c.send(text(long + long + long))
		if row.refuses {
			require.Equal(t, "text of 450", c.next())
			c.send(packed(text(packedHello)))
			require.Equal(t, `close 1002 "a reserved bit is set"`, c.rest())
			continue
		}
		require.Equal(t, "packed text of 450", c.next())
		c.send(text(long), packed(text(packedHello)), bye(1000, ""))
		require.Equal(t, `text of 150, text "Hello", close 1000 ""`, c.rest(), "small messages are not compressed")
	}
	for _, from := range []int{0, 256} {
		v := &websocket.Server{Handler: echo(nil), Options: websocket.Options{Compress: from}}
		c := w.connect(v, listener.Limits{})
		c.send(handshake + "Sec-WebSocket-Extensions: permessage-deflate; =1\r\n\r\n")
		require.Contains(t, c.until("\r\n\r\n"), "HTTP/1.1 400 ")
	}
}

// The price of a connection that has compressed and inflated messages: nothing is kept of them, or with context takeover
// the end of both.
func TestMeasureAConnectionThatCompresses(t *testing.T) {
	const n = 2000
	message := strings.Repeat("it is said again and again, ", 5000)
	bytesOfEach := func(o websocket.Options) float64 {
		w := newWorld(t)
		says := text(message)
		if o.Compress > 0 {
			says = squeezed(message)
		}
		v := &websocket.Server{Handler: echo(nil), Options: o}
		talk := func(p *peer) {
			w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, p, listener.Limits{})))
			p.say(w, handshake+offers+"\r\n")
			p.heard = nil
			p.say(w, says)
			require.Equal(t, o.Compress > 0, len(p.heard) < len(message))
			p.heard = nil
		}
		peers := make([]peer, n+1)
		talk(&peers[n]) // what the scheduler has for all of them is there then
		before := heap()
		for i := range n {
			talk(&peers[i])
		}
		defer runtime.KeepAlive(peers)
		return float64(heap()-before) / n
	}
	beside := func(o websocket.Options) func() float64 {
		return func() float64 { return bytesOfEach(o) - bytesOfEach(websocket.Options{}) }
	}
	price.AtMost(t, "bytes of compression", 200, beside(websocket.Options{Compress: 256}))
	price.AtMost(t, "bytes of context takeover", 41<<10, beside(websocket.Options{Compress: 64, Takeover: true}))
}

func heap() int {
	runtime.GC()
	runtime.GC() // what the first one has put off
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
