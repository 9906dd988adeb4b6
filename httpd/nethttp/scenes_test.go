package nethttp_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// The sentences of differences that several scenes show, or their beginnings.
const (
	strict      = "The syntax of requests is strict"
	bounds      = "A head has at most"
	connection  = "Of a handler's Connection only"
	coding      = "Transfer-Encoding is the server's"
	partly      = "The connection goes on if a handler reads only a part"
	prefixed    = "Trailers with http.TrailerPrefix"
	switched    = "101 is sent by Hijack"
	unended     = "says close if the end of a body in chunks"
	whole       = "The answer is sent when the handler has returned"
	received    = "The body is received before the handler is called"
	unsupported = "Hijack and deadlines"
)

// What an answer may have.
const (
	chunked = "\tTransfer-Encoding: chunked\n"
	failed  = "HTTP/1.1 500 Internal Server Error\n\tConnection: close\n\tContent-Length: 26\n" +
		"\tContent-Type: text/plain; charset=utf-8\n\tDate: drawn\n\t\"500 Internal Server Error\\n\"\nclosed\n"
)

// A row is a scene: what a client sends on a connection, and the handler that answers. It is played on net/http, on an Adapter,
// and on an Adapter that is Inline. What the client receives and what the handler says has to be the same, but for the
// differences, each of which is in the documentation of this package.
type row struct {
	name    string
	request string  // or several with "¶" between them; "": the requests of asked
	handler handler // nil: describe
	secure  bool    // with TLS
	raw     bool    // what the client receives is not HTTP, which an Inline handler cannot do
	differs []but   // with both Adapters
	inline  []but   // with the one that is Inline
}

// but is a difference on purpose: where net/http gives was, this package gives is. It is looked for in the parts whose
// names begin with at. An empty was is all of a part.
type but struct{ at, was, is, why string }

// everywhere are the differences that any answer may have. Each makes of an answer of net/http what this package sends.
var everywhere = []struct {
	why   string
	amend func(a *answer)
}{
	{"get status lines with HTTP/1.1", func(a *answer) { a.line = strings.Replace(a.line, "HTTP/1.0", "HTTP/1.1", 1) }},
	{"is not registered has none", func(a *answer) { a.line = strings.TrimSuffix(a.line, fmt.Sprint("status code ", a.status)) }},
	{"no interim responses", func(a *answer) {
		if a.old && !a.final() {
			a.line = ""
		}
	}},
	{"An interim response has no Connection", func(a *answer) {
		if !a.final() {
			a.fields = slices.DeleteFunc(a.fields, func(f string) bool { return strings.HasPrefix(f, "Connection:") })
		}
	}},
	{"Connection: close if the connection ends", func(a *answer) {
		if a.old && a.get("Connection") == "" {
			a.add("Connection: close")
		}
	}},
	{"An answer to HEAD has a Transfer-Encoding", func(a *answer) {
		if a.method == "HEAD" && !a.old && a.get("Content-Length") == "" && a.status >= 200 && a.status != 204 && a.status != 304 {
			a.add("Transfer-Encoding: chunked")
		}
	}},
	{"A refusal has a Date", func(a *answer) {
		if a.refusal && a.status >= 400 {
			*a = *refusal(a.status)
		}
	}},
}

// add adds a field.
func (a *answer) add(field string) {
	a.fields = append(a.fields, field)
	slices.Sort(a.fields)
}

// refusal is what this package sends without a handler.
func refusal(status int) *answer {
	text := fmt.Sprint(status, " ", http.StatusText(status))
	text = strings.NewReplacer("Request URI", "URI", "Request Entity", "Content").Replace(text) // as RFC 9110 has it
	return &answer{line: "HTTP/1.1 " + text, status: status, body: []byte(text + "\n"),
		fields: []string{"Connection: close", fmt.Sprint("Content-Length: ", len(text)+1),
			"Content-Type: text/plain; charset=utf-8", "Date: drawn"}}
}

// refused are the differences of a scene whose first request is refused by this package.
func refused(status int, why string) []but {
	return []but{{"", "", refusal(status).String() + "closed\n", why}}
}

// spoilt are the differences of a body that only net/http takes: a handler reads what comes before the mistake.
func spoilt(read string) []but {
	return []but{{"", "\tContent-L", "\tConnection: close\n\tContent-L", strict}, {"", "lasts", "closed", strict},
		{"", `"hello" nil`, strconv.Quote(read) + " another error", strict}}
}

