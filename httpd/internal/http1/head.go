// Package http1 is the syntax of HTTP/1.1 (RFC 9112): it takes requests and the heads of responses apart, and begins responses.
// Bytes go in, and positions, a framing or a [syntax.Refusal] come out. It knows no connection: its caller passes an incomplete
// part again, with more after it.
package http1

import (
	"bytes"
	"cmp"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// The limits of a head, by default.
const (
	maxLine   = maxHead / 4 // the request line
	maxHead   = 64 << 10    // up to and with the empty line
	maxFields = 100
	maxBlank  = 8 // empty lines before the request line
)

// Limits bound the heads that a server accepts.
type Limits struct {
	Head, Fields int  // bytes and fields of a head; 0: the default
	Connect      bool // CONNECT, whose lines may end in LF alone, since nothing follows on its connection
}

// Parser reads the request line and the fields of a request, line by line as they come, in place. It keeps positions in
// the bytes, which the caller holds and only appends to. It allocates nothing but the list of fields, once.
//
// If Response is set, it reads the head of a response, which begins with a status line.
type Parser struct {
	syntax.Head
	Limits   Limits // set by the caller; Reset keeps it
	Minor    byte   // of the version, 0 or 1
	Blank    uint8  // empty lines before the request line
	Response bool   // set by the caller; Reset sets it to false
	Status   uint16 // of a response
	Length   int    // of the whole head, once it has ended
	start    int    // of the present line
	looked   int    // up to where the end of the line was searched for
	begun    bool   // the request line was read
}

var (
	errLineEnd     = &syntax.Refusal{Status: 400, Why: "a line does not end in CRLF"}                                       // 9112 2.2
	errControl     = &syntax.Refusal{Status: 400, Why: "a control character in a head"}                                     // 9110 5.5; 9112 3
	errBlank       = &syntax.Refusal{Status: 400, Why: "too many empty lines before a request"}                             // 9112 2.2
	errRequestLine = &syntax.Refusal{Status: 400, Why: "a request line that is not method SP target SP version"}            // 9112 3
	errMethod      = &syntax.Refusal{Status: 400, Why: "a method that is not a token"}                                      // 9110 9.1
	errStatusLine  = &syntax.Refusal{Status: 502, Why: "a status line that is not version SP code SP reason"}               // 9112 4
	errVersion     = &syntax.Refusal{Status: 400, Why: "a version that is none of HTTP"}                                    // 9112 2.3
	errTarget      = &syntax.Refusal{Status: 400, Why: "a byte in the target that none may have"}                           // 9112 3.2
	errLongLine    = &syntax.Refusal{Status: 414, Why: "a request line that is too long"}                                   // 9112 3
	errFold        = &syntax.Refusal{Status: 400, Why: "a line that begins with white space"}                               // 9112 2.2, 5.2
	errColon       = &syntax.Refusal{Status: 400, Why: "a field line without a colon"}                                      // 9110 5.1
	errName        = &syntax.Refusal{Status: 400, Why: "a field name that is not a token, or white space before the colon"} // 9112 5.1
	errManyFields  = &syntax.Refusal{Status: 431, Why: "too many fields"}                                                   // 6585 5

	// ErrMajor is the refusal of HTTP/2 and above, whose connections begin in another way.
	ErrMajor = &syntax.Refusal{Status: 505, Why: "a major version other than 1"} // 9110 15.6.6

	// ErrLargeHead is the refusal of a head that is too large, which a connection with less room also uses.
	ErrLargeHead = &syntax.Refusal{Status: 431, Why: "a header section that is too large"} // 6585 5
)

// Reset prepares p for the next request on a connection. The list of fields keeps its memory,
// unless it is large.
func (p *Parser) Reset() {
	fields := p.Fields[:0]
	if cap(fields) > 2*maxFields {
		fields = nil
	}
	limits := p.Limits
	*p = Parser{} // in place: a literal with the two would be made elsewhere, and copied
	p.Fields, p.Limits = fields, limits
}

// OnlyBlank reports whether the first n bytes are complete empty lines and nothing else.
func (p *Parser) OnlyBlank(n int) bool { return !p.begun && p.start == n }

// Read continues where it stopped and reports whether the head has ended, which sets p.Length. in is all that has come,
// from the first byte of the request. The search for the end of a line also finds control characters, since CR is one:
// so values are checked once, and bytes that are not HTTP at all (TLS, for example) are refused at once.
func (p *Parser) Read(in []byte) (ended bool, err error) {
	looked := p.looked // the next search waits for it, so it stays in a register
	for {
		end := looked
		if end == len(in) || in[end] != '\r' { // the line is not empty
			end = syntax.Control(in, looked)
		}
		next := end + 2
		if end+1 >= len(in) || in[end] != '\r' || in[end+1] != '\n' {
			if next = end + 1; !p.bareLF(in, end) {
				return false, p.noLineEnd(in, end)
			}
		}
		if err := p.within(next); err != nil {
			return false, err
		}
		start := p.start
		p.start, looked = next, next
		switch {
		case start < end && p.begun:
			err = p.fieldLine(in[:end], start)
		case start < end && p.Response:
			err = p.statusLine(in[start:end])
		case start < end:
			err = p.requestLine(in[:end], start)
		case p.begun:
			p.Length = p.start
			return true, nil
		case p.Response: // empty lines are ignored before a request only (9112 2.2)
			err = errStatusLine
		default:
			if p.Blank++; p.Blank > maxBlank {
				err = errBlank
			}
		}
		if err != nil {
			return false, err
		}
	}
}

// bareLF reports whether an LF at i ends a line by itself: as the client of net/rpc sends CONNECT.
func (p *Parser) bareLF(in []byte, i int) bool {
	return p.Limits.Connect && i < len(in) && in[i] == '\n' && bytes.HasPrefix(in, syntax.Bytes("CONNECT "))
}

// noLineEnd judges the bytes at i, which are not CRLF: nothing yet or half of it, which is not an error, or a
// control character.
func (p *Parser) noLineEnd(in []byte, i int) error {
	from := max(p.start, p.looked)
	p.looked = i
	if !p.begun && !p.Response && bytes.IndexByte(in[from:i], '\t') >= 0 {
		return errControl // no request line has one, so nobody has to wait for the end of this one
	}
	if i == len(in) || i+1 == len(in) && in[i] == '\r' {
		return p.within(len(in))
	}
	if err := p.within(i + 1); err != nil {
		return err
	}
	if in[i] == '\n' {
		return errLineEnd
	}
	return errControl
}

// within checks the limits of a head of which n bytes are read. Its end need not have come.
func (p *Parser) within(n int) error {
	switch most := cmp.Or(p.Limits.Head, maxHead); {
	case !p.begun && n-p.start > most/4:
		return errLongLine
	case n > most:
		return ErrLargeHead
	}
	return nil
}

// requestLine parses "method SP target SP version", with exactly one space each (9112 3). The line is text[from:].
func (p *Parser) requestLine(text []byte, from int) error {
	p.begun = true
	method := syntax.Token.Run(text, from)
	path := syntax.Path.Run(text, method+1)
	target := syntax.Target.Run(text, path)
	if method == from || target <= method+1 || text[method] != ' ' ||
		len(text)-target != len(" HTTP/1.1") || text[target] != ' ' {
		return p.noRequestLine(text[from:])
	}
	p.Method = syntax.Span{From: uint32(from), To: uint32(method)}
	p.Target = syntax.Span{From: uint32(method) + 1, To: uint32(target)}
	p.Query = syntax.Span{From: uint32(path), To: uint32(target)}
	return p.version(text[target+1:])
}

// noRequestLine finds out what is wrong with a line. It checks the version before the target.
func (p *Parser) noRequestLine(text []byte) error {
	first, last := bytes.IndexByte(text, ' '), bytes.LastIndexByte(text, ' ')
	switch {
	case bytes.IndexByte(text, '\t') >= 0:
		return errControl
	case syntax.IsBlank(text[0]):
		return errFold
	case first < 0 || last <= first+1:
		return errRequestLine
	case !syntax.Token.Only(text[:first]):
		return errMethod
	}
	if err := p.version(text[last+1:]); err != nil {
		return err
	}
	return errTarget
}

// statusLine parses "version SP code SP reason" (9112 4). Many leave out the space before a reason that is empty.
func (p *Parser) statusLine(text []byte) error {
	p.begun = true
	const code, end = len("HTTP/1.1 "), len("HTTP/1.1 101")
	if len(text) < end || text[code-1] != ' ' || !syntax.Digit.Only(text[code:end]) || text[code] == '0' ||
		len(text) > end && text[end] != ' ' {
		return errStatusLine
	}
	p.Status = uint16(text[code]-'0')*100 + uint16(text[code+1]-'0')*10 + uint16(text[code+2]-'0')
	return p.version(text[:code-1])
}

// version is "HTTP/" DIGIT "." DIGIT, case-sensitive. A minor version above 1 is served as 1.1 (9110 2.5).
func (p *Parser) version(text []byte) error {
	if len(text) != len("HTTP/1.1") || string(text[:5]) != "HTTP/" || text[6] != '.' ||
		!syntax.Digit[text[5]] || !syntax.Digit[text[7]] {
		return errVersion
	}
	if text[5] != '1' {
		return ErrMajor
	}
	p.Minor = min(text[7]-'0', 1)
	return nil
}

// fieldLine parses "name: value", with white space around the value (9112 5). The line is text[from:].
func (p *Parser) fieldLine(text []byte, from int) error {
	colon := syntax.Token.Run(text, syntax.Word(text, from))
	switch {
	case colon == from || colon == len(text) || text[colon] != ':':
		return noField(text[from:])
	case len(p.Fields) == cmp.Or(p.Limits.Fields, maxFields):
		return errManyFields
	}
	value, end := colon+1, len(text)
	for value < end && syntax.IsBlank(text[value]) {
		value++
	}
	for value < end && syntax.IsBlank(text[end-1]) {
		end--
	}
	p.Add(syntax.Field{
		Name:  syntax.Span{From: uint32(from), To: uint32(colon)},
		Value: syntax.Span{From: uint32(value), To: uint32(end)},
		Kind:  syntax.KindOf(text[from:colon]),
	})
	return nil
}

// noField finds out what is wrong with a line that does not begin with a name and a colon.
func noField(text []byte) error {
	switch {
	case syntax.IsBlank(text[0]):
		return errFold
	case bytes.IndexByte(text, ':') < 0:
		return errColon
	}
	return errName
}
