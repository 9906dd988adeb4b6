package e2e

import (
	"testing"

	"github.com/daimon-go/daimon/internal/servertest"
)

// TestWebSocketEcho has a client whose mask is zero, so its frames can be read.
func TestWebSocketEcho(t *testing.T) {
	t.Parallel()
	outside(t)
	server := serve(t, "websocket-echo", "-reactors", "2")
	c := dial(t, server.Addr)
	servertest.Send(t, c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat.v2, chat.v1\r\n\r\n")
	servertest.Expect(t, c, "HTTP/1.1 101 Switching Protocols\r\n")
	head := ""
	for b := make([]byte, 1); len(head) < 4 || head[len(head)-4:] != "\r\n\r\n"; head += string(b) {
		if _, err := c.Read(b); err != nil {
			t.Fatalf("after %q: %v", head, err)
		}
	}
	servertest.Send(t, c, "\x81\x85\x00\x00\x00\x00Hello\x89\x80\x00\x00\x00\x00")
	servertest.Expect(t, c, "\x81\x05Hello\x8a\x00")
	servertest.Send(t, c, "\x88\x82\x00\x00\x00\x00\x03\xe8")
	servertest.Expect(t, c, "\x88\x02\x03\xe8")
	servertest.ExpectEOF(t, c)
	_ = c.Close()
	server.Stop(t)
}
