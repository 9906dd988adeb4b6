// Package frame is the wire format of WebSocket (RFC 6455 5): headers of frames, masks, texts that come in pieces, and
// what a close frame has. It knows no connection: bytes go in, and values or an [Error] come out.
package frame

import "encoding/binary"

// Opcode is the kind of a frame.
type Opcode uint8

// The opcodes of RFC 6455 5.2. All others are reserved.
const (
	Continuation Opcode = 0
	Text         Opcode = 1
	Binary       Opcode = 2
	Close        Opcode = 8
	Ping         Opcode = 9
	Pong         Opcode = 10
)

// Control reports whether frames of this opcode may come between the fragments of a message.
func (o Opcode) Control() bool { return o&8 != 0 }

const (
	// MaxHeader is the size of the longest header.
	MaxHeader = 14
	// MaxControl is how many bytes a control frame may carry.
	MaxControl = 125
)

// Error is a breach of the protocol by a peer, as a sentence for the reason of a close frame.
type Error string

// Error returns the sentence.
func (e Error) Error() string { return "websocket: " + string(e) }

// What Parse refuses.
const (
	ErrReserved   Error = "a reserved bit is set"
	ErrOpcode     Error = "an unknown opcode"
	ErrFragmented Error = "a fragmented control frame"
	ErrLong       Error = "a control frame of more than 125 bytes"
	ErrUnmasked   Error = "a frame without a mask"
	ErrMasked     Error = "a frame with a mask"
	ErrLength     Error = "a length in more bytes than it needs"
	ErrNegative   Error = "a length of more than 63 bits"
)

// Header is what precedes the payload of a frame. Final is false if further fragments of the message follow. Compressed is
// the first reserved bit, which the first frame of a compressed message has (RFC 7692 6).
type Header struct {
	Length     int64   // of the payload, in bytes
	Key        [4]byte // of the mask
	Opcode     Opcode  // the kind of the frame
	Final      bool    // the message ends with this frame
	Masked     bool    // the payload is masked with Key
	Compressed bool    // the first reserved bit
}

// Parse reads the header that p begins with, and returns how many bytes it has: 0 if p has only a part of it. masked says
// whether frames must have a mask, as a client's have, or must have none, and deflate whether messages may be compressed.
// An error is that of the first byte that is wrong, so it does not depend on how much of the header has come, except that a
// length is checked when it is complete.
func Parse(p []byte, masked, deflate bool) (h Header, n int, err error) {
	if len(p) < 1 {
		return h, 0, nil
	}
	h.Final, h.Compressed, h.Opcode = p[0]&0x80 != 0, p[0]&0x40 != 0, Opcode(p[0]&0x0F)
	switch {
	case p[0]&0x30 != 0 || h.Compressed && (!deflate || h.Opcode != Text && h.Opcode != Binary):
		return h, 0, ErrReserved
	case h.Opcode > Binary && h.Opcode < Close || h.Opcode > Pong:
		return h, 0, ErrOpcode
	case h.Opcode.Control() && !h.Final:
		return h, 0, ErrFragmented
	case len(p) < 2:
		return h, 0, nil
	}
	h.Masked, h.Length = p[1]&0x80 != 0, int64(p[1]&0x7F)
	switch {
	case h.Masked != masked && masked:
		return h, 0, ErrUnmasked
	case h.Masked != masked:
		return h, 0, ErrMasked
	case h.Opcode.Control() && h.Length > MaxControl:
		return h, 0, ErrLong
	}
	n = 2
	switch {
	case h.Length == 126 && len(p) < 4, h.Length == 127 && len(p) < 10:
		return h, 0, nil
	case h.Length == 126:
		n, h.Length = 4, int64(binary.BigEndian.Uint16(p[2:]))
		if h.Length < 126 {
			return h, 0, ErrLength
		}
	case h.Length == 127:
		n, h.Length = 10, int64(binary.BigEndian.Uint64(p[2:]))
		switch {
		case h.Length < 0:
			return h, 0, ErrNegative
		case h.Length < 1<<16:
			return h, 0, ErrLength
		}
	}
	if masked {
		if len(p) < n+4 {
			return h, 0, nil
		}
		n += copy(h.Key[:], p[n:])
	}
	return h, n, nil
}

// Append appends the header to p.
func (h Header) Append(p []byte) []byte {
	first, second := byte(h.Opcode), byte(0)
	if h.Final {
		first |= 0x80
	}
	if h.Compressed {
		first |= 0x40
	}
	if h.Masked {
		second = 0x80
	}
	switch {
	case h.Length < 126:
		p = append(p, first, second|byte(h.Length))
	case h.Length < 1<<16:
		p = binary.BigEndian.AppendUint16(append(p, first, second|126), uint16(h.Length))
	default:
		p = binary.BigEndian.AppendUint64(append(p, first, second|127), uint64(h.Length))
	}
	if h.Masked {
		p = append(p, h.Key[:]...)
	}
	return p
}
