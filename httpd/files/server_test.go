package files_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

var modified = time.Date(2026, 8, 1, 12, 0, 0, 500_000_000, time.UTC)

const lastModified = "Sat, 01 Aug 2026 12:00:00 GMT"

func file(content string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(content), ModTime: modified, Mode: 0o644}
}

// noise is n bytes, each time the same.
func noise(n int) string {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b)
	return string(b)
}

var tree = fstest.MapFS{
	"index.html":          file("<h1>home</h1>"),
	"a.txt":               file("0123456789"),
	"empty.txt":           file(""),
	"noext":               file("?"),
	"docs/index.html":     file("<h1>docs</h1>"),
	"docs/a b.txt":        file("a b"),
	"docs/100%.txt":       file("all"),
	"bare/b.txt":          file("b"),
	"odd:name/index.html": file("odd"),
	".env":                file("secret"),
	".git/config":         file("secret"),
	"docs/.htpasswd":      file("secret"),
	"secret/index.html":   {Mode: fs.ModeNamedPipe | 0o644, ModTime: modified},
	"pipe":                {Mode: fs.ModeNamedPipe | 0o644, ModTime: modified},
	"edge.bin":            file(noise(64 << 10)),
	"large.bin":           file(noise(300_000)),
}

// TestNames has more names.
func TestPaths(t *testing.T) {
	s := serve(t, tree)
	c := s.dial()
	for _, x := range []struct{ path, want string }{
		{"/f/", "200 <h1>home</h1>"},
		{"/f/a.txt?v=1", "200 0123456789"},
		{"/f/docs/", "200 <h1>docs</h1>"},
		{"/f/docs/a%20b.txt", "200 a b"},
		{"/f/docs?a=b&c=/d", "301 ./docs/?a=b&c=/d"},
		{"/f/odd:name", "301 ./odd:name/"},
		{"/f/bare/", "404"},
		{"/f/pipe", "404"},
		{"/f/secret/", "404"},
		{"/f/.env", "404"},
		{"/f/docs/%2e%2e/a.txt", "404"},
		{"/f/a.txt%00", "404"},
		{"/f//a.txt", "404"},
		{"/f/" + strings.Repeat("a/", 5000) + "b", "404"},
	} {
		r := c.ask("GET " + x.path)
		said := fmt.Sprint(r.StatusCode)
		switch r.StatusCode {
		case 200:
			said += " " + r.body
		case 301:
			said += " " + r.Header.Get("Location")
		default:
			require.NotContains(t, r.body, "secret")
		}
		require.Equal(t, x.want, said, x.path)
	}
	s.quiet()
}

// Without a wildcard the whole path names the file.
func TestPathsWithoutAMux(t *testing.T) {
	s := begin(t, (&files.Server{FS: tree, Index: "b.txt", Hidden: true}).Serve)
	for path, want := range map[string]int{
		"/a.txt": 200, "/bare/": 200, "/.env": 200, "/": 404, "//a.txt": 404, "/../a.txt": 404, "/%2e%2e/a.txt": 404,
		"/.": 404, "/./": 404, "/docs/%2e%2e/a.txt": 404, "/..%2fa.txt": 404, "//bare": 404, "/bare": 301,
	} {
		require.Equal(t, want, s.get(path).StatusCode, path)
	}
	require.Equal(t, 405, s.ask("OPTIONS *").StatusCode)
	require.Equal(t, "GET, HEAD", s.ask("POST /a.txt", "Content-Length: 0").Header.Get("Allow"))
	require.Equal(t, 200, s.get("http://b/a.txt").StatusCode)
}

// fields are the fields of a response, except the ones that differ each time.
func fields(r reply) string {
	r.Header.Del("Date")
	var b bytes.Buffer
	_ = r.Header.Write(&b)
	return fmt.Sprintf("%d\n%s", r.StatusCode, strings.ReplaceAll(b.String(), "\r", ""))
}

