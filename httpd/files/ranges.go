package files

import (
	"bytes"
	"math"
	"strconv"
)

// maxRanges bounds how many ranges are served at a time (RFC 9110 17.15). Browsers and download managers ask for one,
// viewers of PDF for a few.
const maxRanges = 16

// white is all the white space there is (RFC 9110 5.6.3).
const white = " \t"

// span is size octets of a file, beginning with the one at from.
type span struct{ from, size int64 }

// ranges are the parts that a Range field asks for of size octets, in the order of the field, without those that
// begin behind the last octet. None means that no part can be had, which is 416. What it returns has all of
//
//	len(parts) <= maxRanges, 0 <= from, 0 < size, from+size <= size of the file, sum of sizes <= size of the file
//
// Not obeyed means that the field is ignored, and the whole file is the answer. That is always allowed, and is done
// (RFC 9110 14.2) if it is malformed or in another unit than bytes; if it asks for more than maxRanges parts, whether
// they can be had or not, or for more octets than the file has, which only overlapping ones do: then the whole is the
// cheaper answer for both sides. Parts are never put together, so a client gets what it asked for.
//
// Of an empty file no part could be named by a Content-Range, not even by "-5", which is satisfiable. Clients that
// put a Range into each request are served best by ignoring it.
func ranges(field []byte, size int64) (parts []span, obeyed bool) {
	unit, set, found := bytes.Cut(field, []byte{'='})
	if !found || !isBytes(unit) || size <= 0 {
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

// partOf understands one range: "first-last", "first-", or "-suffix" (RFC 9110 14.1.1). A part without octets cannot
// be had.
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

// number is 1*DIGIT. What is too large for an int64 is the largest of them: no file has an octet there.
func number(digits []byte) (n int64, valid bool) {
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		if n > (math.MaxInt64-int64(d-'0'))/10 {
			n = math.MaxInt64
			continue
		}
		n = 10*n + int64(d-'0')
	}
	return n, len(digits) > 0
}

// isBytes: the names of units have no case (RFC 9110 14.1). With the length of its own, nothing but ASCII folds to it.
func isBytes(unit []byte) bool {
	return len(unit) == len("bytes") && bytes.EqualFold(unit, []byte("bytes"))
}

// contentRange is the field's value for a part of size octets (RFC 9110 14.4).
func contentRange(part span, size int64) string {
	b := append(make([]byte, 0, 64), "bytes "...)
	b = append(strconv.AppendInt(b, part.from, 10), '-')
	b = append(strconv.AppendInt(b, part.from+part.size-1, 10), '/')
	return string(strconv.AppendInt(b, size, 10))
}

// noRange is the value of Content-Range with 416.
func noRange(size int64) string { return "bytes */" + strconv.FormatInt(size, 10) }
