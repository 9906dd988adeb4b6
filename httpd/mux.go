package httpd

import (
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/route"
)

// Mux passes each request to the handler of the pattern that matches it, in the language of net/http's ServeMux:
// "[METHOD ][HOST]/[PATH]" with {name}, {name...} and {$}. Unlike ServeMux it never redirects: a path with empty
// segments, or with "." or ".." for a segment, escaped or not, matches nothing. (ServeMux itself cannot be used: it
// wants an http.Request made of strings, and gives the values of wildcards only to handlers that it calls itself.)
//
// A path that only other methods match is answered with 405 and Allow, one that nothing matches with 404, and a method
// that neither RFC 9110 nor a pattern knows with 501. "OPTIONS *" is answered with 204 and, as Allow, the methods that
// patterns name. CONNECT, if Server.Connect is the Serve of a Mux, is answered with 501 unless the pattern that matches names
// it. The zero Mux is ready. Patterns are added before the first request; after that any number of schedulers may use it.
type Mux struct {
	routes   route.Tree
	handlers []Handler // by the number of the pattern
}

// Handle adds a handler for the requests that pattern matches. It panics if pattern is invalid, or in conflict with
// another one.
func (m *Mux) Handle(pattern string, h Handler) {
	if h == nil {
		panic("httpd: Handle without a Handler")
	}
	if err := m.routes.Add(pattern); err != nil {
		panic(err.Error())
	}
	m.handlers = append(m.handlers, h)
}

// Serve passes a request to the handler of the pattern that matches it. It is a Handler, such as for Server.Handler.
func (m *Mux) Serve(w *Response, r *Request) act.Action {
	n, found := m.routes.Match(r.Method(), r.Host(), r.Path(), &r.values)
	switch {
	case string(r.Method()) == "CONNECT" && !strings.HasPrefix(r.Pattern(), "CONNECT "):
		w.StatusOnly(501)
	case found == route.Matched:
		return m.handlers[n](w, r)
	case string(r.Path()) == "*": // of the server as a whole (RFC 9110 9.3.7)
		w.StatusOnly(204)
		w.Add("Allow", strings.Join(m.routes.Methods("OPTIONS"), ", "))
	case !m.knows(r.Method()):
		w.StatusOnly(501) // RFC 9110 9.1
	case found == route.NoMethod:
		w.StatusOnly(405)
		w.Add("Allow", strings.Join(m.routes.Allow(r.Host(), r.Path()), ", "))
	default:
		w.StatusOnly(404)
	}
	return nil
}

// knows reports whether a method is standard, or of a pattern.
func (m *Mux) knows(method []byte) bool { return standard(method) || m.routes.HasMethod(method) }

// standard reports whether a method is one of RFC 9110 9.3 or RFC 5789.
func standard(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH":
		return true
	}
	return false
}

// Pattern returns the pattern of the [Mux] that the request has matched, for logs and metrics. It is "" without a Mux.
func (r *Request) Pattern() string { return r.values.Pattern() }

// Value returns the decoded part of the path that the wildcard {name} or {name...} of the pattern matched, or nil if the
// pattern has no such wildcard. It is lent until the turn ends. A client may send any byte in it, including slashes (as
// "%2F"), and so "../": before it becomes a file name it needs filepath.IsLocal or an os.Root.
func (r *Request) Value(name string) []byte { return r.values.Get(r.Path(), name) }
