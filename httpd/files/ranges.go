package files

import (
	"bytes"
	"math"
	"strconv"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

const white = syntax.Blank

// span is size bytes of a file, from the one at from on.
type span struct{ from, size int64 }

// rangeOf returns the part of a file of size bytes that a Range field asks for. A part without bytes is not satisfiable, and the
// answer is 416.
//
// If the field is not obeyed, the answer is the whole file, which is always allowed (RFC 9110 14.2). That is so if the field is
// malformed, has another unit than bytes, or asks for several parts. No part of an empty file can be named by a Content-Range,
// not even "-5", which is satisfiable.
func rangeOf(field []byte, size int64) (part span, obeyed bool) {
	unit, set, found := bytes.Cut(field, []byte{'='})
	if !found || !syntax.EqualFold(unit, "bytes") || size <= 0 {
		return span{}, false
	}
	return partOf(bytes.Trim(set, white+","), size) // a list may have empty elements (RFC 9110 5.6.1.2)
}

// partOf parses one range: "first-last", "first-", or "-suffix" (RFC 9110 14.1.1).
func partOf(spec []byte, size int64) (part span, valid bool) {
	before, behind, dash := bytes.Cut(spec, []byte{'-'})
	first, hasFirst := number(before)
	last, hasLast := number(behind)
	switch {
	case !dash:
		return span{}, false
	case len(before) == 0:
		last = min(last, size)
		return span{size - last, last}, hasLast
	case !hasFirst:
		return span{}, false
	case len(behind) == 0:
		last = math.MaxInt64
	case !hasLast || last < first:
		return span{}, false
	}
	if first >= size {
		return span{}, true
	}
	return span{first, min(last, size-1) - first + 1}, true
}

// number parses 1*DIGIT. A number that is too large for an int64 becomes the largest one: no file has a byte there.
func number(digits []byte) (n int64, valid bool) {
	if len(digits) == 0 || !syntax.Digit.Only(digits) {
		return 0, false
	}
	n, _ = strconv.ParseInt(string(digits), 10, 64)
	return n, true
}