// connected are the differences of an answer to CONNECT.
var connected = []but{{"", "\tContent-Length: 0", "\tConnection: close", "An answer to CONNECT"}, {"", "lasts", "closed", "An answer to CONNECT"}}

// asked are the requests for handlers that make no difference.
var asked = []struct{ name, request string }{
	{"all", get + "¶" + post("Content-Length: 5", "hello") + "¶HEAD / HTTP/1.1\nHost: a\n\n¶" + with("Connection: close")},
	{"old GET", "GET / HTTP/1.0\n\n"},
	{"old lasting GET", "GET / HTTP/1.0\nConnection: keep-alive\n\n"},
}

// play plays the scene of a row.
func (row row) play(s *scene) {
	handler := row.handler
	if handler == nil {
		handler = (*scene).describe
	}
	s.handleFunc(func(w http.ResponseWriter, r *http.Request) { handler(s, w, r) })
	switch {
	case row.raw:
		c := s.dial()
		defer c.Close()
		c.send(cmp.Or(row.request, get))
		s.rest(c)
	case row.request != "":
		s.ask("", row.request)
	default:
		for i, a := range asked {
			s.part(a.name)
			s.talk(a.request, i%2 == 0)
			s.curtain()
		}
	}
}

func TestScenes(t *testing.T) {
	for _, group := range groups {
		for _, row := range group.rows {
			t.Run(group.name+"/"+row.name, func(t *testing.T) {
				w := worlds[0]
				if row.secure {
					w = worlds[1]
				}
				theirs := run(t, w.theirs, row.play)
				amend(t, theirs, row.differs)
				require.Equal(t, script(theirs), script(run(t, w.ours, row.play)))
				if !row.raw {
					amend(t, theirs, row.inline)
					require.Equal(t, unframed(theirs), unframed(run(t, w.inline, row.play)), "Inline")
				}
			})
		}
	}
}

// unshown are the differences that depend on time, which no scene has.
var unshown = []string{"Timeouts are there", "SetReadDeadline has no effect", "up to 256 KiB beyond what is on its way"}

