package nethttp

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unsafe"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// request makes req the request for a handler, with memory of its own: nothing in it is lent. Its body is set later, and its
// context has the values of v.
func (a *Adapter) request(req *http.Request, r *httpd.Request, v *values) (context.CancelFunc, error) {
	text := make(text, 0, sizeOf(r))
	target, host := text.add(r.Target()), text.add(r.Host())
	u, err := &url.URL{Host: target}, error(nil)
	if target[0] == '/' || string(r.Method()) != http.MethodConnect {
		if u, err = url.ParseRequestURI(target); err != nil {
			return nil, err
		}
	}
	addr := a.origin(r, v)
	ctx, cancel := context.WithCancel(v)
	*req = *(&http.Request{Method: methodOf(r.Method()), URL: u, RequestURI: target, Host: host, Proto: r.Proto(), ProtoMajor: 1,
		Header: text.header(r), Body: http.NoBody, ContentLength: r.Body.Length(), RemoteAddr: addr.remote,
		Pattern: r.Pattern(), TLS: addr.tls}).WithContext(ctx)
	switch req.Proto {
	case "HTTP/1.1":
		req.ProtoMinor = 1
	case "HTTP/2.0":
		req.ProtoMajor = 2
		delete(req.Header, "Expect") // as net/http does
	}
	req.Close = req.ProtoMajor == 1 && closes(req)
	if req.ContentLength < 0 && req.ProtoMajor == 1 {
		req.TransferEncoding = []string{"chunked"}
	}
	if req.ContentLength < 0 || req.ProtoMajor == 2 {
		if req.Trailer, err = announced(req.Header); err != nil {
			cancel()
			return nil, err
		}
	}
	if p := req.Header["Pragma"]; len(p) > 0 && p[0] == "no-cache" && req.Header["Cache-Control"] == nil {
		req.Header["Cache-Control"] = []string{"no-cache"} // as net/http does (RFC 9111 5.4)
	}
	for _, rest, more := strings.Cut(req.Pattern, "{"); more; _, rest, more = strings.Cut(rest, "{") { // its wildcards
		name, _, _ := strings.Cut(rest, "}")
		if name = strings.TrimSuffix(name, "..."); name != "$" {
			req.SetPathValue(name, string(r.Value(name)))
		}
	}
	return cancel, nil
}

// removeFiles removes the temporary files of ParseMultipartForm, when the handler has returned.
func removeFiles(req *http.Request) {
	if req.MultipartForm != nil {
		_ = req.MultipartForm.RemoveAll()
	}
}

// origin gives v what requests of the connection have in common, and returns its addresses.
func (a *Adapter) origin(r *httpd.Request, v *values) (addr addresses) {
	v.Context, v.server = context.Background(), &a.server
	var c *conn
	if a.of != nil {
		v.Context, v.server = a.of.base, &a.of.std
		c = conns.Get(r.Scheduler())[r.Conn()]
	}
	if c != nil {
		v.Context, addr = c.ctx, c.addresses
	} else {
		addr = known(r)
	}
	v.local = addr.local
	return addr
}

// values is the context of a request without its end.
type values struct {
	context.Context
	server *http.Server
	local  net.Addr
}

func (v *values) Value(key any) any {
	switch key {
	case http.ServerContextKey:
		return v.server
	case http.LocalAddrContextKey:
		return v.local
	}
	return v.Context.Value(key)
}

// methodOf returns the methods that most requests have without an allocation.
func methodOf(m []byte) string {
	switch string(m) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	case http.MethodPost:
		return http.MethodPost
	}
	return string(m)
}

// text is the memory of all strings of a request.
type text []byte

// sizeOf returns how much that is.
func sizeOf(r *httpd.Request) int {
	n := len(r.Target()) + len(r.Host())
	for name, value := range r.Fields() { // written here, it needs no memory
		n += len(name) + len(value)
	}
	return n
}

// add copies p to a string.
func (t *text) add(p []byte) string {
	n := len(*t)
	*t = append(*t, p...) // there is room
	own := (*t)[n:]
	return unsafe.String(unsafe.SliceData(own), len(own))
}

// header copies the fields. Their values share one slice.
func (t *text) header(r *httpd.Request) http.Header {
	n := 0
	for range r.Fields() {
		n++
	}
	all, header := make([]string, 0, n), make(http.Header, n)
	for name, value := range r.Fields() {
		key := http.CanonicalHeaderKey(t.add(name))
		if key == "Host" || key == "Transfer-Encoding" {
			continue
		}
		if old, ok := header[key]; ok {
			header[key] = append(old, t.add(value))
			continue
		}
		all = append(all, t.add(value))
		header[key] = all[len(all)-1:][:1:1]
	}
	return header
}

// closes reports whether the client wants the connection closed (RFC 9112 9.3).
func closes(r *http.Request) bool {
	return lists(r.Header["Connection"], "close") || r.ProtoMinor == 0 && !lists(r.Header["Connection"], "keep-alive")
}

// lists reports whether lists of tokens have the given one (RFC 9110 5.6.1).
func lists(values []string, token string) bool {
	for name := range elements(values) {
		if strings.EqualFold(name, token) {
			return true
		}
	}
	return false
}

// elements yields the elements of comma-separated lists.
func elements(values []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range values {
			for e := range strings.SplitSeq(v, ",") {
				if e = strings.Trim(e, " \t"); e != "" && !yield(e) {
					return
				}
			}
		}
	}
}

// announced takes the names of trailers out of the field Trailer. The error is of a name that no trailer may have.
func announced(header http.Header) (trailer http.Header, err error) {
	for name := range elements(header["Trailer"]) {
		if name = http.CanonicalHeaderKey(name); !isTrailer(name) {
			err = fmt.Errorf("nethttp: a trailer %q", name)
		}
		trailer = with(trailer, name, nil)
	}
	delete(header, "Trailer")
	return trailer, err
}

// isTrailer reports whether a field may be a trailer (RFC 9110 6.5.1).
func isTrailer(name string) bool {
	return syntax.KindOf(syntax.Bytes(name)) == syntax.Ordinary && name != "Trailer"
}

// headerOf copies trailers; nil: there are none.
func headerOf(trailers iter.Seq2[[]byte, []byte]) (all http.Header) {
	for name, value := range trailers {
		key := http.CanonicalHeaderKey(string(name))
		all = with(all, key, append(all[key], string(value)))
	}
	return all
}

// takeTrailers gives a request or a response its trailers. Copies of it have them as well if they were announced.
func takeTrailers(to *http.Header, all http.Header) {
	if *to == nil {
		*to = all
	} else {
		maps.Copy(*to, all)
	}
}