func TestFields(t *testing.T) {
	s := serve(t, tree)
	const validators = `Etag: "18c7aca4a9dae500-a"` + "\nLast-Modified: " + lastModified + "\n"
	for _, x := range []struct {
		ask  string
		with []string
		want string
	}{
		{"GET /f/a.txt", nil, "200\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/plain; charset=utf-8\n" +
			validators + "X-Content-Type-Options: nosniff\n"},
		{"GET /f/a.txt", []string{"Range: bytes=2-3"}, "206\nAccept-Ranges: bytes\nContent-Length: 2\n" +
			"Content-Range: bytes 2-3/10\nContent-Type: text/plain; charset=utf-8\n" + validators + "X-Content-Type-Options: nosniff\n"},
		{"GET /f/a.txt", []string{"If-None-Match: *"}, "304\n" + `Etag: "18c7aca4a9dae500-a"` + "\n"},
		{"GET /f/a.txt", []string{"If-Match: a"}, "412\nContent-Length: 24\nContent-Type: text/plain; charset=utf-8\n"},
		{"GET /f/a.txt", []string{"Range: bytes=10-"},
			"416\nContent-Length: 26\nContent-Range: bytes */10\nContent-Type: text/plain; charset=utf-8\n"},
		{"GET /f/noext", nil, "200\nAccept-Ranges: bytes\nContent-Length: 1\nContent-Type: application/octet-stream\n" +
			`Etag: "18c7aca4a9dae500-1"` + "\nLast-Modified: " + lastModified + "\nX-Content-Type-Options: nosniff\n"},
		{"GET /f/docs", nil, "301\nContent-Length: 22\nContent-Type: text/plain; charset=utf-8\nLocation: ./docs/\n"},
	} {
		r := s.ask(x.ask, x.with...)
		require.Equal(t, x.want, fields(r), "%s %q", x.ask, x.with)
	}
}

// RFC 9110 9.3.2, 14.2: the fields of GET without a range, and no content.
func TestHeadSaysWhatGetSays(t *testing.T) {
	for _, fsys := range []fs.FS{tree, forward{tree}} {
		s := serve(t, fsys)
		c := s.dial()
		for _, path := range []string{"a.txt", "empty.txt", "docs/", "docs", "none", "edge.bin", "large.bin"} {
			get, head := c.ask("GET /f/"+path), c.ask("HEAD /f/"+path)
			require.Equal(t, fields(get), fields(head), path)
			require.Empty(t, head.body)
			require.Equal(t, fields(get), fields(c.ask("HEAD /f/"+path, "Range: bytes=0-0")), "a range is for GET alone")
		}
	}
}

// A file is the same in whatever way it is read.
func TestKindsOfFiles(t *testing.T) {
	for name, fsys := range map[string]fs.FS{
		"io.ReaderAt": tree, "io.Seeker": seeking{tree}, "neither": forward{tree}, "directory": onDisk(t, tree),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, fsys)
			c := s.dial()
			for _, path := range []string{"a.txt", "empty.txt", "edge.bin", "large.bin"} {
				content := string(tree[path].Data)
				r := c.ask("GET /f/" + path)
				require.Equal(t, 200, r.StatusCode)
				require.True(t, r.body == content, path)
				require.Equal(t, int64(len(content)), r.ContentLength)
				if path == "empty.txt" {
					continue
				}
				one := c.ask("GET /f/"+path, "Range: bytes=3-")
				if name == "neither" && len(content) > 64<<10 {
					require.Equal(t, 200, one.StatusCode, "there are no ranges")
					require.Empty(t, one.Header.Get("Accept-Ranges"))
					continue
				}
				require.Equal(t, 206, one.StatusCode)
				require.True(t, one.body == content[3:], path)
			}
			s.quiet()
		})
	}
}

func TestTypesOfTheServer(t *testing.T) {
	s := begin(t, (&files.Server{FS: tree, Types: map[string]string{"": "text/x-guess", ".txt": "text/x-own"}}).Serve)
	require.Equal(t, "text/x-own", s.get("/a.txt").Header.Get("Content-Type"))
	require.Equal(t, "text/x-guess", s.get("/noext").Header.Get("Content-Type"))
	require.Equal(t, "text/html; charset=utf-8", s.get("/").Header.Get("Content-Type"))
}

