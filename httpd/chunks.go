package httpd

import "math"

// Limits of the chunked coding, beside those of a body.
const (
	maxSizeLine   = 256
	maxExtensions = 16 << 10 // of a whole body
	maxTrailers   = 8 << 10
)

// chunks takes a chunked body apart (9112 7.1), octet by octet and in place, in whatever pieces it comes.
//
//	size ──▶ extension ──▶ LF ──▶ data ──▶ CR ──▶ LF ──▶ size …
//	                        └─ size 0 ──▶ trailers ──▶ over
type chunks struct {
	state      chunkState
	left       int64 // of the data
	digits     int
	line       int // octets of the present size line
	extensions int // octets of all extensions
	trailers   head
}

type chunkState uint8

const (
	inSize    chunkState = iota
	sizeBlank            // white space, which only an extension may follow
	inExtension
	sizeEnd // a CR was there: LF
	inData
	dataEnd // CR
	chunkEnd
	inTrailers
	over
)

var (
	errChunkSize = &refusal{400, "a chunk size that is no number, or too large"}
	errChunkLine = &refusal{400, "a chunk size line that is too long, or too many extensions"}
	errChunkEnd  = &refusal{400, "a chunk that does not end in CRLF"}
	errExtension = &refusal{400, "a control character in a chunk extension"}
	errTrailers  = &refusal{431, "trailers that are too large"}
	errForbidden = &refusal{400, "a trailer that would change the message"} // 9110 6.5.1
)

// next takes octets of in and returns how many, and the data among them: at most one piece, lent from in. Without
// data and with more in than was taken, it wants more octets behind those. ended tells that the body is over.
func (c *chunks) next(in []byte) (taken int, data []byte, ended bool, err error) {
	for taken < len(in) && c.state < inTrailers {
		if c.state == inData {
			n := int(min(c.left, int64(len(in)-taken)))
			data = in[taken : taken+n : taken+n]
			if c.left -= int64(n); c.left == 0 {
				c.state = dataEnd
			}
			return taken + n, data, false, nil
		}
		if err := c.octet(in[taken]); err != nil {
			return taken, nil, false, err
		}
		taken++
	}
	if c.state != inTrailers {
		return taken, nil, c.state == over, nil
	}
	n, err := c.trail(in[taken:])
	return taken + n, nil, c.state == over, err
}

// octet takes one that is no data.
func (c *chunks) octet(b byte) error {
	switch c.state {
	case inSize, sizeBlank, inExtension, sizeEnd:
		return c.sizeLine(b)
	case dataEnd:
		c.state = chunkEnd
		if b != '\r' {
			return errChunkEnd
		}
	case chunkEnd:
		c.state, c.digits, c.line = inSize, 0, 0
		if b != '\n' {
			return errChunkEnd
		}
	}
	return nil
}

func (c *chunks) sizeLine(b byte) error {
	if c.line++; c.line > maxSizeLine {
		return errChunkLine
	}
	switch {
	case c.state == sizeEnd && b == '\n':
		if c.state = inData; c.left == 0 {
			c.state = inTrailers
			c.trailers.begun = true
		}
	case c.state == sizeEnd:
		return errChunkEnd
	case b == '\r' && c.digits > 0 && c.state != sizeBlank:
		c.state = sizeEnd
	case c.state == inSize && hex[b]:
		if c.digits++; c.left > math.MaxInt64>>4 {
			return errChunkSize
		}
		c.left = c.left<<4 | int64(nibble(b))
	case c.state < inExtension && c.digits > 0 && b == ';':
		c.state = inExtension
	case c.state < inExtension && c.digits > 0 && blank(b): // 9110 5.6.3
		c.state = sizeBlank
	case c.state < inExtension:
		return errChunkSize
	case !inValue[b]:
		return errExtension
	}
	if c.state == inExtension {
		if c.extensions++; c.extensions > maxExtensions {
			return errChunkLine
		}
	}
	return nil
}

// trail reads the trailers, which are taken all at once when the last has come.
func (c *chunks) trail(in []byte) (int, error) {
	ended, err := c.trailers.read(in)
	switch {
	case err != nil:
		return 0, err
	case !ended && len(in) > maxTrailers, c.trailers.length > maxTrailers:
		return 0, errTrailers
	case !ended:
		return 0, nil
	}
	for s := ordinary + 1; s < specials; s++ {
		if c.trailers.special[s] > 0 {
			return 0, errForbidden
		}
	}
	c.state = over
	return c.trailers.length, nil
}

func nibble(b byte) byte {
	switch {
	case digit(b):
		return b - '0'
	case b >= 'a':
		return b - 'a' + 10
	}
	return b - 'A' + 10
}
