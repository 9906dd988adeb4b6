// Package route finds the value whose pattern matches a request, in the language of net/http's ServeMux. It knows
// neither requests nor handlers, only methods, hosts and paths.
package route

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// pattern matches requests, in the language of net/http's ServeMux since Go 1.22. A pattern that can never match is refused, where
// ServeMux takes some: one with an empty segment, with "." or ".." (also escaped), or with a host that no Host field can have.
type pattern struct {
	text     string
	method   string // "" is any
	host     string // in lower case; "" is any
	segments []segment
	names    []string // of the wildcards, from left to right
}

// The limits of a pattern.
const (
	maxWildcards = 16
	maxHost      = 255 // bytes; RFC 1035 2.3.4
)

// segment is the text between two slashes.
type segment struct {
	kind kind
	text string // a literal, decoded, or the name of a wildcard
}

type kind uint8

const (
	literal   kind = iota
	wildcard       // {name}
	remainder      // {name...}, or without a name for a pattern that ends in a slash: always the last
	dollar         // {$}: always the last
)

// parsePattern parses the text. Its errors are one sentence with the text in it.
func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	path, err := p.front()
	if err == nil {
		err = p.path(path)
	}
	if err != nil {
		return pattern{}, fmt.Errorf("httpd: pattern %q: %w", text, err)
	}
	return p, nil
}

// front parses method and host, and returns the path.
func (p *pattern) front() (path string, err error) {
	place := p.text
	if i := strings.IndexAny(place, syntax.Blank); i >= 0 {
		p.method, place = place[:i], strings.TrimLeft(place[i:], syntax.Blank)
	}
	slash := max(strings.IndexByte(place, '/'), 0)
	host, path := []byte(place[:slash]), place[slash:]
	_, matchable := clean([]byte(path))
	switch {
	case !syntax.Token.Only([]byte(p.method)):
		return "", errors.New("its method is not a token")
	case path == "" || path[0] != '/':
		return "", errors.New("it has no path, which begins with a slash")
	case len(host) > maxHost || !syntax.ValidHost(host) || len(syntax.WithoutPort(host)) < len(host):
		return "", errors.New("its host is none that a request can name; it is written without a port, IPv6 in brackets")
	case !matchable:
		return "", errors.New(`it can never match, since a path with an empty, a "." or a ".." segment does not`)
	}
	p.host = strings.ToLower(string(host))
	return path, nil
}

func (p *pattern) path(path string) error {
	texts := strings.Split(path[1:], "/")
	for i, text := range texts {
		s, err := parseSegment(text, i == len(texts)-1)
		if err != nil {
			return err
		}
		p.segments = append(p.segments, s)
		if s.kind == literal || s.kind == dollar || s.text == "" {
			continue
		}
		if slices.Contains(p.names, s.text) {
			return errors.New("two wildcards have the same name")
		}
		p.names = append(p.names, s.text)
	}
	if len(p.names) > maxWildcards {
		return fmt.Errorf("it has more than %d wildcards", maxWildcards)
	}
	return nil
}

func parseSegment(text string, last bool) (segment, error) {
	opened := strings.IndexByte(text, '{')
	name, closed := strings.CutSuffix(strings.TrimPrefix(text, "{"), "}")
	name, dots := strings.CutSuffix(name, "...")
	switch {
	case text == "":
		return segment{kind: remainder}, nil
	case opened < 0:
		if decoded, ok := syntax.Unescape(nil, []byte(text)); ok { // else as it is, as in ServeMux: "/100%" matches "/100%25"
			text = string(decoded)
		}
		return segment{literal, text}, nil
	case opened > 0 || !closed:
		return segment{}, errors.New("a wildcard is a whole segment, from { to }")
	case !last && (dots || name == "$"):
		return segment{}, errors.New("{$} and {name...} are for the last segment")
	case name == "$" && !dots:
		return segment{kind: dollar}, nil
	case !identifier(name):
		return segment{}, errors.New("the name of a wildcard is an identifier of Go")
	case dots:
		return segment{remainder, name}, nil
	}
	return segment{wildcard, name}, nil
}

func identifier(name string) bool {
	for i, c := range name {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return name != ""
}

// conflict returns why two patterns cannot be in one tree, or nil: some requests match both, and neither goes first.
func (p *pattern) conflict(o *pattern) error {
	if p.host != o.host {
		return nil
	}
	switch compareMethods(p.method, o.method) | comparePaths(p.segments, o.segments) {
	case same:
		return fmt.Errorf("httpd: pattern %q matches the same requests as %q", p.text, o.text)
	case wider | narrower:
		return fmt.Errorf("httpd: pattern %q conflicts with %q: some requests match both, and neither is more specific", p.text, o.text)
	}
	return nil
}

// relation compares the sets that two things match. Of things with parts it is the union over the parts: wider in one
// and narrower in another is both, and apart in one is apart.
type relation uint8

const (
	wider    relation = 1 << iota // the first matches something that the second does not
	narrower                      // the second matches something that the first does not
	apart                         // nothing matches both; the other bits have no meaning then
	same     relation = 0
)

func compareMethods(a, b string) relation {
	switch {
	case a == b:
		return same
	case a == "" || a == "GET" && b == "HEAD":
		return wider
	case b == "" || b == "GET" && a == "HEAD":
		return narrower
	}
	return apart
}

// comparePaths compares the segments that both paths have. If one path is longer, the other must end in a remainder,
// which was found to be wider.
func comparePaths(a, b []segment) relation {
	r, n := same, min(len(a), len(b))
	for i := range n {
		r |= compareSegments(a[i], b[i])
	}
	if len(a) > n && b[n-1].kind != remainder || len(b) > n && a[n-1].kind != remainder {
		return apart
	}
	return r
}

func compareSegments(a, b segment) relation {
	switch {
	case a.kind == b.kind && (a.kind != literal || a.text == b.text):
		return same
	case a.kind == remainder || a.kind == wildcard && b.kind == literal:
		return wider
	case b.kind == remainder || b.kind == wildcard && a.kind == literal:
		return narrower
	}
	return apart
}

// clean reports whether a path begins with a slash, and no segment is empty (except after a last slash), "." or "..". Of a
// clean path it also reports whether it has a percent sign.
func clean(path []byte) (escaped, ok bool) {
	if len(path) == 0 || path[0] != '/' {
		return false, false
	}
	before := byte(0)
	for i, b := range path {
		if b == '%' {
			escaped = true
		}
		if before == '/' && (b == '/' || dots(path[i:])) {
			return false, false
		}
		before = b
	}
	return escaped, true
}

var slash = []byte{'/'}

// dots reports whether the first segment of a path is "." or "..", each dot as it is or escaped.
func dots(path []byte) bool {
	if path[0] != '.' && path[0] != '%' { // nearly all
		return false
	}
	segment, _, _ := bytes.Cut(path, slash)
	n := 0
	for ; len(segment) > 0; n++ {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && syntax.EqualFold(segment[:3], "%2e"):
			segment = segment[3:]
		default:
			return false
		}
	}
	return n == 1 || n == 2
}