func TestAServerWithoutAnFSPanics(t *testing.T) {
	require.PanicsWithValue(t, "files: Server without an FS", func() { (&files.Server{}).Serve(nil, nil) })
}

// pick is one of the choices; none is none.
func pick(r *rand.Rand, name string, choices ...string) []string {
	if c := choices[r.IntN(len(choices))]; c != "" {
		return []string{name + ": " + c}
	}
	return nil
}

// The responses are the same as from http.ServeContent. Left out is where they differ on purpose: HEAD with a
// range, which RFC 9110 14.2 ignores; several ranges; malformed ranges, which net/http answers with 416; "-0", of which it sends
// the part "10-9"; "*" in a list; dates with a wrong day.
func TestAgreesWithServeContent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	content := tree["a.txt"].Data
	s := serve(t, tree)
	c := s.dial()
	const ours = `"18c7aca4a9dae500-a"`
	ask := func(path string, content []byte, tag string) {
		n := func() string { return fmt.Sprint(1 + r.IntN(len(content)+3)) }
		from, to := r.IntN(len(content)+2), r.IntN(5)
		dates := []string{"", "", lastModified, "Sat, 01 Aug 2026 11:59:59 GMT", "Sat, 01 Aug 2026 12:00:01 GMT",
			"Saturday, 01-Aug-26 12:00:00 GMT", "Sat Aug  1 12:00:00 2026", "never", "0"}
		lists := []string{"", "", "*", tag, "W/" + tag, `"x"`, `"x", ` + tag, `,"x,y" ,W/` + tag, `x`, `"x`, "x, " + tag}
		var with []string
		with = append(with, pick(r, "If-Match", append(lists, "", "", "", "", "", "", "", "", "", "")...)...)
		with = append(with, pick(r, "If-Unmodified-Since", append(dates, "", "", "", "", "", "")...)...)
		with = append(with, pick(r, "If-None-Match", append(lists, "", "", "", "", "", "")...)...)
		with = append(with, pick(r, "If-Modified-Since", append(dates, "", "", "", "", "")...)...)
		with = append(with, pick(r, "If-Range", append(dates, "", "", "", "", tag, `"x"`, "W/"+tag)...)...)
		method := "HEAD"
		if r.IntN(5) > 0 {
			method = "GET"
			with = append(with, pick(r, "Range", "", fmt.Sprintf("bytes=%d-%d", from, from+to), "bytes="+n()+"-", "bytes=-"+n(),
				"bytes= "+n()+"- ,", "bytes=99999999-")...)
		}

		req := httptest.NewRequest(method, "/a.txt", nil)
		for _, f := range with {
			name, value, _ := strings.Cut(f, ": ")
			req.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		w.Header().Set("ETag", tag)
		http.ServeContent(w, req, "a.txt", modified, bytes.NewReader(content))
		want := w.Result()

		got := c.ask(method+" /f/"+path, with...)
		require.Equal(t, want.StatusCode, got.StatusCode, "%s %q", method, with)
		require.Equal(t, want.Header.Get("Content-Range"), got.Header.Get("Content-Range"), "%s %q", method, with)
		switch {
		case want.StatusCode < 300:
			require.Equal(t, w.Body.String(), got.body, "%s %q", method, with)
			require.Equal(t, want.Header.Get("Content-Length"), got.Header.Get("Content-Length"))
			require.Equal(t, want.Header.Get("Accept-Ranges"), got.Header.Get("Accept-Ranges"))
			require.Equal(t, want.Header.Get("Last-Modified"), got.Header.Get("Last-Modified"))
		}
	}
	for i := range tier.Choose(300, 300, 1500) {
		ask("a.txt", content, ours)
		if i%10 == 0 {
			ask("large.bin", tree["large.bin"].Data, `"18c7aca4a9dae500-493e0"`)
		}
	}
	s.quiet()
}

var _ httpd.Handler = (&files.Server{}).Serve
