package files

import (
	"strconv"
	"time"
)

// version identifies the content of a file at one time: the validators of RFC 9110 8.8. The zero version is of a file
// that has none.
type version struct {
	tag      string    // a strong entity-tag with its quotes, or empty
	modified time.Time // in UTC, or zero
}

// versionOf makes a version from the time of modification in nanoseconds, the size, and the inode, if there is one: so a
// file that replaces another one by renaming has another tag, even if it has the same size and was given the same time. A
// file keeps its tag if it is written twice in place within one tick of the system's clock, some milliseconds, and keeps
// its size. A hash of the content would have to read each file to its end before its first byte is sent. A time outside
// of the two bounds below does not count.
func versionOf(modified time.Time, size int64, inode uint64) version {
	if modified = modified.UTC(); !modified.After(reproducible) || !modified.Before(countable) {
		return version{}
	}
	tag := `"` + strconv.FormatInt(modified.UnixNano(), 16) + "-" + strconv.FormatInt(size, 16)
	if inode != 0 {
		tag += "-" + strconv.FormatUint(inode, 16)
	}
	return version{tag + `"`, modified}
}

var (
	// Embedded files have the zero time. A reproducible build gives all its files the first second of 1970 or, in a zip
	// archive, the first day of 1980. Such a time does not change with the content: a client would keep the old file for
	// ever.
	reproducible = time.Date(1980, 1, 2, 0, 0, 0, 0, time.UTC)
	// From here on nanoseconds since 1970 do not fit into an int64.
	countable = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

// lastModified is the value of Last-Modified. It must not be later than Date (RFC 9110 8.8.2.1), so a time in the future
// becomes the present one.
func (v version) lastModified(now time.Time) string {
	if v.modified.After(now) {
		return now.UTC().Format(layouts[0])
	}
	return v.modified.Format(layouts[0])
}

// layouts are the three formats of an HTTP-date (RFC 9110 5.6.7). The first is the one that is written.
//
// In the second one Go reads the years 69 to 99 as years of the past century, while the RFC goes by the present year.
// The day of the week does not fit then, so the date is invalid.
var layouts = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// date parses an HTTP-date. It must be exactly what would be written for that time: time.Parse alone would accept letters
// of another case, fractions of seconds, and any day of the week.
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
