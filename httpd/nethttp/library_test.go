package nethttp_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What net/http has of handlers works as it does there.
func TestHandlersOfNetHTTP(t *testing.T) {
	dir := t.TempDir()
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	large := strings.Repeat("0123456789", 3000)
	for name, text := range map[string]string{"a.txt": "hello", "large.bin": large, "none": "", "index.html": "<p>"} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, modified, modified))
	}
	compare(t, func(s *scene) {
		mux := http.NewServeMux()
		mux.Handle("/files/", http.StripPrefix("/files", http.FileServer(http.Dir(dir))))
		for _, pattern := range []string{"GET /items/{id}", "/rest/{id...}", "/dir/", "b.example/items/{id}"} {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				s.say("%q: %q", r.Pattern, r.PathValue("id"))
				s.write(w, r.URL.Path)
			})
		}
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = await(r.Context().Done()) })
		mux.Handle("/late", http.TimeoutHandler(slow, time.Millisecond, "it takes too long"))
		mux.Handle("/in-time", http.TimeoutHandler(http.HandlerFunc(s.describe), time.Hour, "it takes too long"))
		s.handle(mux)
		for _, request := range []string{
			to("/files/a.txt"), to("/files/large.bin"), to("/files/none"), to("/files/"), to("/files/missing"),
			"HEAD /files/large.bin HTTP/1.1\nHost: a\n\n", "GET /files/large.bin HTTP/1.1\nHost: a\nRange: bytes=-3\n\n",
			"GET /files/a.txt HTTP/1.1\nHost: a\nIf-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT\n\n",
			to("/items/a%2Fb"), to("/rest/a/b%20c/"), to("/dir?a=b"), to("/dir/../items//7"),
			to("http://b.example/items/7"), to("/none"),
			"POST /items/7 HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "OPTIONS * HTTP/1.1\nHost: a\n\n",
			to("/late"), to("/in-time"), "POST /in-time HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"} {
			s.ask(request, request)
		}
	})
}
