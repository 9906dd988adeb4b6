package nethttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// Handlers of net/http itself.

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, text := range map[string]string{"a.txt": "hello", "b.html": "<html>", "large.bin": strings.Repeat("0123456789", 3000), "none": "", "d/index.html": "<p>",
		"e/x y.css": "p{}"} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, modified, modified))
	}
	servers := map[string]http.Handler{
		"FileServer": http.FileServer(http.Dir(dir)),
		"FileServerFS": http.FileServerFS(fstest.MapFS{"a.txt": {Data: []byte("hello"), ModTime: modified}, "large.bin": {Data: bytes.Repeat([]byte("0123456789"), 3000)},
			"d/index.html": {Data: []byte("<p>")}}),
		"ServeContent": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"e"`)
			http.ServeContent(w, r, r.URL.Path, modified, strings.NewReader(strings.Repeat("0123456789", 1000)))
		}),
		"ServeFile": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(dir, "large.bin")) }),
	}
	for name, h := range servers {
		t.Run(name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handle(h)
				ask := func(method, path, fields string) {
					s.part(method + " " + path + " " + fields)
					s.talk(method+" "+path+" HTTP/1.1\nHost: a\n"+fields+"\n", false)
				}
				for _, path := range []string{"/a.txt", "/b.html", "/large.bin", "/none", "/missing", "/", "/d", "/d/", "/d/index.html", "/e/", "/e/x%20y.css", "/../a.txt"} {
					ask("GET", path, "")
				}
				for _, path := range []string{"/a.txt", "/large.bin", "/missing", "/d"} {
					ask("HEAD", path, "")
				}
				for _, fields := range []string{"Range: bytes=0-2\n", "Range: bytes=-3\n", "Range: bytes=2-\n", "Range: bytes=100000000-\n", "Range: a\n",
					"If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT\n", "If-Modified-Since: Thu, 01 Jan 2026 03:04:05 GMT\n", "If-None-Match: \"e\"\n", "If-Match: \"f\"\n",
					"If-Unmodified-Since: Thu, 01 Jan 2026 03:04:05 GMT\n", "If-Range: \"e\"\nRange: bytes=1-1\n"} {
					ask("GET", "/large.bin", fields)
				}
				ask("HEAD", "/large.bin", "Range: bytes=0-2\n")
				ask("POST", "/a.txt", "")
			})
		})
	}
}

// The boundary between several ranges is another one each time.
func TestSeveralRanges(t *testing.T) {
	compare(t, func(s *scene) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(strings.Repeat("0123456789", 1000)))
		})
		c := s.dial()
		c.send(with("Range: bytes=0-2, 5-7, -10"))
		a, err := c.answer("GET")
		require.NoError(s, err)
		kind, params, err := mime.ParseMediaType(a.get("Content-Type"))
		require.NoError(s, err)
		s.note("%d %s %s %q", a.status, kind, a.get("Content-Length"), a.get("Transfer-Encoding"))
		for parts := multipart.NewReader(bytes.NewReader(a.body), params["boundary"]); ; {
			part, err := parts.NextPart()
			if err == io.EOF {
				break
			}
			require.NoError(s, err)
			text, err := io.ReadAll(part)
			s.note("%q %q %v", part.Header, text, err)
		}
	})
}

// What the client of net/http sees.
func TestTheClientOfNetHTTP(t *testing.T) {
	for _, row := range []struct {
		name    string
		handler func(s *scene, w http.ResponseWriter, r *http.Request)
		do      func(s *scene, c *http.Client, url string)
	}{
		{"a GET", fields("A", "b"), func(s *scene, c *http.Client, url string) { s.got(c.Get(url)) }},
		{"a HEAD", fields("A", "b"), func(s *scene, c *http.Client, url string) { s.got(c.Head(url)) }},
		{"a POST that is echoed", func(s *scene, w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, r.Body)
		}, func(s *scene, c *http.Client, url string) {
			s.got(c.Post(url, "text/x", strings.NewReader(strings.Repeat("x", 200000))))
		}},
		{"a POST of unknown length", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.say("%d %q", r.ContentLength, r.TransferEncoding)
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, r.Body)
		}, func(s *scene, c *http.Client, url string) {
			s.got(c.Post(url, "text/x", io.MultiReader(strings.NewReader("hello, "), strings.NewReader("world"))))
		}},
		{"gzip", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.say("%q", r.Header.Get("Accept-Encoding"))
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("hello", 10000))
			_ = z.Close()
		}, func(s *scene, c *http.Client, url string) { s.got(c.Get(url)) }},
		{"redirects", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.say("%s %s %q", r.Method, r.URL.Path, strings.ReplaceAll(r.Referer(), r.Host, "HOST"))
			switch r.URL.Path {
			case "/":
				http.Redirect(w, r, "/b/", http.StatusTemporaryRedirect)
			case "/b/":
				http.Redirect(w, r, "../c", http.StatusSeeOther)
			default:
				s.write(w, "there")
			}
		}, func(s *scene, c *http.Client, url string) {
			s.got(c.Post(url+"/", "text/x", strings.NewReader("hello")))
		}},
		{"trailers both ways", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.header("trailer", r.Trailer)
			_, _ = io.Copy(io.Discard, r.Body)
			s.header("trailer", r.Trailer)
			w.Header().Set("Trailer", "Sum")
			s.write(w, "hello")
			w.Header().Set("Sum", "1")
			w.Header().Set(http.TrailerPrefix+"Other", "2")
		}, func(s *scene, c *http.Client, url string) {
			r, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader("hello")))
			require.NoError(s, err)
			r.Trailer = http.Header{"Up": {"1"}}
			s.got(c.Do(r))
		}},
		{"early hints and 100", func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(201)
		}, func(s *scene, c *http.Client, url string) {
			var mu sync.Mutex
			var seen []string
			note := func(format string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf(format, args...))
			}
			r, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				Got100Continue: func() { note("100") },
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					note("%d %q", code, h)
					return nil
				},
			}), "POST", url, strings.NewReader("hello"))
			require.NoError(s, err)
			r.Header.Set("Expect", "100-continue")
			s.got(c.Do(r))
			mu.Lock()
			defer mu.Unlock()
			s.note("%q", seen)
		}},
		{"a request that is cancelled", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			w.(http.Flusher).Flush()
			_, _ = await(r.Context().Done())
			s.say("%v", r.Context().Err())
			panic(http.ErrAbortHandler) // with TLS the client could still get the end of an answer while it closes
		}, func(s *scene, c *http.Client, url string) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			require.NoError(s, err)
			a, err := c.Do(r)
			require.NoError(s, err)
			defer a.Body.Close()
			_, err = io.ReadFull(a.Body, make([]byte, 5))
			require.NoError(s, err)
			cancel()
			_, _ = io.ReadAll(a.Body) // an error, or the end that the server may still have sent
		}},
		{"an answer that is aborted", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, func(s *scene, c *http.Client, url string) {
			a, err := c.Get(url)
			require.NoError(s, err)
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			s.note("%q, an error: %t", text, err != nil)
		}},
		{"ten on a connection", func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, r.RemoteAddr)
		}, func(s *scene, c *http.Client, url string) {
			seen := map[string]bool{}
			for range 10 {
				a, err := c.Post(url, "", strings.NewReader("hello"))
				require.NoError(s, err)
				text, err := io.ReadAll(a.Body)
				require.NoError(s, err)
				_ = a.Body.Close()
				seen[string(text)] = true
			}
			s.note("connections: %d", len(seen))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
				transport := &http.Transport{TLSClientConfig: s.trust, ExpectContinueTimeout: time.Hour,
					TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
				defer transport.CloseIdleConnections()
				url := "http://" + s.address
				if s.secure {
					url = "https://" + s.address
				}
				row.do(s, &http.Client{Transport: transport}, url)
			})
		})
	}
}

// got notes a response.
func (s *scene) got(a *http.Response, err error) {
	s.Helper()
	require.NoError(s, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	s.note("%s, length %d, %q, uncompressed %t, %s %v", a.Status, a.ContentLength, a.TransferEncoding, a.Uncompressed, digest(text), err)
	a.Header.Del("Date")
	for _, h := range []http.Header{a.Header, a.Trailer} {
		for _, key := range slices.Sorted(maps.Keys(h)) {
			s.note("%s: %q", key, h[key])
		}
	}
}

func TestServeMux(t *testing.T) {
	for _, call := range []call{
		{name: "a value", request: to("/items/7")},
		{name: "an escaped value", request: to("/items/a%2Fb")},
		{name: "a value of the rest", request: to("/rest/a/b%20c/")},
		{name: "another method", request: "POST /items/7 HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"},
		{name: "HEAD", request: "HEAD /items/7 HTTP/1.1\nHost: a\n\n"},
		{name: "a method with a pattern", request: "DELETE /items/7 HTTP/1.1\nHost: a\n\n"},
		{name: "a directory without its slash", request: to("/dir?a=b")},
		{name: "a directory", request: to("/dir/x")},
		{name: "a path that is not clean", request: to("/dir/../items//7")},
		{name: "a host", request: "GET /items/7 HTTP/1.1\nHost: b.example:80\n\n"},
		{name: "an absolute target", request: to("http://b.example/items/7")},
		{name: "nothing", request: to("/none")},
		{name: "OPTIONS *", request: "OPTIONS * HTTP/1.1\nHost: a\n\n"},
		{name: "the end", request: to("/end/")},
		{name: "behind the end", request: to("/end/x")},
		{name: "a prefix that is stripped", request: to("/strip/a%2Fb?c")},
		{name: "a prefix that is not there", request: to("/wrong/a")},
	} {
		t.Run(call.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				mux := http.NewServeMux()
				for _, pattern := range []string{"GET /items/{id}", "DELETE /items/{id}", "/rest/{rest...}", "/dir/", "b.example/items/{name}", "/end/{$}"} {
					mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
						s.say("%q: %q %q %q", r.Pattern, r.PathValue("id"), r.PathValue("rest"), r.PathValue("name"))
						s.write(w, r.URL.Path)
					})
				}
				mux.Handle("/strip/", http.StripPrefix("/strip", http.HandlerFunc(s.describe)))
				mux.Handle("/wrong/", http.StripPrefix("/other", http.HandlerFunc(s.describe)))
				s.handle(mux)
				s.ask("", call.request)
			}, call.but...)
		})
	}
}

func TestTimeoutHandler(t *testing.T) {
	for _, row := range []struct {
		name    string
		after   time.Duration
		handler func(s *scene, over <-chan struct{}, w http.ResponseWriter, r *http.Request)
	}{
		{"in time", time.Hour, func(s *scene, _ <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("A", "b")
			w.WriteHeader(201)
			s.write(w, "hello")
		}},
		{"in time with much", time.Hour, func(s *scene, _ <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			s.write(w, strings.Repeat("x", 50000))
		}},
		{"in time with the body", time.Hour, func(s *scene, _ <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		}},
		{"nothing", time.Hour, func(*scene, <-chan struct{}, http.ResponseWriter, *http.Request) {}},
		{"too late", time.Millisecond, func(s *scene, over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("A", "b")
			_, _ = await(r.Context().Done())
			s.say("%v", r.Context().Err())
			_, _ = await(over)
			s.write(w, "hello")
		}},
		{"a panic", time.Hour, func(s *scene, over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				for _, name := range []string{"length", "chunks"} {
					over, returned := make(chan struct{}), make(chan struct{})
					s.handle(http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer close(returned)
						row.handler(s, over, w, r)
					}), row.after, "it takes too long"))
					s.part(name)
					s.talk(framed(5000)[name], false)
					close(over)
					<-returned
					s.curtain()
				}
			})
		})
	}
}
