package http2

import (
	"cmp"

	"golang.org/x/net/http2/hpack"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// The limits of a head, by default, and of a block, which no Limits change.
const (
	maxHead   = 64 << 10
	maxFields = 100
	maxBlock  = 128 << 10 // or twice the size of a head, if that is more
	maxFrames = 32        // and one more for each KiB of the block
	tableSize = 4096      // of the dynamic table, which is what a client may expect at first (RFC 9113 6.5.2)
)

// Limits bound the heads that are accepted.
type Limits struct {
	// Head bounds the sum of the sizes of all fields: name, value and 32 bytes for each (RFC 9113 6.5.2). A target may have a
	// quarter of it. Fields bounds their number, without pseudo-fields. A cookie counts once, however many crumbs it comes in,
	// but may have twice as many crumbs. 0 is the default.
	Head, Fields int
}

// Decoder reads the field blocks of a connection, one after the other, each in the pieces that its frames bring. It has to
// get all of them, since each may change the dynamic table for the next ones (RFC 9113 4.3).
type Decoder struct {
	Response bool // the heads are of responses

	hpack   *hpack.Decoder
	memory  *[]byte
	rest    []byte // of a field that has not come to its end: so hpack needs no buffer, which it would keep for ever
	head    *Head
	limits  Limits
	bad     *Error // why the message is malformed. After this, or if it is refused, fields are no longer looked at
	seen    pseudo // what has come
	trails  bool   // the block is that of trailers
	began   bool   // a field has come, so that no change of the table may come
	regular bool   // a field that is not a pseudo-field has come
	size    int32  // of all fields
	fields  int32  // without crumbs
	crumbs  int32  // of the cookie
	cookies int32  // fields that crumbs are in: more than one if others came between them
	cookie  int32  // the number of fields when the last of them was added
	bytes   int32  // of the block
	frames  int32  // of the block
}

// pseudo is a set of pseudo-fields.
type pseudo uint8

const (
	method pseudo = 1 << iota
	scheme
	authority
	path
	protocol
	status
)

// NewDecoder returns a decoder for a connection. It gathers the text of a head in memory that decoders may share which are
// used by the same goroutine: so a head that is refused needs no other, and one that is large does not grow step by step.
func NewDecoder(memory *[]byte) *Decoder {
	d := &Decoder{memory: memory}
	d.hpack = hpack.NewDecoder(tableSize, d.emit)
	return d
}

var (
	errCompression   = &Error{Code: CompressionError, Why: "a field block that cannot be decoded"}      // 9113 4.3
	errUpdate        = &Error{Code: CompressionError, Why: "a size of the dynamic table after a field"} // 7541 4.2
	errCut           = &Error{Code: CompressionError, Why: "a field block that ends within a field"}    // 9113 4.3
	errLargeBlock    = &Error{Code: EnhanceYourCalm, Why: "a field block that is far too large"}        // 9113 10.5.1
	errManyFrames    = &Error{Code: EnhanceYourCalm, Why: "a field block in too many frames"}           // 9113 10.5
	errName          = malformed("a field name that is not a token in lower case")                      // 9113 8.2.1
	errValue         = malformed("a control character in a value, or a blank at one of its ends")       // 9113 8.2.1
	errConnection    = malformed("a field that concerns a connection of HTTP/1")                        // 9113 8.2.2
	errTE            = malformed("a TE other than trailers, or in a response")                          // 9113 8.2.2
	errLate          = malformed("a pseudo-field after a field, or in trailers")                        // 9113 8.3
	errUnknown       = malformed("a pseudo-field that such a message does not have")                    // 9113 8.3
	errTwice         = malformed("a pseudo-field that comes twice")                                     // 9113 8.3
	errMissing       = malformed("without :method, :scheme or :path, or with an invalid one")           // 9113 8.3.1
	errConnectForm   = malformed("CONNECT with :scheme or :path, or without :authority")                // 9113 8.5
	errStatus        = malformed("without a :status from 100 to 599")                                   // 9113 8.3.2; 9110 15
	errSwitching     = malformed("101 (Switching Protocols)")                                           // 9113 8.6
	errInterim       = malformed("an interim response at the end of a stream")                          // 9113 8.1
	errProtocol      = malformed("a :protocol that is no token, or that is not for CONNECT")            // 8441 4
	errLength        = malformed("a Content-Length that is not a number, or that is not kept")          // 9113 8.1.1
	errTrailer       = malformed("a trailer that would change the message")                             // 9110 6.5.1
	errLargeTrailers = &Error{Code: EnhanceYourCalm, Stream: its, Why: "trailers that are too large"}   // 9110 6.5
	errTrailersEnd   = malformed("trailers after which the stream goes on")                             // 9113 8.1

	errManyFields  = &syntax.Refusal{Status: 431, Why: "too many fields"}                                  // 6585 5
	errLargeHead   = &syntax.Refusal{Status: 431, Why: "a header section that is too large"}               // 6585 5
	errLongTarget  = &syntax.Refusal{Status: 414, Why: "a target that is too long"}                        // 9110 15.5.15
	errTarget      = &syntax.Refusal{Status: 400, Why: "a byte in the target that none may have"}          // 9113 8.3.1
	errForm        = &syntax.Refusal{Status: 400, Why: "a target of a form that the method does not have"} // 9113 8.3.1, 8.5
	errHost        = &syntax.Refusal{Status: 400, Why: "no host, two that differ, or an invalid one"}      // 9113 8.3.1
	errConnect     = &syntax.Refusal{Status: 501, Why: "CONNECT, which is for proxies"}                    // 9110 9.3.6
	errExpectation = &syntax.Refusal{Status: 417, Why: "an expectation other than 100-continue"}           // 9110 10.1.1
)

// malformed makes an error of a stream (RFC 9113 8.1.1).
func malformed(why string) *Error { return &Error{Code: ProtocolError, Stream: its, Why: why} }

// Begin is called at the HEADERS of a block, which go into h. It resets h.
func (d *Decoder) Begin(h *Head, l Limits, trailers bool) {
	h.Reset()
	l.Head, l.Fields = cmp.Or(l.Head, maxHead), cmp.Or(l.Fields, maxFields)
	*d = Decoder{Response: d.Response, hpack: d.hpack, memory: d.memory, head: h, limits: l, trails: trailers}
	d.hpack.SetEmitEnabled(true)
}

// Write is called with what each frame of the block has, even with nothing. After an error the connection ends.
func (d *Decoder) Write(fragment []byte) *Error {
	d.frames++
	d.bytes += int32(len(fragment))
	switch {
	case int(d.bytes) > d.most():
		return errLargeBlock
	case d.frames > maxFrames+d.bytes>>10:
		return errManyFrames
	}
	in := fragment
	if len(d.rest) > 0 {
		d.rest = append(d.rest, fragment...)
		in = d.rest
	}
	n, err := d.whole(in)
	if err != nil {
		return err
	}
	h, own := d.head, d.head.Text
	gather := len(own) == 0
	if gather {
		h.Text = (*d.memory)[:0]
	}
	_, failure := d.hpack.Write(in[:n])
	if h.Refused != nil {
		h.forget()
	}
	if gather {
		if cap(h.Text) <= maxBlock {
			*d.memory = h.Text[:0]
		}
		h.Text = append(own, h.Text...)
	}
	if failure != nil {
		return errCompression
	}
	d.rest = append(d.rest[:0], in[n:]...)
	return nil
}

// Size returns the size of the fields that have come, as long as they are looked at.
func (d *Decoder) Size() int { return int(d.size) }

// Inflated reports whether the fields of a block are far larger than Huffman's code and a table of which each entry is used
// once can make them. Honest clients do not repeat a field again and again.
func (d *Decoder) Inflated() bool { return d.size > 2*d.bytes+4*tableSize }

// Held returns how many bytes of memory an unfinished block takes, with its Head.
func (d *Decoder) Held() int {
	if d.head == nil {
		return 0
	}
	return 256 + cap(d.rest) + cap(d.head.Text) + 20*cap(d.head.Fields)
}

// End is called after the last frame of the block. endStream says that HEADERS had this flag. Its errors
// concern the stream, which Error.On has yet to name, except for a block that is cut off.
func (d *Decoder) End(endStream bool) *Error {
	cut := len(d.rest) > 0
	h := d.head
	d.head, d.rest = nil, nil
	switch {
	case d.hpack.Close() != nil || cut:
		return errCut
	case d.bad != nil:
		return d.bad
	case d.trails && !endStream:
		return errTrailersEnd
	case d.trails && h.Refused != nil:
		return errLargeTrailers
	case h.Refused != nil:
		return nil
	}
	if d.cookies > 1 {
		h.join()
	}
	if d.trails {
		return h.trailers()
	}
	if d.Response {
		return d.response(h, endStream)
	}
	return d.request(h, endStream)
}

// whole returns how many bytes of p are whole representations of fields (RFC 7541 6). Of strings it looks at no more than
// the lengths.
func (d *Decoder) whole(p []byte) (n int, err *Error) {
	for n < len(p) {
		b, mask, texts := p[n], byte(0x7F), 0
		switch {
		case b >= 0x80: // 6.1
		case b >= 0x40: // 6.2.1
			mask, texts = 0x3F, 1
		case b >= 0x20: // 6.3
			if mask = 0x1F; d.began {
				return n, errUpdate
			}
		default: // 6.2.2, 6.2.3
			mask, texts = 0x0F, 1
		}
		index, next := readInteger(p, n, mask)
		if index == 0 && texts == 1 {
			texts = 2 // the name as well
		}
		for ; texts > 0 && 0 < next && next < len(p); texts-- {
			var length int64
			if length, next = readInteger(p, next, 0x7F); next <= 0 {
				break
			}
			if length > int64(d.most()-int(d.bytes)+len(p)-next) {
				return n, errLargeBlock
			}
			next += int(length)
		}
		switch {
		case next < 0:
			return n, errCompression
		case next == 0 || next > len(p) || texts > 0:
			return n, nil
		}
		d.began = d.began || b >= 0x40 || b < 0x20
		n = next
	}
	return n, nil
}

// most is how many bytes a block may have.
func (d *Decoder) most() int { return max(2*d.limits.Head, maxBlock) }

// readInteger reads the integer at p[n], and returns where it ends: 0 if that has not come. It may have five bytes after its
// first, which is far more than is of use; otherwise -1 is returned (RFC 7541 5.1).
func readInteger(p []byte, n int, mask byte) (value int64, next int) {
	if value = int64(p[n] & mask); value < int64(mask) {
		return value, n + 1
	}
	for i, b := range p[n+1:] {
		if i == 5 {
			return 0, -1
		}
		if value += int64(b&0x7F) << (7 * i); b < 0x80 {
			return value, n + i + 2
		}
	}
	return 0, 0
}

// emit is called by hpack with each field.
func (d *Decoder) emit(f hpack.HeaderField) {
	d.size += int32(len(f.Name) + len(f.Value) + 32)
	switch {
	case f.Name == ":path" && len(f.Value) > d.limits.Head/4:
		d.head.Refused = errLongTarget
	case int(d.size) > d.limits.Head:
		d.head.Refused = errLargeHead
	case f.IsPseudo():
		d.bad = d.pseudo(f.Name, f.Value)
	default:
		d.bad = d.field(f.Name, f.Value)
	}
	if d.bad != nil || d.head.Refused != nil {
		d.hpack.SetEmitEnabled(false) // the rest only keeps the table up to date
	}
}

// pseudo takes a field whose name begins with a colon (9113 8.3).
func (d *Decoder) pseudo(name, value string) *Error {
	h := d.head
	var which pseudo
	var place *syntax.Span
	if d.Response != (name == ":status") {
		return errUnknown
	}
	switch name {
	case ":status":
		which = status
	case ":method":
		which, place = method, &h.Method
	case ":scheme":
		which = scheme
	case ":authority":
		which, place = authority, &h.Authority
	case ":path":
		which, place = path, &h.Target
	case ":protocol":
		which, place = protocol, &h.Protocol
	default:
		return errUnknown
	}
	switch {
	case d.regular || d.trails:
		return errLate
	case d.seen&which != 0:
		return errTwice
	case !validValue(value):
		return errValue
	case which == status:
		if len(value) != 3 || !syntax.Digit.Only(syntax.Bytes(value)) || value[0] < '1' || value[0] > '5' {
			return errStatus
		}
		h.Status = uint16(value[0]-'0')*100 + uint16(value[1]-'0')*10 + uint16(value[2]-'0')
	case place != nil:
		*place = h.add(value)
	case !token(syntax.Bytes(value)): // nothing depends on the scheme
		return errMissing
	}
	d.seen |= which
	return nil
}

// field takes any other field. Values of names that are not allowed are not looked at.
func (d *Decoder) field(name, value string) *Error {
	d.regular = true
	switch {
	case len(name) == 0 || !lowerToken.Only(syntax.Bytes(name)):
		return errName
	case ofConnection(syntax.Bytes(name)):
		return errConnection
	case !validValue(value):
		return errValue
	case name == "te" && (d.Response || !syntax.EqualFold(syntax.Bytes(value), "trailers")):
		return errTE
	case name == "cookie" && !d.Response:
		d.crumb(value)
		return nil
	case int(d.fields) == d.limits.Fields:
		d.head.Refused = errManyFields
		return nil
	}
	d.fields++
	d.head.addField(name, value, syntax.KindOf(syntax.Bytes(name)))
	return nil
}

// crumb takes a part of the cookie, or all of it (9113 8.2.3). Nearly always they come one after the other.
func (d *Decoder) crumb(value string) {
	h := d.head
	if int(d.crumbs) == 2*d.limits.Fields {
		h.Refused = errManyFields
		return
	}
	d.crumbs++
	if n := len(h.Fields); n > 0 && n == int(d.cookie) {
		h.Text = append(h.Text, "; "...)
		h.Fields[n-1].Value.To = h.add(value).To
		return
	}
	h.addField("cookie", value, syntax.Ordinary)
	d.cookies++
	d.cookie = int32(len(h.Fields))
}

// join makes one field of the parts of a cookie that have other fields between them, in the place of the first.
func (h *Head) join() {
	kept, cookie := h.Fields[:0], -1
	from := len(h.Text)
	for _, f := range h.Fields {
		switch {
		case string(f.Name.Of(h.Text)) != "cookie":
			kept = append(kept, f)
			continue
		case cookie < 0:
			cookie = len(kept)
			kept = append(kept, f)
		default:
			h.Text = append(h.Text, "; "...)
		}
		h.Text = append(h.Text, f.Value.Of(h.Text)...)
	}
	h.Fields = kept
	h.Fields[cookie].Value = syntax.Span{From: uint32(from), To: uint32(len(h.Text))}
}

// add appends to Text and returns where.
func (h *Head) add(text string) syntax.Span {
	from := len(h.Text)
	h.Text = append(h.Text, text...)
	return syntax.Span{From: uint32(from), To: uint32(len(h.Text))}
}

func (h *Head) addField(name, value string, kind syntax.Kind) {
	h.Add(syntax.Field{Name: h.add(name), Value: h.add(value), Kind: kind})
}

// validValue reports whether a value has no control character, and no blank at its ends (9113 8.2.1).
func validValue(value string) bool {
	n := len(value)
	return n == 0 ||
		!syntax.IsBlank(value[0]) && !syntax.IsBlank(value[n-1]) && syntax.Control(syntax.Bytes(value), 0) == n
}

func token(text []byte) bool { return len(text) > 0 && syntax.Token.Only(text) }

// lowerToken has the bytes of a token that are not upper-case letters.
var lowerToken = func() (s syntax.Set) {
	for i := range s {
		s[i] = syntax.Token[i] && syntax.Lower[i] == byte(i)
	}
	return s
}()
