package nethttp_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
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

// requests are scenes of what a client sends.
func requests() []row {
	const trailing = "Transfer-Encoding: chunked\nTrailer: Sum, a-b"
	const waits = "Content-Length: 5\nExpect: 100-continue"
	rows := []row{
		{name: "HTTP/1.0", request: "GET /a HTTP/1.0\n\n"},
		{name: "HTTP/1.0 that lasts", request: "GET /a HTTP/1.0\nConnection: Keep-Alive\n\n"},
		{name: "HTTP/0.9", request: "GET /\n"},
		{name: "HTTP/1.2", request: "GET / HTTP/1.2\nHost: a\n\n",
			differs: []but{{"", "HTTP/1.2 1.2", "HTTP/1.1 1.1", "HTTP/1.2"}}},
		{name: "HTTP/2.0", request: "GET / HTTP/2.0\nHost: a\n\n"},
		{name: "CONNECT", request: "CONNECT b:443 HTTP/1.1\nHost: b:443\n\n", differs: connected},
		{name: "CONNECT with a path", request: "CONNECT /a?b HTTP/1.1\nHost: b\n\n", differs: connected},
		{name: "OPTIONS *", request: "OPTIONS * HTTP/1.1\nHost: a\n\n"},
		{name: "OPTIONS * with a body", request: "OPTIONS * HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"},
		{name: "no method", request: " / HTTP/1.1\nHost: a\n\n"},
		{name: "a bad method", request: "G(T / HTTP/1.1\nHost: a\n\n"},
		{name: "four words", request: "GET /a b HTTP/1.1\nHost: a\n\n"},
		{name: "two spaces", request: "GET  / HTTP/1.1\nHost: a\n\n"},
		{name: "an empty line before it", request: "\nGET / HTTP/1.1\nHost: a\n\n", handler: does(""),
			differs: []but{{"", "", "HTTP/1.1 200 OK\n\tContent-Length: 0\n\tDate: drawn\nlasts\n", "Empty lines before a request"}}},
		{name: "lines that end in LF", request: "GET / HTTP/1.1␊Host: a␊␊", differs: refused(400, strict)},
		{name: "several", request: with("A: 1") + "¶HEAD /b HTTP/1.1\nHost: a\n\n¶" + post("Content-Length: 5", "hello") + "¶" +
			post("Transfer-Encoding: chunked", "5\nhello\n0\n\n") + "¶" + with("A: 2")},
		{name: "several, of which one closes", request: with("A: 1") + "¶" + with("Connection: close") + "¶" + with("A: 2")},
		{name: "several, of which one is bad", request: with("A: 1") + "¶" + with("A b: 1") + "¶" + with("A: 2")},

		{name: "half a head", raw: true, request: "GET / HTTP/1.1\nHost: a\n␄",
			differs: []but{{"", `"HTTP/1.1 400 Bad Request" "Connection: close" "Content-Type: text/plain; charset=utf-8"] "400 Bad Request"`, `""] ""`,
				"that ends within its head"}}},
		{name: "half a body", raw: true, request: post("Content-Length: 5", "he␄"),
			differs: []but{{"", `"Content-Length: 0"`, `"Connection: close" "Content-Length: 0"`, "that ends within its body"}}},

		{name: "names become canonical", request: with("x-lOWER: 1\nX_y: 2\nx-a-b: 3")},
		{name: "fields of one name", request: with("A: 1\nB: 2\na: 3")},
		{name: "blanks around values", request: with("A:   b c \t \nB:c\nC: \nD:")},
		{name: "a tab in a value", request: with("A: b\tc")},
		{name: "a control character in a value", request: with("A: b\x01c")},
		{name: "NUL in a value", request: with("A: b\x00c")},
		{name: "bytes beyond ASCII in a value", request: with("A: \xe4\xff")},
		{name: "a folded field", request: with("A: b\n c"), differs: refused(400, strict)},
		{name: "a blank before the colon", request: with("A : b")},
		{name: "no colon", request: with("A")},
		{name: "a name that is none", request: with("A(: b")},
		{name: "no name", request: with(": b")},
		{name: "101 fields", request: with(strings.Repeat("A: b\n", 99) + "B: c"), differs: refused(431, bounds)},
		{name: "a long field", request: with("A: " + strings.Repeat("b", 30000))},
		{name: "a longer field", request: with("A: " + strings.Repeat("b", 70000)), differs: refused(431, bounds)},
		{name: "a long target", request: to("/" + strings.Repeat("b", 17000)), differs: refused(414, bounds)},
		{name: "cookies", request: with("Cookie: a=1; b=2\nCookie: c=\"3\"")},
		{name: "no host", request: "GET / HTTP/1.1\n\n"},
		{name: "two hosts", request: with("Host: b")},
		{name: "a host with a port", request: "GET / HTTP/1.1\nHost: B.example:8080\n\n"},
		{name: "a host with IPv6", request: "GET / HTTP/1.1\nHost: [::1]:80\n\n"},
		{name: "an empty host", request: "GET / HTTP/1.1\nHost:\n\n"},
		{name: "a host that is none", request: "GET / HTTP/1.1\nHost: a b\n\n"},
		{name: "a host with a slash", request: "GET / HTTP/1.1\nHost: a/b\n\n"},
		{name: "a host that is none in an old request", request: "GET / HTTP/1.0\nHost: a b\n\n"},
		{name: "a host with a port that is none", request: "GET / HTTP/1.1\nHost: a:b\n\n", differs: refused(400, strict)},
		{name: "a host with a part of IPv6", request: "GET / HTTP/1.1\nHost: [::1\n\n", differs: refused(400, strict)},
		{name: "a host beyond ASCII", request: "GET / HTTP/1.1\nHost: ä\n\n"},
		{name: "a host with _ and %", request: "GET / HTTP/1.1\nHost: a_b%20c\n\n"},
		{name: "a host with @", request: "GET / HTTP/1.1\nHost: a@b\n\n"},
		{name: "DEL in a value", request: with("A: b\x7fc")},
		{name: "CR in a value", request: "GET / HTTP/1.1\nHost: a\nA: b\rc\n\n"},
		{name: "an end of a line that has only LF", request: "GET / HTTP/1.1\nHost: a␊A: b\n\n", differs: refused(400, strict)},
		{name: "a version in lower case", request: "GET / http/1.1\nHost: a\n\n"},
		{name: "a version of two digits", request: "GET / HTTP/1.10\nHost: a\n\n"},
		{name: "Connection: close", request: with("Connection: close")},
		{name: "Connection: Close, a", request: with("Connection: Close, a\nA: b")},
		{name: "Connection: a, two of them", request: with("Connection: a\nConnection: b")},
		{name: "Connection: keep-alive", request: with("Connection: keep-alive\nKeep-Alive: 5")},
		{name: "Upgrade", request: with("Connection: upgrade\nUpgrade: websocket")},
		{name: "Pragma", request: with("Pragma: no-cache")},
		{name: "Pragma and Cache-Control", request: with("Pragma: no-cache\nCache-Control: max-age=0")},
		{name: "TE", request: with("TE: trailers\nConnection: TE")},
		{name: "Authorization", request: with("Authorization: Basic YTpi")},

		{name: "a body", request: post("Content-Length: 5", "hello")},
		{name: "an empty body", request: post("Content-Length: 0", "")},
		{name: "no body", request: post("A: b", "")},
		{name: "a body of GET", request: with("Content-Length: 5") + "hello"},
		{name: "a body of HEAD", request: "HEAD / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"},
		{name: "a body of HTTP/1.0", request: "POST / HTTP/1.0\nContent-Length: 5\n\nhello"},
		{name: "chunks of HTTP/1.0", request: "POST / HTTP/1.0\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n",
			differs: refused(400, strict)},
		{name: "two equal lengths", request: post("Content-Length: 5\nContent-Length: 5", "hello"),
			differs: refused(400, strict)},
		{name: "two lengths", request: post("Content-Length: 5\nContent-Length: 6", "hello!")},
		{name: "a list of lengths", request: post("Content-Length: 5, 5", "hello")},
		{name: "a length with a sign", request: post("Content-Length: +5", "hello")},
		{name: "a length that is none", request: post("Content-Length: a", "hello")},
		{name: "a length with zeros", request: post("Content-Length: 005", "hello")},
		{name: "an empty length", request: post("Content-Length:", "")},
		{name: "a length beyond all bounds", request: post("Content-Length: 99999999999999999999", "hello")},
		{name: "chunks", request: post("Transfer-Encoding: chunked", "5\nhello\n7\n, world\n0\n\n")},
		{name: "chunks with extensions", request: post("Transfer-Encoding: Chunked", "5;a=b\nhello\n0;c\n\n")},
		{name: "sizes of chunks with zeros and capitals",
			request: post("Transfer-Encoding: chunked", "00A\n0123456789\n000\n\n")},
		{name: "sizes of chunks with blanks behind", request: post("Transfer-Encoding: chunked", "5 \nhello\n0\n\n"),
			differs: spoilt(""),
			inline:  refused(400, received)},
		{name: "a size of a chunk with a sign", request: post("Transfer-Encoding: chunked", "+5\nhello\n0\n\n"),
			inline: refused(400, received)},
		{name: "a chunk with a long extension",
			request: post("Transfer-Encoding: chunked", "5;"+strings.Repeat("a", 1000)+"\nhello\n0\n\n"),
			differs: spoilt(""),
			inline:  refused(400, received)},
		{name: "a chunked twice", request: post("Transfer-Encoding: chunked, chunked", "5\nhello\n0\n\n"),
			differs: refused(400, strict)},
		{name: "a trailer that is none", request: post("Transfer-Encoding: chunked", "5\nhello\n0\nA b: c\n\n"),
			differs: append(spoilt("hello"), but{"", "handler: trailer A b: [\"c\"]\n", "", strict}),
			inline:  refused(400, received)},
		{name: "chunks and a length", request: post("Content-Length: 5\nTransfer-Encoding: chunked", "5\nhello\n0\n\n"),
			differs: refused(400, strict)},
		{name: "another coding", request: post("Transfer-Encoding: gzip, chunked", "5\nhello\n0\n\n")},
		{name: "identity", request: post("Transfer-Encoding: identity\nContent-Length: 5", "hello"),
			differs: refused(400, strict)},
		{name: "a chunk that is too long", request: post("Transfer-Encoding: chunked", "5\nhello!\n0\n\n"),
			inline: refused(400, received)},
		{name: "a chunk of no size", request: post("Transfer-Encoding: chunked", "x\nhello\n0\n\n"),
			inline: refused(400, received)},
		{name: "lines of chunks that end in LF", request: post("Transfer-Encoding: chunked", "5␊hello␊0␊␊"),
			inline: refused(400, received)},
		{name: "codings in two fields", request: post("Transfer-Encoding: chunked\nTransfer-Encoding: chunked", "5\nhello\n0\n\n"),
			differs: refused(400, strict)},
		{name: "the end of a line behind a body", request: post("Content-Length: 5", "hello") + "\n¶" + get},
		{name: "more than 4 MiB to come", request: post("Content-Length: 4194305", ""), handler: does("write no"),
			inline: []but{{"", "", refusal(413).String() + "closed\n", received}}},
		{name: "small chunks", request: post("Transfer-Encoding: chunked", strings.Repeat("a\n0123456789\n", 500)+"0\n\n")},
		{name: "1 MiB", request: post("Content-Length: 1048576", strings.Repeat("x", 1<<20))},
		{name: "trailers", request: post(trailing, "5\nhello\n0\nSum: 1\nA-B: 2\na-b: 3\n\n"),
			inline: []but{{"", "A-B: []", `A-B: ["2" "3"]`, received}, {"", "Sum: []", `Sum: ["1"]`, received}}},
		{name: "a trailer that was not declared", request: post(trailing, "5\nhello\n0\nSum: 1\nOther: 2\n\n"),
			inline: []but{{"", "trailer Sum: []", `trailer Other: ["2"]` + "\nhandler: " + `trailer Sum: ["1"]`, received}}},
		{name: "trailers, none declared", request: post("Transfer-Encoding: chunked", "5\nhello\n0\nSum: 1\n\n"),
			inline: []but{{"", "handler: pattern", `handler: trailer Sum: ["1"]` + "\nhandler: pattern", received},
				{"", "nil false true", "nil false false", received}}},
		{name: "trailers that are declared in two fields",
			request: post("Transfer-Encoding: chunked\nTrailer: Sum\nTrailer: Other", "0\nSum: 1\nOther: 2\n\n"),
			inline:  []but{{"", "Other: []", `Other: ["2"]`, received}, {"", "Sum: []", `Sum: ["1"]`, received}}},
		{name: "trailers with a length", request: post("Content-Length: 5\nTrailer: Sum", "hello")},
		{name: "trailers of no body", request: with("Trailer: Sum")},
		{name: "trailers that are forbidden",
			request: post("Transfer-Encoding: chunked\nTrailer: Content-Length", "0\nContent-Length: 1\n\n")},

		{name: "100-continue, and the body has come", request: post(waits, "hello"),
			differs: []but{{"", "HTTP/1.1 100 Continue\n", "", "100 (Continue) is not sent"}}},
		{name: "100-continue, and HTTP/1.0", request: "POST / HTTP/1.0\n" + waits + "\n\nhello"},
		{name: "100-continue, and no body", request: with("Expect: 100-continue")},
		{name: "100-continue, and nothing is read", request: post(waits, "hello"), handler: does("write no"),
			inline: []but{{"", "\tConnection: close\n", "", received}, {"", "closed", "lasts", received}}},
		{name: "100-continue, and a part is read", request: post(waits, "hello"), handler: does("read 2"),
			differs: []but{{"", "HTTP/1.1 100 Continue\n", "", "100 (Continue) is not sent"},
				{"", "\tConnection: close\n", "", partly}, {"", "closed", "lasts", partly}}},
		{name: "100-continue, and it closes", request: post(waits+"\nConnection: close", "hello"), handler: does("read 5"),
			differs: []but{{"", "HTTP/1.1 100 Continue\n", "", "100 (Continue) is not sent"}}},
		{name: "100-continue behind 103", request: post(waits, "hello"), handler: does("status 103; read 5"),
			differs: []but{{"", "HTTP/1.1 100 Continue\n", "", "100 (Continue) is not sent"}}},
		{name: "100-continue behind 100", request: post(waits, "hello"), handler: does("status 100; read 5")},
		{name: "100-continue behind the answer", request: post(waits, "hello"), handler: does("write hello; read 5")},
		{name: "100-continue twice", request: post(waits+", 100-continue", "hello"), differs: refused(417, strict)},
		{name: "100-continue in capitals", request: post("Content-Length: 5\nExpect: 100-Continue", "hello"),
			handler: does("read 5"),
			differs: []but{{"", "HTTP/1.1 100 Continue\n", "", "100 (Continue) is not sent"}}},
		{name: "another expectation", request: post("Content-Length: 5\nExpect: a", "hello")},

		{name: "a body that is read behind a flush", request: post("Content-Length: 5", "hello"),
			handler: does("write hello; flush; read 10"),
			differs: []but{{"", `"" ErrBodyReadAfterClose`, `"hello" ErrUnexpectedEOF`, "never exclude each other"}}},
		{name: "a body that is closed", request: post("Content-Length: 5", "hello"),
			handler: does("read 2; close; read 1; close")},
		{name: "a bad body that is closed", request: post("Transfer-Encoding: chunked", "x\nhello\n0\n\n"),
			handler: does("close"),
			differs: []but{{"", "invalid byte in chunk length", "<nil>", "Close of a body returns nil"}},
			inline:  refused(400, received)},
		{name: "the words of an error", request: post("Transfer-Encoding: chunked", "x\nhello\n0\n\n"),
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				_, err := r.Body.Read(make([]byte, 9))
				s.say("%v", err)
			},
			differs: []but{{"", "invalid byte in chunk length", "httpd: a chunk size that is not a number, or too large",
				"The errors of a body have other words"}},
			inline: refused(400, received)},
		{name: "reads of nothing", request: post("Content-Length: 5", "hello"),
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				for range 2 {
					n, err := r.Body.Read(nil)
					s.say("%d %v", n, named(err))
					s.read(r.Body, 10)
				}
			}},
		{name: "an unread body", request: post("Content-Length: 200000", strings.Repeat("x", 200000)),
			handler: does("fill 10000")},
		{name: "unread chunks", request: post("Transfer-Encoding: chunked", "30d40\n"+strings.Repeat("x", 200000)+"\n0\n\n"),
			handler: does("fill 10000"), differs: []but{{"", "\tContent-T", "\tConnection: close\n\tContent-T", unended}, {"", "lasts", "closed", unended}},
			inline: []but{{"", "\tConnection: close\n", "", received}, {"", "closed", "lasts", received}}},
		{name: "a copy", request: post(trailing, "a\n0123456789\n0\nSum: 1\n\n"),
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				for range 2 {
					n, err := io.Copy(w, r.Body)
					s.say("%d %v", n, named(err))
				}
			}},
		{name: "a copy to a writer that fails", request: post("Content-Length: 10", "0123456789"),
			handler: copies(limited{5, http.ErrNoCookie})},
		{name: "a copy to a writer that takes less", request: post("Content-Length: 10", "0123456789"),
			handler: copies(limited{n: 5})},
		{name: "a copy of a body that is closed", request: post("Content-Length: 10", "0123456789"),
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				s.say("%v", r.Body.Close())
				copies(io.Discard)(s, w, r)
			}},
	}
	for _, method := range []string{"DELETE", "get", "M-SEARCH"} {
		rows = append(rows, row{name: method, request: method + " / HTTP/1.1\nHost: a\n\n"})
	}
	for _, target := range []string{"/?", "/?a=b&c", "/a/b;c", "//a", "//a/b", "/a/../b", "/a//b", "/a%2Fb", "/a%2fb%20c",
		"/%41", "/%", "/%zz", "/%0a", "/%00",
		"/ä", "/a?%zz", "/a?b=c;d", "/a?b?c", "/a[b]", "/{a}", "/a|b\\c^d`", "/a:b", "/a@b", "a", "/a\x01", "/\x7f", "\xff",
		"http://b/c?d", "http://b", "http://b?c", "HTTP://B:80/C", "https://b/", "http://[::1]:80/a"} {
		rows = append(rows, row{name: fmt.Sprintf("target %.40q", target), request: to(target)})
	}
	for _, target := range []string{"/a#b", "*", "http://", "http:///a", "ftp://b/c", "http://u@b/"} {
		rows = append(rows, row{name: fmt.Sprintf("target %q", target), request: to(target), differs: refused(400, strict)})
	}
	return rows
}

// read reads up to n bytes of a body, and says what it has got.
func (s *scene) read(r io.Reader, n int) {
	p := make([]byte, n)
	k, err := io.ReadFull(r, p)
	s.say("read %s %v", digest(p[:k]), named(err))
}

// copies returns a handler that copies the body, which writes itself.
func copies(to io.Writer) handler {
	return func(s *scene, w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(to, r.Body)
		s.say("%d %v", n, named(err))
	}
}

// limited takes n bytes, and then fails with err.
type limited struct {
	n   int
	err error
}

func (l limited) Write(p []byte) (int, error) {
	if len(p) <= l.n {
		return len(p), nil
	}
	return l.n, l.err
}
