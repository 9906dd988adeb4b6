package worlds_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldWebSocket has clients send messages over TLS, and read what is sent back meanwhile. When they have
// everything they close. Package
// httpd/websocket/worlds has everything else that a connection of WebSocket may do.
func TestWorldWebSocket(t *testing.T) {
	var seen counts
	try(t, sim.Options{Faults: sim.Anything()}, func(w *world) {
		const address = "10.0.0.1:443"
		w.server.NextProtos, w.client.NextProtos = []string{"http/1.1"}, []string{"http/1.1"}
		v := &websocket.Server{Handler: sendsBack, Options: websocket.Options{Timeouts: websocket.Timeouts{Ping: -1, Pong: -1, Close: -1}}}
		site := &httpd.Server{Handler: v.Serve, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
		limits := patient(w.World)
		limits.Read = max(limits.Read, 1000) // so that a request fits
		tcp := &service.TCP{Address: address, Handler: site.Serve, Limits: limits, Filters: w.filters(), FilterTimeout: time.Hour}
		server, err := w.Server("web", config(w.World), append(engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		for range 5 {
			w.Client(address, w.chats(&seen))
		}
		endsSometimes(w.World, server, func() {})
	})
	t.Log(seen)
	require.Positive(t, seen.whole)
}

// sendsBack makes the action of a connection that sends back each message.
func sendsBack(c *websocket.Conn, _ *httpd.Request) act.Action {
	var kept websocket.Message // waits for room
	return act.Func(func(t *act.Task) act.Directive {
		m, err := kept, error(nil)
		if m.Type == 0 {
			m, err = c.Receive()
		}
		if err == nil {
			if err = c.Send(m.Type, m.Data); err == nil {
				kept = websocket.Message{}
			} else if kept.Type == 0 {
				kept = websocket.Message{Type: m.Type, Data: append([]byte{}, m.Data...)}
			}
		}
		return c.Next(t, err)
	})
}

// chats is the script of a client of WebSocket.
func (w *world) chats(seen *counts) sim.Script {
	return func(c *sim.Client) error {
		x := newTalker(w, c)
		if err := x.tls.Handshake(); err != nil {
			return unexpected(err)
		}
		x.shaken = true
		seen.handshakes++
		c.Go(func(*sim.Client) error { return x.hears(seen) })
		const asks = "GET / HTTP/1.1\r\nHost: world\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
		if _, err := io.WriteString(x.tls, asks); err != nil {
			return err
		}
		for largest := max(1<<c.Rand().IntN(16), x.total/100); x.sent < x.total; {
			if err := x.says(0x82, min(x.total-x.sent, 1+c.Rand().IntN(largest), 65535)); err != nil {
				return err
			}
		}
		return nil
	}
}

// says sends a frame with the next n bytes.
func (x *talker) says(first byte, n int) error {
	key := binary.BigEndian.AppendUint32(nil, x.Rand().Uint32())
	p := []byte{first, 0x80 | byte(n)}
	if n > 125 {
		p = []byte{first, 0x80 | 126, byte(n >> 8), byte(n)}
	}
	p = append(p, key...)
	for i := range n {
		p = append(p, x.at(x.sent+i)^key[i%4])
	}
	x.sent += n
	if _, err := x.tls.Write(p); err != nil {
		return err
	}
	return x.flush()
}

// hears reads everything that comes back, the close frame, and the end.
func (x *talker) hears(seen *counts) error {
	in := bufio.NewReaderSize(x.tls, 16+x.Rand().IntN(5000))
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return unexpected(err)
		}
	}
	for {
		head := make([]byte, 2, 4)
		if _, err := io.ReadFull(in, head); err != nil {
			return unexpected(err)
		}
		n := int(head[1])
		if n == 126 {
			if _, err := io.ReadFull(in, head[2:4]); err != nil {
				return unexpected(err)
			}
			n = int(binary.BigEndian.Uint16(head[2:4]))
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(in, p); err != nil {
			return unexpected(err)
		}
		switch {
		case head[0] == 0x82:
			if err := x.compare(p); err != nil {
				return err
			}
			if x.got == x.total {
				if err := x.says(0x88, 0); err != nil {
					return err
				}
			}
		case head[0] == 0x88 && n == 2 && binary.BigEndian.Uint16(p) == 1001: // an order has to explain it
			return io.ErrUnexpectedEOF
		case head[0] != 0x88 || n != 0 || x.got != x.total:
			return fmt.Errorf("%x, with %d bytes of %d received", head, x.got, x.total)
		default:
			if in.Buffered() > 0 {
				return fmt.Errorf("%d bytes are behind the close frame", in.Buffered())
			}
			return x.end(seen)
		}
	}
}
