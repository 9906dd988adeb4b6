package files

import (
	"bytes"
	"iter"
	"time"
)

// fields are the fields of a request.
type fields interface {
	Values(name string) iter.Seq[[]byte]
}

// status evaluates the conditions of a GET or HEAD on the version of the file, in the order of RFC 9110 13.2.2. The second field
// of a pair counts only if there is no field with the name of the first. Without a known time the dates do not count. Malformed
// fields err on the safe side: a date is ignored (RFC 9110 13.1.3, 13.1.4), and a list of tags ends at its first mistake, so
// If-Match fails and If-None-Match has the file sent.
func (v version) status(f fields) int {
	if there, listed := v.listed(f, "If-Match", v.strongly); there && !listed {
		return 412
	} else if !there && v.compare(f, "If-Unmodified-Since") > 0 {
		return 412
	}
	if there, listed := v.listed(f, "If-None-Match", v.weakly); there && listed {
		return 304
	} else if !there && v.compare(f, "If-Modified-Since") < 0 {
		return 304
	}
	return 200
}

// rangeField returns the value of the Range field if it counts, otherwise nil. It does not count if there are two, or if
// an If-Range does not name this version (RFC 9110 13.1.5). It is for GET alone (RFC 9110 14.2).
func (v version) rangeField(f fields) []byte {
	asked, n := single(f, "Range")
	if n != 1 {
		return nil
	}
	switch condition, n := single(f, "If-Range"); {
	case n == 0:
		return asked
	case n == 1 && v.strongly(condition):
		return asked
	case n == 1:
		// An exact match, unlike the comparison of If-Unmodified-Since. The file may have been written twice in that
		// second; but clients that have a tag use the tag.
		if t, valid := date(condition); valid && v.tag != "" && t.Unix() == v.modified.Unix() {
			return asked
		}
	}
	return nil
}

// compare returns +1 if the file was modified after the date of a field, otherwise -1. It returns 0 if there is nothing to
// compare: no field or more than one, no date, no known time. Dates are whole seconds, so the file's is cut to that.
func (v version) compare(f fields, name string) int {
	if text, n := single(f, name); n == 1 && v.tag != "" {
		if t, valid := date(text); valid && v.modified.Truncate(time.Second).After(t) {
			return 1
		} else if valid {
			return -1
		}
	}
	return 0
}

// single returns the value of a field that is not a list, and how many fields of the name there are, at most 2.
func single(f fields, name string) (value []byte, n int) {
	for value = range f.Values(name) {
		if n++; n > 1 {
			break
		}
	}
	return value, n
}

// listed reports whether there is a field of the name, and whether one of them has the file's tag or "*".
func (v version) listed(f fields, name string, same func(tag []byte) bool) (there, listed bool) {
	for list := range f.Values(name) {
		there = true
		if string(bytes.Trim(list, white)) == "*" || among(list, same) {
			return true, true
		}
	}
	return there, false
}

// among searches the tags of a list, up to the first thing that is none. A tag may have commas in it.
func among(list []byte, same func(tag []byte) bool) bool {
	for {
		list = bytes.TrimLeft(list, white+",") // also elements that are empty (RFC 9110 5.6.1.2)
		n := tagLen(list)
		tag, rest := list[:n], bytes.TrimLeft(list[n:], white)
		if n == 0 || len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if same(tag) {
			return true
		}
		list = rest
	}
}

// tagLen returns how many bytes at the front are an entity-tag (RFC 9110 8.8.3), 0 if there is none.
func tagLen(text []byte) int {
	i := 0
	if bytes.HasPrefix(text, []byte("W/")) {
		i = len("W/")
	}
	if i == len(text) || text[i] != '"' {
		return 0
	}
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c <= ' ' || c == 0x7F:
			return 0
		}
	}
	return 0
}

// strongly and weakly are the two comparisons of RFC 9110 8.8.3.2. The file's own tag is strong.
func (v version) strongly(tag []byte) bool { return v.tag != "" && string(tag) == v.tag }

func (v version) weakly(tag []byte) bool {
	return v.strongly(bytes.TrimPrefix(tag, []byte("W/")))
}
