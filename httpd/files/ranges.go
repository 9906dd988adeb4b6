package files

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// maxRanges bounds how many ranges are served at a time (RFC 9110 17.15). Browsers and download managers ask for one, PDF
// viewers for a few.
const maxRanges = 16

const white = syntax.Blank

// span is size bytes of a file, from the one at from on.
type span struct{ from, size int64 }

// ranges returns the parts of a file of size bytes that a Range field asks for, in the order of the field, without those
// that begin after the last byte. If there are none the answer is 416. The result satisfies all of
//
//	len(parts) <= maxRanges, 0 <= from, 0 < size, from+size <= size of the file, sum of sizes <= size of the file
//
// If the field is not obeyed, the answer is the whole file, which is always allowed (RFC 9110 14.2). That is so if the field
// is malformed or has another unit than bytes, if it asks for more than maxRanges parts, satisfiable or not, or if it asks
// for more bytes than the file has, as only overlapping ranges do. Parts are never merged.
//
// No part of an empty file can be named by a Content-Range, not even "-5", which is satisfiable, so the field is ignored.
func ranges(field []byte, size int64) (parts []span, obeyed bool) {
	unit, set, found := bytes.Cut(field, []byte{'='})
	if !found || !syntax.EqualFold(unit, "bytes") || size <= 0 {
		return nil, false
	}
	asked, left := 0, size
	for more := true; more; {
		var spec []byte
		spec, set, more = bytes.Cut(set, []byte{','})
		if spec = bytes.Trim(spec, white); len(spec) == 0 {
			continue // RFC 9110 5.6.1.2
		}
		part, valid := partOf(spec, size)
		if asked++; !valid || asked > maxRanges || part.size > left {
			return nil, false
		}
		if part.size > 0 {
			parts = append(parts, part)
			left -= part.size
		}
	}
	return parts, asked > 0
}

// partOf parses one range: "first-last", "first-", or "-suffix" (RFC 9110 14.1.1). A part without bytes is not
// satisfiable.
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

// contentRange is the value of Content-Range for a part of a file of size bytes (RFC 9110 14.4).
func contentRange(part span, size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", part.from, part.from+part.size-1, size)
}
