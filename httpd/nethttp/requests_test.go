package nethttp_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// describe is a handler that says all that it knows of a request.
func (s *scene) describe(w http.ResponseWriter, r *http.Request) {
	s.say("%s %q %s %d.%d", r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor)
	u := r.URL
	s.say("URL %q: scheme %q, opaque %q, user %v, host %q, path %q, raw %q, query %q %t, fragment %q", u, u.Scheme, u.Opaque, u.User,
		u.Host, u.Path, u.RawPath, u.RawQuery, u.ForceQuery, u.Fragment)
	s.say("host %q, length %d, coding %q, closes %t, no body %t", r.Host, r.ContentLength, r.TransferEncoding, r.Close, r.Body == http.NoBody)
	s.header("header", r.Header)
	s.header("trailer", r.Trailer)
	s.say("pattern %q, response %t, form %t, multipart %t, nil %t %t", r.Pattern, r.Response != nil, r.Form != nil, r.MultipartForm != nil,
		r.Header == nil, r.Trailer == nil)
	body, err := io.ReadAll(r.Body)
	s.say("body %s %v", digest(body), named(err))
	s.header("trailer", r.Trailer)
}

func (s *scene) header(name string, h http.Header) {
	for _, key := range slices.Sorted(maps.Keys(h)) {
		s.say("%s %s: %q", name, key, h[key])
	}
}

// A call is a request, in bytes, and what makes the two servers differ.
type call struct {
	name, request string
	but           []but
}

// strict is for a request that net/http serves.
func strict(status int) []but {
	return []but{{"", "", fmt.Sprintf("refused: %d\nclosed\n", status), "the syntax is strict"}}
}

// with is a GET with further fields.
func with(fields string) string { return "GET / HTTP/1.1\nHost: a\n" + fields + "\n\n" }

// to is a GET of a target.
func to(target string) string { return "GET " + target + " HTTP/1.1\nHost: a\n\n" }

// post is a POST with fields and a body.
func post(fields, body string) string { return "POST / HTTP/1.1\nHost: a\n" + fields + "\n\n" + body }

// What a request has beyond its bytes.
func TestAddressesOfARequest(t *testing.T) {
	play := func(s *scene) {
		heard := make(chan *http.Request, 1)
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) { heard <- r })
		c := s.dial()
		for range 2 {
			c.send(get)
			s.hear(c, "GET")
			r := <-heard
			s.note("from the client: %t", r.RemoteAddr == c.LocalAddr().String())
			local, is := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			s.note("local address: %t, a TCPAddr: %t", is && local.String() == s.address, isTCPAddr(local))
			server, is := r.Context().Value(http.ServerContextKey).(*http.Server)
			s.note("server: %t %t", is, server != nil)
			s.note("TLS: %t", r.TLS != nil)
			if r.TLS != nil {
				ours := c.Conn.(*tls.Conn).ConnectionState()
				s.note("the same: %t %t %t", r.TLS.CipherSuite == ours.CipherSuite, r.TLS.DidResume == ours.DidResume, r.TLS.Version == ours.Version)
			}
		}
	}
	for _, w := range worlds {
		w.compare(t, play)
	}
}

func isTCPAddr(a net.Addr) bool {
	_, is := a.(*net.TCPAddr)
	return is
}

// The files of a form are removed when the handler has returned.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	compare(t, func(s *scene) {
		forms := make(chan *multipart.Form, 1)
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil {
				s.say("%v", err)
			}
			forms <- r.MultipartForm
		})
		body := "--x\nContent-Disposition: form-data; name=a; filename=b\n\n" + strings.Repeat("x", 1000) + "\n--x--\n"
		s.talk(post("Content-Type: multipart/form-data; boundary=x\nContent-Length: "+fmt.Sprint(len(raw(body))), body), false)
		_, err := (<-forms).File["a"][0].Open()
		s.note("removed: %t", err != nil)
	})
}

// A handler may change its request as it likes: the next one is another.
func TestARequestBelongsToItsHandler(t *testing.T) {
	compare(t, func(s *scene) {
		var kept []*http.Request
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			kept = append(kept, r)
			s.write(w, fmt.Sprint(r.Header, r.URL))
			r.Header.Set("B", "mine")
			r.URL.Path = "/mine"
			r.Host, r.RequestURI, r.Close = "mine", "/mine", true
		})
		c := s.dial()
		for i := range 5 {
			c.send(fmt.Sprintf("GET /%d HTTP/1.1\nHost: a\nA: %d\n\n", i, i))
			s.hear(c, "GET")
		}
		s.curtain()
		for _, r := range kept {
			s.note("%q", r.Header)
		}
	})
}

func describeAll(t *testing.T, calls []call) {
	for _, call := range calls {
		t.Run(call.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(s.describe)
				s.ask("", call.request)
			}, call.but...)
		})
	}
}

