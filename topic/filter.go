package topic

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// MaxName bounds the name of a topic, and a filter, in bytes (MQTT 3.1.1, section 1.5.3).
const MaxName = 1<<16 - 1

// maxLevels bounds the levels of a name and of a filter: each takes memory, and 64 KiB of slashes would take 25 MB.
const maxLevels = 128

// ErrName says that the name of a topic, or a filter, is not valid: see [ValidName] and [ValidFilter].
var ErrName = errors.New("topic: not a valid name or filter")

// ValidName reports whether name is the name of a topic: 1 to [MaxName] bytes of UTF-8 without NUL, + and #, with at most 128
// levels. Any goroutine.
// See MQTT 3.1.1, section 4.7.
func ValidName(name string) bool { return valid(name) && !strings.ContainsAny(name, "+#") }

// ValidFilter reports whether filter is a filter: a name in which a whole level may be +, and the last level may be #. Any
// goroutine. See MQTT 3.1.1, section 4.7.1.
func ValidFilter(filter string) bool {
	if !valid(filter) {
		return false
	}
	for level := range strings.SplitSeq(filter, "/") {
		if len(level) > 1 && strings.ContainsAny(level, "+#") {
			return false
		}
	}
	rest := strings.IndexByte(filter, '#')
	return rest < 0 || rest == len(filter)-1
}

func valid(s string) bool {
	return 0 < len(s) && len(s) <= MaxName && strings.Count(s, "/") < maxLevels && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// isWild reports whether a valid filter may match more than one name.
func isWild(filter string) bool { return strings.ContainsAny(filter, "+#") }

// Match reports whether a valid filter matches a valid name. + matches one level, # any number of further levels, none
// included. Neither matches a first level that begins with $. Any goroutine. See MQTT 3.1.1, sections 4.7.1 and 4.7.2.
func Match(filter, name string) bool {
	if name[0] == '$' && (filter[0] == '+' || filter[0] == '#') {
		return false
	}
	for {
		if filter == "#" {
			return true
		}
		want, filters, moreFilter := strings.Cut(filter, "/")
		level, names, moreName := strings.Cut(name, "/")
		if want != "+" && want != level {
			return false
		}
		switch {
		case !moreName:
			return !moreFilter || filters == "#"
		case !moreFilter:
			return false
		}
		filter, name = filters, names
	}
}
