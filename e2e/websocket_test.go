package e2e

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
)

// TestWebSocketEcho has a client whose mask is zero, so its frames can be read.
func TestWebSocketEcho(t *testing.T) {
	t.Parallel()
	outside(t)
	server := serve(t, "websocket-echo", "-reactors", "2")
	c := dial(t, server.Addr)
	upgrade(t, c, "Sec-WebSocket-Protocol: chat.v2, chat.v1\r\n")
	servertest.Send(t, c, "\x81\x85\x00\x00\x00\x00Hello\x89\x80\x00\x00\x00\x00")
	servertest.Expect(t, c, "\x81\x05Hello\x8a\x00")
	servertest.Send(t, c, "\x88\x82\x00\x00\x00\x00\x03\xe8")
	servertest.Expect(t, c, "\x88\x02\x03\xe8")
	servertest.ExpectEOF(t, c)
	_ = c.Close()
	server.Stop(t)
}

// upgrade makes the handshake, with further fields, and returns the head of the answer.
func upgrade(t *testing.T, c net.Conn, fields string) (head string) {
	servertest.Send(t, c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+fields+"\r\n")
	servertest.Expect(t, c, "HTTP/1.1 101 Switching Protocols\r\n")
	for b := make([]byte, 1); len(head) < 4 || head[len(head)-4:] != "\r\n\r\n"; head += string(b) {
		if _, err := c.Read(b); err != nil {
			t.Fatalf("after %q: %v", head, err)
		}
	}
	return head
}

// With -compress it takes the example of RFC 7692 7.2.3.1; the answer is too small to be compressed.
func TestWebSocketEchoCompresses(t *testing.T) {
	t.Parallel()
	outside(t)
	server := serve(t, "websocket-echo", "-compress")
	c := dial(t, server.Addr)
	require.Contains(t, upgrade(t, c, "Sec-WebSocket-Extensions: permessage-deflate\r\n"), "Sec-WebSocket-Extensions: permessage-deflate;")
	servertest.Send(t, c, "\xc1\x87\x00\x00\x00\x00\xf2\x48\xcd\xc9\xc9\x07\x00")
	servertest.Expect(t, c, "\x81\x05Hello")
	_ = c.Close()
	server.Stop(t)
}
