package http1

import (
	"math"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// The limits of the chunked coding, beside the limits of a body.
const (
	maxSizeLine   = 256
	maxExtensions = 16 << 10 // of a whole body
	maxTrailers   = 8 << 10
)

// Chunks parses a chunked body (9112 7.1) byte by byte and in place, in whatever pieces it comes. The zero value is
// ready.
//
//	size ──▶ extension ──▶ LF ──▶ data ──▶ CR ──▶ LF ──▶ size …
//	                        └─ size 0 ──▶ trailers ──▶ over
type Chunks struct {
	state      chunkState
	left       int64 // of the data
	digits     int
	line       int     // bytes of the present size line
	extensions int     // bytes of all extensions
	Trailers   *Parser // set once the body is over. Positions are from the first byte of the trailers
}

type chunkState uint8

const (
	inSize      chunkState = iota
	sizeBlank              // white space, which only an extension may follow
	beforeName             // of an extension
	inName                 // a token
	afterName              // white space, after which there is a value or another extension
	beforeValue            // of an extension
	inValue                // a token
	inQuotes
	escaped    // after a backslash in quotes
	afterQuote // after the closing one
	afterValue // white space, which only another extension may follow
	sizeEnd    // after CR: LF
	inData
	dataEnd // CR
	chunkEnd
	inTrailers
	over
)

var (
	errChunkSize = &syntax.Refusal{Status: 400, Why: "a chunk size that is not a number, or too large"}
	errChunkLine = &syntax.Refusal{Status: 400, Why: "a chunk size line that is too long, or too many extensions"}
	errChunkEnd  = &syntax.Refusal{Status: 400, Why: "a chunk that does not end in CRLF"}
	errExtension = &syntax.Refusal{Status: 400, Why: "a chunk extension with a bad name or value"}
	errForbidden = &syntax.Refusal{Status: 400, Why: "a trailer that would change the message"} // 9110 6.5.1

	// ErrTrailers is the refusal of trailers that are too large, which a connection with less room also uses.
	ErrTrailers = &syntax.Refusal{Status: 431, Why: "trailers that are too large"}
)

// Reset prepares c for the next body. The list of trailers keeps its memory.
func (c *Chunks) Reset() {
	t := c.Trailers
	if t != nil {
		*t = Parser{Head: syntax.Head{Fields: t.Fields[:0]}}
	}
	*c = Chunks{Trailers: t}
}

// Next takes bytes of in and returns how many, and the data among them: at most one piece, lent from in. If it returns
// no data and takes less than in, it wants more bytes after them. ended reports that the body is over.
func (c *Chunks) Next(in []byte) (taken int, data []byte, ended bool, err error) {
	for taken < len(in) && c.state < inTrailers {
		if c.state == inData {
			n := int(min(c.left, int64(len(in)-taken)))
			data = in[taken : taken+n : taken+n]
			if c.left -= int64(n); c.left == 0 {
				c.state = dataEnd
			}
			return taken + n, data, false, nil
		}
		if err := c.take(in[taken]); err != nil {
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

// take takes a byte that is not data.
func (c *Chunks) take(b byte) error {
	switch c.state {
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
	default:
		return c.sizeLine(b)
	}
	return nil
}

func (c *Chunks) sizeLine(b byte) error {
	if c.line++; c.line > maxSizeLine {
		return errChunkLine
	}
	switch {
	case c.state == sizeEnd && b == '\n':
		if c.state = inData; c.left == 0 {
			c.state = inTrailers
			if c.Trailers == nil { // a stream may never come here
				c.Trailers = &Parser{}
			}
			c.Trailers.begun = true
		}
	case c.state == sizeEnd:
		return errChunkEnd
	case beforeName <= c.state:
		return c.extension(b)
	case b == '\r' && c.digits > 0 && c.state == inSize:
		c.state = sizeEnd
	case c.state == inSize && syntax.Hex[b]:
		if c.digits++; c.left > math.MaxInt64>>4 {
			return errChunkSize
		}
		c.left = c.left<<4 | int64(syntax.Nibble(b))
	case c.digits > 0 && b == ';':
		c.state = beforeName
	case c.digits > 0 && syntax.IsBlank(b): // 9110 5.6.3
		c.state = sizeBlank
	default:
		return errChunkSize
	}
	return nil
}

// extension takes a byte of the extensions, which are checked and ignored (9112 7.1.1).
func (c *Chunks) extension(b byte) error {
	if c.extensions++; c.extensions > maxExtensions {
		return errChunkLine
	}
	named, valued := c.state == inName, c.state == inValue || c.state == afterQuote
	switch {
	case c.state == escaped && syntax.Value[b]:
		c.state = inQuotes
	case c.state == inQuotes && syntax.Value[b]:
		switch b {
		case '"':
			c.state = afterQuote
		case '\\':
			c.state = escaped
		}
	case c.state == inQuotes || c.state == escaped:
		return errExtension
	case syntax.Token[b] && (named || c.state == beforeName):
		c.state = inName
	case syntax.Token[b] && (c.state == inValue || c.state == beforeValue):
		c.state = inValue
	case b == '"' && c.state == beforeValue:
		c.state = inQuotes
	case b == '=' && (named || c.state == afterName):
		c.state = beforeValue
	case b == ';' && (named || valued || c.state == afterName || c.state == afterValue):
		c.state = beforeName
	case b == '\r' && (named || valued):
		c.state = sizeEnd
	case !syntax.IsBlank(b):
		return errExtension
	case named:
		c.state = afterName
	case valued:
		c.state = afterValue
	}
	return nil
}

// trail reads the trailers, which are taken all at once when the last has come.
func (c *Chunks) trail(in []byte) (int, error) {
	ended, err := c.Trailers.Read(in)
	switch {
	case err != nil:
		return 0, err
	case !ended && len(in) > maxTrailers, c.Trailers.Length > maxTrailers:
		return 0, ErrTrailers
	case !ended:
		return 0, nil
	}
	for k := syntax.Ordinary + 1; k < syntax.Kinds; k++ {
		if c.Trailers.Count[k] > 0 {
			return 0, errForbidden
		}
	}
	c.state = over
	return c.Trailers.Length, nil
}
