package worlds_test

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// frame is a frame of HTTP/2, as the clients make and read it (RFC 9113 4.1): what they know of the syntax is their own.
type frame struct {
	kind, flags byte
	id          uint32
	payload     []byte
}

// The types of frames, and their flags.
const (
	ofData, ofHeaders, ofReset, ofSettings, ofPing, ofGoAway, ofWindow, ofMore = 0, 1, 3, 4, 6, 7, 8, 9

	endStream, ack, endHeaders, padded, weighed = 1, 1, 4, 8, 32
)

const (
	preface     = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameMost   = 16384
	startWindow = 65535
)

func (f frame) append(to []byte) []byte {
	n := len(f.payload)
	to = append(to, byte(n>>16), byte(n>>8), byte(n), f.kind, f.flags)
	return append(binary.BigEndian.AppendUint32(to, f.id), f.payload...)
}

// pad adds padding to a frame that has none, up to most bytes in all.
func (f frame) pad(r *rand.Rand, most int) frame {
	if most = min(most, 256); most > 0 && r.IntN(4) == 0 {
		n := r.IntN(most)
		f.flags |= padded
		f.payload = append(append([]byte{byte(n)}, f.payload...), make([]byte, n)...)
	}
	return f
}

// word is a frame whose payload is a number.
func word(kind byte, id, n uint32) frame {
	return frame{kind: kind, id: id, payload: binary.BigEndian.AppendUint32(nil, n)}
}

// setting is SETTINGS with these identifiers and values.
func setting(pairs ...uint32) (f frame) {
	f.kind = ofSettings
	for i := 0; i < len(pairs); i += 2 {
		f.payload = binary.BigEndian.AppendUint16(f.payload, uint16(pairs[i]))
		f.payload = binary.BigEndian.AppendUint32(f.payload, pairs[i+1])
	}
	return f
}

// readFrame reads a frame of a server that was allowed no longer ones.
func readFrame(in io.Reader) (f frame, err error) {
	var h [9]byte
	if _, err = io.ReadFull(in, h[:]); err != nil {
		return f, err
	}
	f.kind, f.flags, f.id = h[3], h[4], binary.BigEndian.Uint32(h[5:])
	f.payload = make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
	_, err = io.ReadFull(in, f.payload)
	return f, err
}

func (f frame) number() uint32 { return binary.BigEndian.Uint32(f.payload) }

// block is a field block as frames: HEADERS, and CONTINUATION where it is cut.
func block(r *rand.Rand, id uint32, fields []byte, end bool) (b []byte) {
	f := frame{kind: ofHeaders, id: id}
	if end {
		f.flags = endStream
	}
	for {
		n := len(fields)
		if r.IntN(3) == 0 {
			n = r.IntN(n + 1)
		}
		f.payload = fields[:n:n]
		if fields = fields[n:]; len(fields) == 0 {
			f.flags |= endHeaders
		}
		if f.kind == ofHeaders {
			if r.IntN(8) == 0 { // a priority, which has no meaning any more
				f.flags |= weighed
				f.payload = append([]byte{0, 0, 0, 0, 15}, f.payload...)
			}
			f = f.pad(r, 256)
		}
		b = f.append(b)
		if len(fields) == 0 {
			return b
		}
		f = frame{kind: ofMore, id: id}
	}
}

// encode makes a field block of names and values.
func encode(to *hpack.Encoder, out *strings.Builder, pairs ...string) []byte {
	out.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = to.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return []byte(out.String())
}
