package deflate

import (
	"compress/flate"
	"errors"
	"io"
	"sync"
)

var (
	// ErrData is a message that is not compressed as it should be.
	ErrData = errors.New("websocket: malformed compressed data")
	// ErrSize is a message that is too large when it is inflated.
	ErrSize = errors.New("websocket: a compressed message is too large")
)

// end follows the bytes of a message: the part that senders leave out, and a final block, so that it is noticed where
// blocks end.
const end = tail + "\x01\x00\x00\xff\xff"

// finals bounds how many final blocks a message may have (RFC 7692 7.2.3.4): each costs a copy of the window.
const finals = 1000

// inflater reads a message. They are shared by all connections: one has 44 KB.
type inflater struct {
	flate io.ReadCloser
	rest  []byte // of the message, or of end
	ended bool   // it is of end
	space []byte // for a window
}

var inflaters = sync.Pool{New: func() any {
	x := &inflater{}
	x.flate = flate.NewReader(x)
	return x
}}

// inflate appends the message in packed to to. It may refer to window.
func (x *inflater) inflate(to, packed, window []byte, most int64) ([]byte, error) {
	x.rest, x.ended, most = packed, false, min(most, 1<<60)
	p, reset := to, x.flate.(flate.Resetter)
	_ = reset.Reset(x, window) // it never fails
	for n := 0; ; {
		size := int64(len(p) - len(to))
		if size > most {
			return to, ErrSize
		}
		if len(p) == cap(p) {
			// One byte more than there may be shows that there are too many.
			more := min(max(size, 3*int64(len(packed)), 512), most-size+1)
			p = append(make([]byte, 0, int64(len(p))+more), p...)
		}
		got, err := x.flate.Read(p[len(p):min(int64(cap(p)), int64(len(p))+most-size+1)])
		p = p[:len(p)+got]
		switch {
		case err == io.EOF && len(x.rest) == 0 && int64(len(p)-len(to)) <= most:
			return p, nil
		case err == io.EOF && len(x.rest) > 0: // a final block, and others after it
			if n++; n > finals {
				return to, ErrData
			}
			x.space = slide(append(x.space[:0], window...), p[len(to):], received)
			_ = reset.Reset(x, x.space)
		case err != nil && err != io.EOF:
			return to, ErrData
		}
	}
}

// more reports whether there is something to read.
func (x *inflater) more() bool {
	if len(x.rest) == 0 && !x.ended {
		x.rest, x.ended = ending, true
	}
	return len(x.rest) > 0
}

var ending = []byte(end)

// ReadByte has the flate.Reader not read more than it needs.
func (x *inflater) ReadByte() (byte, error) {
	if !x.more() {
		return 0, io.EOF
	}
	b := x.rest[0]
	x.rest = x.rest[1:]
	return b, nil
}

func (x *inflater) Read(p []byte) (int, error) {
	if !x.more() {
		return 0, io.EOF
	}
	n := copy(p, x.rest)
	x.rest = x.rest[n:]
	return n, nil
}
