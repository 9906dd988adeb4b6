package httpd

import "bytes"

// limits of a head.
const (
	maxLine   = 16 << 10 // the request line
	maxHead   = 64 << 10 // with everything up to the empty line
	maxFields = 100
	maxBlank  = 8 // empty lines before the request line
)

// head is the request line and the fields of a request. It is read line by line as they come, in place: what it
// keeps are positions in the octets, which the caller holds and only appends to. Nothing is allocated but the list
// of fields, once.
type head struct {
	method  span
	target  span
	minor   byte // of the version, 0 or 1
	fields  []field
	start   int // of the present line
	looked  int // up to where its end was looked for
	blank   int
	begun   bool // the request line was read
	length  int  // of the whole head, once it has ended
	special [specials]int
}

// field is a field line.
type field struct {
	name, value span
	special     special
}

// span is a part of the octets.
type span struct{ from, to uint32 }

func (s span) of(octets []byte) []byte { return octets[s.from:s.to:s.to] }

// special are the fields that decide how a message goes on.
type special uint8

const (
	ordinary special = iota
	host
	contentLength
	transferEncoding
	connection
	expect
	upgrade
	specials
)

var specialNames = [specials]string{host: "host", contentLength: "content-length", transferEncoding: "transfer-encoding",
	connection: "connection", expect: "expect", upgrade: "upgrade"}

// refusal is why a request is not served: the status that says so, and a sentence for our own log.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return "httpd: " + r.why }

var (
	errLineEnd     = &refusal{400, "a line does not end in CRLF"}                                    // 9112 2.2
	errBlank       = &refusal{400, "too many empty lines before a request"}                          // 9112 2.2
	errRequestLine = &refusal{400, "a request line that is not method SP target SP version"}         // 9112 3
	errMethod      = &refusal{400, "a method that is no token"}                                      // 9110 9.1
	errVersion     = &refusal{400, "a version that is none of HTTP"}                                 // 9112 2.3
	errMajor       = &refusal{505, "a major version other than 1"}                                   // 9110 15.6.6
	errTarget      = &refusal{400, "an octet in the target that no URI has"}                         // 9112 3.2
	errLongLine    = &refusal{414, "a request line that is too long"}                                // 9112 3
	errFold        = &refusal{400, "a line that begins with white space"}                            // 9112 2.2, 5.2
	errColon       = &refusal{400, "a field line without a colon"}                                   // 9110 5.1
	errName        = &refusal{400, "a field name that is no token, or white space before the colon"} // 9112 5.1
	errValue       = &refusal{400, "a control character in a field value"}                           // 9110 5.5
	errLargeHead   = &refusal{431, "a header section that is too large"}                             // 6585 5
	errManyFields  = &refusal{431, "too many fields"}                                                // 6585 5
)

// read goes on where it stopped before and reports whether the head has ended; length is then its own. octets are
// all that came so far, from the first of the request.
func (h *head) read(octets []byte) (ended bool, err error) {
	for {
		i := bytes.IndexByte(octets[h.looked:], '\n')
		if i < 0 {
			h.looked = len(octets)
			return false, h.within(len(octets))
		}
		end := h.looked + i
		h.looked = end + 1
		if err := h.within(end + 1); err != nil {
			return false, err
		}
		if end == h.start || octets[end-1] != '\r' {
			return false, errLineEnd
		}
		line := span{uint32(h.start), uint32(end - 1)}
		h.start = end + 1
		switch {
		case line.from < line.to && !h.begun:
			err = h.requestLine(octets, line)
		case line.from < line.to:
			err = h.fieldLine(octets, line)
		case h.begun:
			h.length = h.start
			return true, nil
		default:
			if h.blank++; h.blank > maxBlank {
				err = errBlank
			}
		}
		if err != nil {
			return false, err
		}
	}
}

// within complains of what is too long, also before its end has come.
func (h *head) within(n int) error {
	switch {
	case !h.begun && n-h.start > maxLine:
		return errLongLine
	case n > maxHead:
		return errLargeHead
	}
	return nil
}

// requestLine takes "method SP target SP version" apart: exactly one space each (9112 3).
func (h *head) requestLine(octets []byte, line span) error {
	h.begun = true
	text := line.of(octets)
	if blank(text[0]) {
		return errFold
	}
	first, last := bytes.IndexByte(text, ' '), bytes.LastIndexByte(text, ' ')
	if first < 0 || last == first || last == first+1 {
		return errRequestLine
	}
	if !only(text[:first], token) {
		return errMethod
	}
	if err := h.version(text[last+1:]); err != nil {
		return err
	}
	if !only(text[first+1:last], inTarget) {
		return errTarget
	}
	h.method = span{line.from, line.from + uint32(first)}
	h.target = span{line.from + uint32(first) + 1, line.from + uint32(last)}
	return nil
}

// version is "HTTP/" DIGIT "." DIGIT, case-sensitive. A minor version above 1 is one that 1.1 can serve
// (9110 2.5).
func (h *head) version(text []byte) error {
	if len(text) != len("HTTP/1.1") || string(text[:5]) != "HTTP/" || text[6] != '.' || !digit(text[5]) || !digit(text[7]) {
		return errVersion
	}
	if text[5] != '1' {
		return errMajor
	}
	h.minor = min(text[7]-'0', 1)
	return nil
}

func (h *head) fieldLine(octets []byte, line span) error {
	text := line.of(octets)
	if blank(text[0]) {
		return errFold
	}
	colon := bytes.IndexByte(text, ':')
	switch {
	case colon < 0:
		return errColon
	case colon == 0 || !only(text[:colon], token):
		return errName
	case len(h.fields) == maxFields:
		return errManyFields
	}
	f := field{name: span{line.from, line.from + uint32(colon)}, special: specialOf(text[:colon])}
	value := bytes.TrimLeft(text[colon+1:], white)
	from := line.to - uint32(len(value))
	if value = bytes.TrimRight(value, white); !only(value, inValue) {
		return errValue
	}
	f.value = span{from, from + uint32(len(value))}
	h.fields = append(h.fields, f)
	h.special[f.special]++
	return nil
}

// each calls f with the value of every field of one kind, in order, until f returns false.
func (h *head) each(octets []byte, s special, f func(value []byte) bool) {
	if h.special[s] == 0 {
		return
	}
	for i := range h.fields {
		if h.fields[i].special == s && !f(h.fields[i].value.of(octets)) {
			return
		}
	}
}

func specialOf(name []byte) special {
	for s, known := range specialNames {
		if len(known) == len(name) && len(name) > 0 && equalFold(name, known) {
			return special(s)
		}
	}
	return ordinary
}

// reset makes h ready for the next request on a connection. The list of fields keeps its memory.
func (h *head) reset() { *h = head{fields: h.fields[:0]} }
