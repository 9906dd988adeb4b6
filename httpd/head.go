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
	start   int   // of the present line
	looked  int   // up to where its end was looked for
	blank   uint8 // empty lines before the request line
	begun   bool  // the request line was read
	spoiled bool  // by a control character: a line that has one is refused, but only when it has ended
	length  int   // of the whole head, once it has ended
	special [specials]uint8
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

// specialByLength holds them by the lengths of their names, which all differ.
var specialByLength = [18]special{4: host, 6: expect, 7: upgrade, 10: connection, 14: contentLength, 17: transferEncoding}

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
// all that came so far, from the first of the request. The search for the end of a line is that for control characters
// as well, since CR is one: values are looked at once.
func (h *head) read(octets []byte) (ended bool, err error) {
	looked := h.looked // the next search waits for it, so it stays in a register
	for {
		end := control(octets, looked)
		if end+1 >= len(octets) || octets[end] != '\r' || octets[end+1] != '\n' {
			if wait, err := h.noLineEnd(octets, end); wait || err != nil {
				return false, err
			}
			looked = h.looked
			continue
		}
		if err := h.within(end + 2); err != nil {
			return false, err
		}
		start := h.start
		h.start, looked = end+2, end+2
		switch {
		case start < end && h.begun:
			err = h.fieldLine(octets[:end], start)
		case start < end:
			err = h.requestLine(octets[:end], start)
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

// noLineEnd looks at what stands at i instead of CRLF: nothing yet, half of it, or a control character.
func (h *head) noLineEnd(octets []byte, i int) (wait bool, err error) {
	h.looked = i
	switch {
	case i == len(octets), i+1 == len(octets) && octets[i] == '\r':
		return true, h.within(len(octets))
	case octets[i] == '\n':
		if err := h.within(i + 1); err != nil {
			return false, err
		}
		return false, errLineEnd
	}
	h.looked, h.spoiled = i+1, true
	return false, nil
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

// requestLine takes "method SP target SP version" apart: exactly one space each (9112 3). The line begins at from and
// ends with the text.
func (h *head) requestLine(text []byte, from int) error {
	h.begun = true
	method := token.run(text, from)
	target := inTarget.run(text, method+1)
	if method == from || target <= method+1 || text[method] != ' ' ||
		len(text)-target != len(" HTTP/1.1") || text[target] != ' ' {
		return h.noRequestLine(text[from:])
	}
	h.method = span{uint32(from), uint32(method)}
	h.target = span{uint32(method) + 1, uint32(target)}
	return h.version(text[target+1:])
}

// noRequestLine tells what is wrong with a line: it looks at the version before the target.
func (h *head) noRequestLine(text []byte) error {
	first, last := bytes.IndexByte(text, ' '), bytes.LastIndexByte(text, ' ')
	switch {
	case blank(text[0]):
		return errFold
	case first < 0 || last <= first+1:
		return errRequestLine
	case !only(text[:first], token):
		return errMethod
	}
	if err := h.version(text[last+1:]); err != nil {
		return err
	}
	return errTarget
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

// fieldLine takes "name: value" apart, with white space round the value (9112 5). The line begins at from and ends with
// the text.
func (h *head) fieldLine(text []byte, from int) error {
	colon := token.run(text, word(text, from))
	switch {
	case colon == from || colon == len(text) || text[colon] != ':':
		return noField(text[from:])
	case len(h.fields) == maxFields:
		return errManyFields
	case h.spoiled:
		return errValue
	}
	value, end := colon+1, len(text)
	for value < end && blank(text[value]) {
		value++
	}
	for value < end && blank(text[end-1]) {
		end--
	}
	s := specialOf(text[from:colon])
	h.special[s]++
	h.fields = append(h.fields, field{
		name:    span{uint32(from), uint32(colon)},
		value:   span{uint32(value), uint32(end)},
		special: s,
	})
	return nil
}

// noField tells what is wrong with a line that does not begin with a name and a colon.
func noField(text []byte) error {
	switch {
	case blank(text[0]):
		return errFold
	case bytes.IndexByte(text, ':') < 0:
		return errColon
	}
	return errName
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
	if len(name) >= len(specialByLength) {
		return ordinary
	}
	s := specialByLength[len(name)]
	if s == ordinary || !equalFold(name, specialNames[s]) {
		return ordinary
	}
	return s
}

// reset makes h ready for the next request on a connection. The list of fields keeps its memory.
func (h *head) reset() { *h = head{fields: h.fields[:0]} }
