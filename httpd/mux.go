package httpd

import (
	"slices"
	"strings"

	"github.com/daimon-go/daimon/act"
)

// Mux leaves each request to the handler of the pattern that matches it, in the language of net/http's ServeMux:
// "[METHOD ][HOST]/[PATH]" with {name}, {name...} and {$}. (ServeMux itself cannot be asked: it wants a http.Request
// made of strings, and tells what the wildcards stand for only to handlers that it calls itself.) Unlike ServeMux it
// redirects nobody: a path with empty segments or with dots for segments, written out or escaped, matches nothing.
//
// A path that only other methods match is answered with 405 and Allow, one that nothing matches with 404, and a method
// that neither RFC 9110 nor a pattern knows with 501. The zero Mux is ready. Patterns are added before the first
// request; after that any number of schedulers may use it.
type Mux struct {
	routes tree[Handler]
}

// Handle leaves requests that pattern matches to h. It panics on a pattern that is none, or in conflict with another.
func (m *Mux) Handle(pattern string, h Handler) {
	if h == nil {
		panic("httpd: Handle without a Handler")
	}
	if err := m.routes.add(pattern, h); err != nil {
		panic(err.Error())
	}
}

// Serve is a Handler.
func (m *Mux) Serve(w *Response, r *Request) act.Action {
	h, pattern, found := m.routes.match(r.Method(), r.Host(), r.Path(), &r.values)
	switch {
	case found == matched:
		r.pattern = pattern
		return h(w, r)
	case !m.knows(r.Method()):
		w.Error(501) // RFC 9110 9.1
	case found == noMethod:
		w.Error(405)
		w.Add("Allow", strings.Join(m.routes.allow(r.Host(), r.Path()), ", "))
	default:
		w.Error(404)
	}
	return nil
}

// knows tells whether a method is one of RFC 9110 9.3 or RFC 5789, or of a pattern.
func (m *Mux) knows(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH":
		return true
	}
	return slices.Contains(m.routes.methods, string(method))
}

// Pattern is the pattern of the Mux that matched; empty without one.
func (r *Request) Pattern() string { return r.pattern }

// Value is what stands, decoded, where the pattern has {name} or {name...}; nil if it has no such place. Like all that
// a client sends it may hold any octet, from "%2F" also slashes, and so "..": who makes a file's name of it asks
// filepath.IsLocal, or opens it in an os.Root.
func (r *Request) Value(name string) []byte { return r.values.get(name) }
