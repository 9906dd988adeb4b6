package syntax

import (
	"iter"
	"unsafe"
)

// Head is what a request says before its content, or in trailers: positions in Text, which the owner sets.
type Head struct {
	Text                                   []byte
	Method, Target, Authority, Path, Query Span         // empty if the head has none
	Fields                                 []Field      // in order
	Count                                  [Kinds]uint8 // of the fields of each kind; 2 stands for more
}

// Add appends a field.
func (h *Head) Add(f Field) {
	h.Fields = append(h.Fields, f)
	h.Count[f.Kind] = min(h.Count[f.Kind]+1, 2)
}

// Span is the part of some bytes from From up to To.
type Span struct{ From, To uint32 }

// Of returns the part of text that s names. Appending to it does not overwrite text.
func (s Span) Of(text []byte) []byte { return text[s.From:s.To:s.To] }

// Field is a field line.
type Field struct {
	Name, Value Span // without white space around them
	Kind        Kind // 0: the server does not use it
}

// Get returns the value of the first field of this name in text, without regard to case; nil if there is none.
func Get(fields []Field, text []byte, name string) []byte {
	for i := range fields {
		if f := &fields[i]; EqualFold(f.Name.Of(text), name) {
			return f.Value.Of(text)
		}
	}
	return nil
}

// Each returns the names and values of fields in text, in order.
func Each(fields []Field, text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range fields {
			f := &fields[i]
			if !yield(f.Name.Of(text), f.Value.Of(text)) {
				return
			}
		}
	}
}

// Kind distinguishes the fields that decide how a message or a connection goes on.
type Kind uint8

// The kinds of fields. All others are Ordinary.
const (
	Ordinary Kind = iota
	Host
	ContentLength
	TransferEncoding
	Connection
	Expect
	Upgrade
	Kinds // how many there are
)

var kindNames = [Kinds]string{Host: "host", ContentLength: "content-length", TransferEncoding: "transfer-encoding",
	Connection: "connection", Expect: "expect", Upgrade: "upgrade"}

// kindByLength finds a kind by the length of its name: all lengths differ.
var kindByLength = [18]Kind{4: Host, 6: Expect, 7: Upgrade, 10: Connection, 14: ContentLength, 17: TransferEncoding}

// KindOf returns the kind of the fields with this name.
func KindOf(name []byte) Kind {
	if len(name) >= len(kindByLength) {
		return Ordinary
	}
	k := kindByLength[len(name)]
	if k == Ordinary || !EqualFold(name, kindNames[k]) {
		return Ordinary
	}
	return k
}

// ValidField reports whether name is a token and value has no control character (RFC 9110 5.1, 5.5).
func ValidField(name, value string) bool {
	return len(name) > 0 && Token.Only(Bytes(name)) && Control(Bytes(value), 0) == len(value)
}

// Bytes lends the bytes of s to callers that only read them.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// String lends the bytes of b as a string, for a call that does not keep it.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
