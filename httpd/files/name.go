package files

import (
	"bytes"
	"io/fs"
	"strings"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// nameOf returns the name in an fs.FS for a decoded path without its first slash. A path that is empty or ends in a slash
// names a directory.
//
// A path is not ok, and the answer is 404, if fs.ValidPath refuses it; if it has NUL, at which C strings end, or a backslash,
// which separates in Windows; and, unless hidden files are served, if a segment begins with a dot: .git, .env, .htpasswd,
// and the unfinished files of editors and of rsync.
func nameOf(path string, hidden bool) (name string, dir, ok bool) {
	if path == "" {
		return ".", true, true
	}
	name, dir = strings.CutSuffix(path, "/")
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\") {
		return "", false, false
	}
	if !hidden && (name[0] == '.' || strings.Contains(name, "/.")) {
		return "", false, false
	}
	return name, dir, true
}

// decode takes the escapes out of a path, once (RFC 3986 2.4). It is not ok if a percent sign begins no escape, or if a
// slash is escaped: that is not a separator (RFC 3986 2.2), and no name of a file has one.
func decode(path []byte) (decoded string, ok bool) {
	b, ok := syntax.Unescape(make([]byte, 0, len(path)), path)
	if !ok || bytes.Count(b, slash) > bytes.Count(path, slash) {
		return "", false
	}
	return string(b), true
}

var slash = []byte{'/'}