func TestRequestLines(t *testing.T) {
	calls := []call{
		{name: "/", request: get},
		{name: "HTTP/1.0", request: "GET /a HTTP/1.0\n\n"},
		{name: "HTTP/1.0 that lasts", request: "GET /a HTTP/1.0\nConnection: Keep-Alive\n\n"},
		{name: "CONNECT", request: "CONNECT b:443 HTTP/1.1\nHost: b:443\n\n", but: strict(501)},
		{name: "OPTIONS *", request: "OPTIONS * HTTP/1.1\nHost: a\n\n"},
	}
	for _, method := range []string{"DELETE", "get", "M-SEARCH"} {
		calls = append(calls, call{name: method, request: method + " / HTTP/1.1\nHost: a\n\n"})
	}
	for _, target := range []string{"/?", "/?a=b&c", "/a/b;c", "//a", "//a/b", "/a/../b", "/a//b", "/a%2Fb", "/a%2fb%20c", "/%41", "/%", "/%zz", "/%0a", "/%00",
		"/ä", "/a?%zz", "/a?b=c;d", "/a?b?c", "/a[b]", "/{a}", "/a|b\\c^d`", "/a:b", "/a@b",
		"http://b/c?d", "http://b", "http://b?c", "HTTP://B:80/C", "https://b/", "http://[::1]:80/a"} {
		calls = append(calls, call{name: fmt.Sprintf("target %.40q", target), request: to(target)})
	}
	describeAll(t, calls)
}

func TestRequestFields(t *testing.T) {
	calls := []call{
		{name: "names become canonical", request: with("x-lOWER: 1\nX_y: 2\nx-a-b: 3")},
		{name: "of one name", request: with("A: 1\nB: 2\na: 3")},
		{name: "blanks around values", request: with("A:   b c \t \nB:c\nC: \nD:")},
		{name: "a tab in a value", request: with("A: b\tc")},
		{name: "folded", request: with("A: b\n c"), but: strict(400)},
		{name: "cookies", request: with("Cookie: a=1; b=2\nCookie: c=\"3\"")},
		{name: "a host with a port", request: "GET / HTTP/1.1\nHost: B.example:8080\n\n"},
		{name: "a host with IPv6", request: "GET / HTTP/1.1\nHost: [::1]:80\n\n"},
		{name: "an empty host", request: "GET / HTTP/1.1\nHost:\n\n"},
		{name: "a host in an old request with none valid", request: "GET / HTTP/1.0\nHost: a b\n\n"},
		{name: "Connection: close", request: with("Connection: close")},
		{name: "Connection: Close, a", request: with("Connection: Close, a\nA: b")},
		{name: "Connection: a, two of them", request: with("Connection: a\nConnection: b")},
		{name: "Upgrade", request: with("Connection: upgrade\nUpgrade: websocket")},
		{name: "Pragma", request: with("Pragma: no-cache")},
		{name: "TE", request: with("TE: trailers\nConnection: TE")},
		{name: "a long one", request: with("A: " + strings.Repeat("b", 30000))},
	}
	describeAll(t, calls)
}

func TestBodies(t *testing.T) {
	const trailing = "Transfer-Encoding: chunked\nTrailer: Sum, a-b"
	describeAll(t, []call{
		{name: "with a length", request: post("Content-Length: 5", "hello")},
		{name: "empty with a length", request: post("Content-Length: 0", "")},
		{name: "without one", request: post("A: b", "")},
		{name: "of a GET", request: with("Content-Length: 5") + "hello"},
		{name: "of a HEAD", request: "HEAD / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"},
		{name: "old", request: "POST / HTTP/1.0\nContent-Length: 5\n\nhello"},
		{name: "two equal lengths", request: post("Content-Length: 5\nContent-Length: 5", "hello"), but: strict(400)},
		{name: "in chunks", request: post("Transfer-Encoding: chunked", "5\nhello\n7\n, world\n0\n\n")},
		{name: "in chunks and with a length", request: post("Content-Length: 5\nTransfer-Encoding: chunked", "5\nhello\n0\n\n"),
			but: strict(400)},
		{name: "bad chunk: too long", request: post("Transfer-Encoding: chunked", "5\nhello!\n0\n\n")},
		{name: "trailers", request: post(trailing, "5\nhello\n0\nSum: 1\nA-B: 2\na-b: 3\n\n")},
		{name: "a trailer that was not declared", request: post(trailing, "5\nhello\n0\nSum: 1\nOther: 2\n\n")},
		{name: "trailers, none declared", request: post("Transfer-Encoding: chunked", "5\nhello\n0\nSum: 1\n\n")},
		{name: "trailers that are declared in two fields",
			request: post("Transfer-Encoding: chunked\nTrailer: Sum\nTrailer: Other", "0\nSum: 1\nOther: 2\n\n")},
		{name: "trailers with a length", request: post("Content-Length: 5\nTrailer: Sum", "hello")},
		{name: "trailers of no body", request: with("Trailer: Sum")},
		{name: "trailers that are forbidden",
			request: post("Transfer-Encoding: chunked\nTrailer: Content-Length", "0\nContent-Length: 1\n\n")},
		{name: "1 MiB", request: post("Content-Length: 1048576", strings.Repeat("x", 1<<20))},
		{name: "100 KB in small chunks",
			request: post("Transfer-Encoding: chunked", strings.Repeat("a\n0123456789\n", 10000)+"0\n\n")},
	})
}
