package files

import (
	"io/fs"
	"strings"
)

// nameOf makes the name of a file in an fs.FS of a path, which is decoded and begins behind a slash. One that ends in
// a slash, or is empty, is a directory's.
//
// What is not ok is the name of nothing, and the answer is 404: what fs.ValidPath refuses, which is "..", ".", empty
// segments, a slash at the front, octets that are not UTF-8; NUL, at which C ends; the backslash, which is a slash to
// Windows; and, unless all of the tree is to be seen, segments that begin with a dot: .git, .env, .htpasswd, and the
// unfinished files of editors and of rsync.
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

// decode takes the escapes out of a path, once (RFC 3986 2.4). An escaped slash is no slash (RFC 3986 2.2), and no
// name of a file has one, so a path with one is not ok, nor is one with a percent sign that begins no escape.
func decode(path []byte) (decoded string, ok bool) {
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			if i+2 >= len(path) {
				return "", false
			}
			high, low := digit(path[i+1]), digit(path[i+2])
			if c = high<<4 | low; high > 15 || low > 15 || c == '/' {
				return "", false
			}
			i += 2
		}
		b = append(b, c)
	}
	return string(b), true
}

// digit is what a HEXDIG stands for; anything else is 16.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
