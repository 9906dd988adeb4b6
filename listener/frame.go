package listener

import (
	"encoding/binary"
	"io"
	"math"
)

// Length says how the length of a message is encoded in front of the message: see [Frame]. Lengths are in bytes.
type Length uint8

// The encodings of a length. The zero Length is Uint32. Uint32 and Uint16 have the highest byte first (big-endian).
const (
	Uint32  Length = iota // a length takes four bytes
	Uint16                // a length takes two bytes, so a message has at most 65,535
	Uvarint               // a length takes one to ten bytes of seven bits, the lowest first, as in Protocol Buffers: see [binary.Uvarint]
)

// Frame reads length-prefixed messages from a connection: set Conn and Length, and call Read. A message that has
// arrived in part stays unread. Nothing is kept from call to call. [Length.Append] makes such messages.
type Frame struct {
	Conn   *Conn  // the connection to read from
	Length Length // how the lengths are encoded
	Max    int    // the longest message, without its length, in bytes; 0 means Limits.Read, which bounds both together
}

// Read returns the next message without its length, lent until the turn ends. After the last one the error is io.EOF,
// or a [PeerError] with io.ErrUnexpectedEOF if the peer ended in the middle of one. For a message that is too long the
// error is a PeerError with ErrTooLong, as soon as its length has arrived; the message stays unread. Other errors are
// as for [Conn.Peek]; pass them to [Next].
func (f *Frame) Read() ([]byte, error) {
	need := 1
	for {
		in, err := f.Conn.Peek(need)
		switch {
		case len(in) >= need:
		case err == io.EOF && len(in) > 0:
			return nil, &PeerError{io.ErrUnexpectedEOF}
		case err == ErrTooLong:
			return nil, &PeerError{err}
		default:
			return nil, err
		}
		n, head := f.Length.read(in)
		most := f.Conn.settings.limits.Read
		if f.Max > 0 {
			most = min(most, f.Max)
		}
		switch {
		case head == 0:
			need = len(in) + 1
		case head < 0 || n > uint64(most):
			return nil, &PeerError{ErrTooLong}
		case len(in) < head+int(n):
			need = head + int(n)
		default:
			f.Conn.Discard(head + int(n))
			return in[head : head+int(n) : head+int(n)], nil // an append must not write over the next one
		}
	}
}

// Append appends the length of message and then message to b, and returns the result. It fails with ErrTooLong, and
// appends nothing, if the message is too long for this encoding. Any goroutine.
func (l Length) Append(b, message []byte) ([]byte, error) {
	n := uint64(len(message))
	switch {
	case l == Uvarint:
		b = binary.AppendUvarint(b, n)
	case l == Uint16 && n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	case l == Uint32 && n <= math.MaxUint32:
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	default:
		return b, ErrTooLong
	}
	return append(b, message...), nil
}

// read returns the length in front of b, and its size, which is 0 if there is more to come, and less if it is out of range.
func (l Length) read(b []byte) (n uint64, size int) {
	switch {
	case l == Uvarint:
		return binary.Uvarint(b)
	case l == Uint16 && len(b) >= 2:
		return uint64(binary.BigEndian.Uint16(b)), 2
	case l == Uint32 && len(b) >= 4:
		return uint64(binary.BigEndian.Uint32(b)), 4
	case l > Uvarint:
		panic("listener: a Frame with an unknown Length")
	}
	return 0, 0
}
