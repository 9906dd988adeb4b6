package chat

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// visitor is the connection of a page: a client of WebSocket whose messages are frames of text.
type visitor struct {
	net.Conn
	in      *bufio.Reader
	writing bool
	turn    func() // waits until another part of the script has written; nil: there is none
}

// visit makes the handshake on a connection, as a page of that origin; "" is no page.
func visit(c net.Conn, origin string) (*visitor, error) {
	if origin != "" {
		origin = "Origin: " + origin + "\r\n"
	}
	_, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: chat\r\n"+origin+"Connection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: c, in: bufio.NewReader(c)}
	r, err := http.ReadResponse(v.in, nil)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		_ = r.Body.Close()
		return nil, fmt.Errorf("status %d", r.StatusCode)
	}
	return v, nil
}

// frame sends a frame. Its key is 0, so that it is not changed by masking.
func (v *visitor) frame(opcode byte, payload []byte) error {
	f := []byte{0x80 | opcode, 0x80 | byte(min(len(payload), 126))}
	if len(payload) >= 126 {
		f = binary.BigEndian.AppendUint16(f, uint16(len(payload)))
	}
	for v.turn != nil && v.writing {
		v.turn()
	}
	v.writing = true
	defer func() { v.writing = false }()
	_, err := v.Write(append(append(f, 0, 0, 0, 0), payload...))
	return err
}

func (v *visitor) wish(w wish) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return v.frame(1, text)
}

// closed is the code with which the server has closed.
type closed int

func (c closed) Error() string { return fmt.Sprintf("closed with code %d", int(c)) }

// next returns the next news. It answers pings and a close.
func (v *visitor) next() (n news, err error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(v.in, head[:]); err != nil {
			return n, err
		}
		length := int(head[1])
		if length == 126 {
			var more [2]byte
			if _, err := io.ReadFull(v.in, more[:]); err != nil {
				return n, err
			}
			length = int(binary.BigEndian.Uint16(more[:]))
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(v.in, payload); err != nil {
			return n, err
		}
		switch head[0] & 0xf {
		case 1:
			return n, json.Unmarshal(payload, &n)
		case 8:
			_ = v.frame(8, payload[:2]) // the server may have gone
			return n, closed(binary.BigEndian.Uint16(payload))
		case 9:
			if err := v.frame(10, payload); err != nil {
				return n, err
			}
		}
	}
}
