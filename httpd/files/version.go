package files

import (
	"strconv"
	"time"
)

// version is what tells the contents that a file had at different times apart: the validators of RFC 9110 8.8. The
// zero version is of a file that has none.
type version struct {
	tag      string    // a strong entity-tag with its quotes, or empty
	modified time.Time // in UTC, or zero
}

// versionOf makes a version of what the file system knows: of the time in nanoseconds, and the size. A file that is
// written in place twice within one tick of the system's clock, some milliseconds, and keeps its size keeps its tag;
// who replaces files by renaming has no such trouble, nor has who reads what changes once a day. A hash of the
// contents would have to read each file to the end before its first octet is sent.
//
// Times outside of the two bounds below are none.
func versionOf(modified time.Time, size int64) version {
	if modified = modified.UTC(); !modified.After(reproducible) || !modified.Before(countable) {
		return version{}
	}
	b := append(make([]byte, 0, 40), '"')
	b = append(strconv.AppendInt(b, modified.UnixNano(), 16), '-')
	b = append(strconv.AppendInt(b, size, 16), '"')
	return version{string(b), modified}
}

var (
	// Embedded files have the zero time, a build that shall be reproducible gives all its files the first second of
	// 1970 or, in an archive of the zip kind, the first day of 1980. Such a time tells no versions apart: a client
	// would keep the old file for ever.
	reproducible = time.Date(1980, 1, 2, 0, 0, 0, 0, time.UTC)
	// From here on nanoseconds since 1970 do not fit, and a little later years have five digits.
	countable = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

// lastModified is the field's value. A server must not say that something was modified after it has said so
// (RFC 9110 8.8.2.1), so a time to come becomes the present one.
func (v version) lastModified(now time.Time) string {
	if v.modified.After(now) {
		return now.UTC().Format(layouts[0])
	}
	return v.modified.Format(layouts[0])
}

// layouts are the three ways to write an HTTP-date (RFC 9110 5.6.7). The first is the one that is written.
//
// In the second one Go takes the years 69 to 99 for those of the past century, where the RFC looks at the present
// year. The day of the week then does not fit, so the date is none.
var layouts = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// date understands an HTTP-date. It has to be what would be written for that time: time.Parse alone would take other
// cases of letters, fractions of seconds, and any day of the week.
func date(text []byte) (t time.Time, valid bool) {
	if len(text) > len("Wednesday, 02-Jan-06 15:04:05 GMT") {
		return t, false
	}
	for _, layout := range layouts {
		t, err := time.Parse(layout, string(text))
		if err == nil && t.Format(layout) == string(text) {
			return t, true
		}
	}
	return t, false
}