// The documentation has a list of the differences, and each of them has a scene.
func TestDifferences(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, list, _ := strings.Cut(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", "\n")), " "), "# What is different")
	list, _, _ = strings.Cut(list, " # ")
	items := strings.Split(list, " - ")[1:]
	shown := slices.Clone(unshown)
	for _, d := range everywhere {
		shown = append(shown, d.why)
	}
	for _, d := range unlike {
		shown = append(shown, d.why)
	}
	for _, group := range groups {
		for _, row := range group.rows {
			for _, d := range append(row.differs, row.inline...) {
				shown = append(shown, d.why)
			}
		}
	}
	for _, why := range shown {
		has := func(item string) bool { return strings.Contains(item, why) }
		require.True(t, why != "" && slices.ContainsFunc(items, has), "the list does not have %q", why)
	}
	for _, item := range items {
		of := func(why string) bool { return strings.Contains(item, why) }
		require.True(t, slices.ContainsFunc(shown, of), "no scene shows that %s", item)
	}
}

// amend makes of what net/http does what this package should do. A difference that is none is an error of the table.
func amend(t testing.TB, parts []part, differences []but) {
	t.Helper()
	for _, d := range differences {
		found := false
		for i := range parts {
			p := &parts[i]
			was := cmp.Or(d.was, p.text)
			if was != "" && strings.HasPrefix(p.name, d.at) && strings.Contains(p.text, was) {
				found, p.text = true, strings.ReplaceAll(p.text, was, d.is)
			}
		}
		require.True(t, found, "a difference that is none: %q at %q, in:\n%s", d.was, d.at, script(parts))
	}
}

var framing = regexp.MustCompile(`\t(Transfer-Encoding: chunked|Content-Length: \d+)\n`)

// unframed is a script without the framing of answers: an Inline handler has ended when they are sent, so their lengths are known.
func unframed(parts []part) string { return framing.ReplaceAllString(script(parts), "") }

// groups are all rows.
var groups = []struct {
	name string
	rows []row
}{
	{"answers", answers()}, {"requests", requests()}, {"handlers", handlers()}, {"hijacks", hijacks()},
}

// serves is an http.Handler as a row has it.
func serves(h http.Handler) handler {
	return func(_ *scene, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }
}

// handlers are scenes of handlers that net/http and its siblings have.
func handlers() []row {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello of "+r.URL.String()) })
	files := fstest.MapFS{"a.txt": {Data: []byte("0123456789"), ModTime: time.Unix(1e9, 0)}, "b/index.html": {Data: []byte("<html>")},
		"large": {Data: bytes.Repeat([]byte("0123456789"), 10000)}}
	served := serves(http.FileServerFS(files))
	ranged := func(fields string) row {
		return row{name: "FileServer: " + fields, request: "GET /a.txt HTTP/1.1\nHost: a\n" + fields + "\n\n", handler: served}
	}
	beyond := ranged("Range: bytes=20-")
	beyond.differs = []but{{"", "Requested Range Not", "Range Not", "The reason in a status line"}}
	mux := http.NewServeMux()
	mux.Handle("GET /a/{b}/{rest...}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Pattern, " ", r.PathValue("b"), " ", r.PathValue("rest"))
	}))
	mux.Handle("/c/", http.StripPrefix("/c", hello))
	mux.Handle("POST b/d", hello)
	back, _ := url.Parse("http://backend")
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(back); p.SetXForwarded() },
		Transport: http.NewFileTransportFS(files), FlushInterval: -1}
	rows := []row{
		{name: "Error", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			does("set Content-Length: 500; set Content-Encoding: gzip; set Etag: x")(s, w, r)
			http.Error(w, "it is wrong", http.StatusTeapot)
		}},
		{name: "Redirect", handler: serves(http.RedirectHandler("b?c=<d>", http.StatusFound))},
		{name: "NotFound", handler: serves(http.NotFoundHandler())},
		{name: "MaxBytesHandler", request: post("Content-Length: 10", "0123456789"),
			handler: serves(http.MaxBytesHandler(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					text, err := io.ReadAll(r.Body)
					fmt.Fprint(w, string(text), " ", named(err))
				}), 5)),
			differs: []but{{"", "\tConnection: close\n", "", "http.MaxBytesReader"},
				{"", "closed", "lasts", "http.MaxBytesReader"}}},
		{name: "TimeoutHandler", handler: serves(http.TimeoutHandler(hello, time.Hour, "late"))},
		{name: "a form in parts", request: post("Content-Type: multipart/form-data; boundary=x\nTransfer-Encoding: chunked",
			"49\n--x\nContent-Disposition: form-data; name=a; filename=b\n\nhello\n--x--\n\n0\n\n"),
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
				f, h, err := r.FormFile("a")
				if err != nil {
					s.say("%v", err)
					return
				}
				s.read(f, 6)
				s.say("%s %d %q", h.Filename, h.Size, h.Header)
			}},
		{name: "the context", request: get, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			_, bounded := ctx.Deadline()
			server, _ := ctx.Value(http.ServerContextKey).(*http.Server)
			s.say("%v %t %T %t", ctx.Err(), bounded, ctx.Value(http.LocalAddrContextKey), server != nil)
			s.say("%t", server.Handler != nil)
		}, differs: []but{{"", "handler: true\n", "handler: false\n", "http.ServerContextKey"}}},
		{name: "ReverseProxy", request: "GET /large HTTP/1.1\nHost: a\nConnection: b\nB: c\n\n", handler: serves(proxy)},
		{name: "ErrAbortHandler", raw: true, handler: does("abort"),
			differs: []but{{"", "reset: false", "reset: true", "the client sees a reset"}}},
		ranged("Range: bytes=2-4,6-"), beyond,
	}
	for _, request := range []string{"GET /b", "GET /b/", "GET /large", "HEAD /large"} {
		rows = append(rows, row{name: "FileServer: " + request, request: request + " HTTP/1.1\nHost: a\n\n", handler: served})
	}
	for _, request := range []string{"GET /a/1/2/3", "GET /a/../c", "GET //c", "GET /c/d?e", "POST http://b:80/d"} {
		rows = append(rows, row{name: "ServeMux: " + request, request: request + " HTTP/1.1\nHost: a\n\n", handler: serves(mux)})
	}
	return rows
}
