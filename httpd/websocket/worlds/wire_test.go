package worlds_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The opcodes of RFC 6455 5.2.
const (
	more   = 0
	text   = 1
	binry  = 2
	bye    = 8
	ping   = 9
	pong   = 10
	final  = 0x80
	masked = 0x80
)

// frame is a frame, as RFC 6455 5.2 draws it. It is written and read byte by byte, by code that has nothing in common with
// that of package websocket.
type frame struct {
	final   bool
	opcode  byte
	payload []byte
}

// bytes returns the frame of a client.
func (f frame) bytes(key [4]byte) []byte {
	first := f.opcode
	if f.final {
		first |= final
	}
	p := head(first, masked, len(f.payload))
	p = append(p, key[:]...)
	for i, b := range f.payload {
		p = append(p, b^key[i%4])
	}
	return p
}

// head returns the first bytes of a header.
func head(first, mask byte, length int) []byte {
	switch {
	case length <= 125:
		return []byte{first, mask | byte(length)}
	case length <= 65535:
		return []byte{first, mask | 126, byte(length >> 8), byte(length)}
	}
	return binary.BigEndian.AppendUint64([]byte{first, mask | 127}, uint64(length))
}

// errRules is what a server must not send.
var errRules = errors.New("the server breaks the rules")

// reserved1 is the bit of a compressed message (RFC 7692 6).
const reserved1 = 0x40

// readFrame reads the frame of a server. packed reports whether it begins a compressed message, and begun whether the
// connection has ended within it.
func readFrame(r io.Reader) (f frame, packed, begun bool, err error) {
	var b [10]byte
	if n, err := io.ReadFull(r, b[:2]); err != nil {
		return f, false, n > 0, err
	}
	f.final, f.opcode, packed = b[0]&final != 0, b[0]&15, b[0]&reserved1 != 0
	n := int(b[1])
	switch {
	case b[0]&0x30 != 0 || packed && f.opcode != text && f.opcode != binry:
		return f, false, false, fmt.Errorf("%w: a reserved bit", errRules)
	case n&masked != 0:
		return f, false, false, fmt.Errorf("%w: a mask", errRules)
	case f.opcode >= bye && (n > 125 || !f.final):
		return f, false, false, fmt.Errorf("%w: a control frame that is long, or a fragment", errRules)
	case f.opcode > pong || f.opcode > binry && f.opcode < bye:
		return f, false, false, fmt.Errorf("%w: opcode %d", errRules, f.opcode)
	case n == 126:
		if _, err := io.ReadFull(r, b[:2]); err != nil {
			return f, packed, true, err
		}
		if n = int(b[0])<<8 | int(b[1]); n < 126 {
			return f, false, false, fmt.Errorf("%w: a long length of %d", errRules, n)
		}
	case n == 127:
		if _, err := io.ReadFull(r, b[:8]); err != nil {
			return f, packed, true, err
		}
		if n = int(binary.BigEndian.Uint64(b[:])); n < 65536 || n > 1<<24 {
			return f, false, false, fmt.Errorf("%w: a long length of %d", errRules, n)
		}
	}
	f.payload = make([]byte, n)
	_, err = io.ReadFull(r, f.payload)
	return f, packed, err != nil, err
}

// status returns what a close frame says. Without a code that is 1005.
func (f frame) status() (code int, reason string, err error) {
	if len(f.payload) == 0 {
		return 1005, "", nil
	}
	if len(f.payload) == 1 {
		return 0, "", fmt.Errorf("%w: a close frame of one byte", errRules)
	}
	code, reason = int(f.payload[0])<<8|int(f.payload[1]), string(f.payload[2:])
	if !utf8.ValidString(reason) || code < 1000 || code == 1004 || code == 1005 || code == 1006 || code > 1014 && code < 3000 || code > 4999 {
		return 0, "", fmt.Errorf("%w: a close frame with %d %q", errRules, code, reason)
	}
	return code, reason, nil
}

// closing returns the payload of a close frame.
func closing(code int, reason string) []byte {
	if code == 1005 {
		return nil
	}
	return append([]byte{byte(code >> 8), byte(code)}, reason...)
}
