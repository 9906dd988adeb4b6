package worlds_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	wire "github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

// The opcodes of RFC 6455 5.2, and bits beside them.
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

// frame is a frame. The headers, masks and close frames of package frame have tables of the RFC's examples, and libraries that talk
// to it; here it is the other side that is looked at.
type frame struct {
	final   bool
	opcode  byte
	payload []byte
}

// bytes returns the frame of a client.
func (f frame) bytes(key [4]byte) []byte {
	p := header(f.final, f.opcode, key, len(f.payload))
	begin := len(p)
	p = append(p, f.payload...)
	wire.Mask(p[begin:], p[begin:], key, 0)
	return p
}

// header returns the header of a frame of a client.
func header(final bool, opcode byte, key [4]byte, length int) []byte {
	return wire.Header{Final: final, Opcode: wire.Opcode(opcode), Masked: true, Key: key, Length: int64(length)}.Append(nil)
}

// errRules is what a server must not send.
var errRules = errors.New("the server breaks the rules")

// reserved1 is the bit of a compressed message (RFC 7692 6).
const reserved1 = 0x40

// readFrame reads the frame of a server. packed reports whether it begins a compressed message, and begun whether the
// connection has ended within it.
func readFrame(r *bufio.Reader) (f frame, packed, begun bool, err error) {
	var head []byte
	for {
		h, n, err := wire.Parse(head, false, true)
		switch {
		case err != nil:
			return f, false, false, fmt.Errorf("%w: %w", errRules, err)
		case n > 0:
			f = frame{h.Final, byte(h.Opcode), make([]byte, min(h.Length, 1<<24))} // no server here sends as much
			_, err := io.ReadFull(r, f.payload)
			return f, h.Compressed, err != nil, err
		}
		b, err := r.ReadByte()
		if err != nil {
			return f, false, len(head) > 0, err
		}
		head = append(head, b)
	}
}

// status returns what a close frame says. Without a code that is 1005.
func (f frame) status() (code int, reason string, err error) {
	code, said, err := wire.ParseClose(f.payload)
	if err != nil {
		err = fmt.Errorf("%w: %w", errRules, err)
	}
	return code, string(said), err
}

// closing returns the payload of a close frame.
func closing(code int, reason string) []byte { return wire.AppendClose(nil, code, reason) }
