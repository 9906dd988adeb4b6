package libraries

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/http/pprof"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/servertest"
)

// The parts of the standard library that are handlers.

func TestFileServer(t *testing.T) {
	dir, large := t.TempDir(), noise(5<<20)
	put := func(name string, content []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	put("large.bin", large)
	put("small.txt", []byte("a small file\n"))
	put("page/index.html", []byte("<h1>Here</h1>"))
	each(t, kinds, func() http.Handler { return http.FileServer(http.Dir(dir)) }, func(v *web) {
		a := v.ask("GET", "/small.txt", nil)
		require.Equal(v, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
		require.EqualValues(v, 13, a.ContentLength)
		require.Equal(v, "a small file\n", v.whole(a))
		changed := a.Header.Get("Last-Modified")
		require.Equal(v, 304, v.ask("GET", "/small.txt", nil, "If-Modified-Since", changed).StatusCode)
		require.Equal(v, 412, v.ask("GET", "/small.txt", nil, "If-Unmodified-Since", "Mon, 02 Jan 2006 15:04:05 GMT").StatusCode)
		require.True(v, string(large) == v.get("/large.bin"))
		a = v.ask("HEAD", "/large.bin", nil)
		require.EqualValues(v, len(large), a.ContentLength)
		require.Empty(v, v.whole(a))

		for _, row := range []struct {
			asked    string
			from, to int
		}{
			{"bytes=0-0", 0, 0},
			{"bytes=1000-3000000", 1000, 3000000},
			{"bytes=5242000-", 5242000, len(large) - 1},
			{"bytes=-10", len(large) - 10, len(large) - 1},
		} {
			a := v.ask("GET", "/large.bin", nil, "Range", row.asked, "If-Range", changed) // both were made in one second, or not
			if a.StatusCode != 206 {
				a = v.ask("GET", "/large.bin", nil, "Range", row.asked)
			}
			require.Equal(v, 206, a.StatusCode)
			require.Equal(v, fmt.Sprintf("bytes %d-%d/%d", row.from, row.to, len(large)), a.Header.Get("Content-Range"))
			require.True(v, string(large[row.from:row.to+1]) == v.whole(a))
		}
		a = v.ask("GET", "/large.bin", nil, "Range", "bytes=6000000-")
		require.Equal(v, 416, a.StatusCode)
		require.Equal(v, "bytes */5242880", a.Header.Get("Content-Range"))
		a = v.ask("GET", "/large.bin", nil, "Range", "bytes=0-9,100000-299999,-5")
		_, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
		require.NoError(v, err)
		parts := multipart.NewReader(a.Body, parameters["boundary"])
		for _, want := range [][]byte{large[:10], large[100000:300000], large[len(large)-5:]} {
			p, err := parts.NextPart()
			require.NoError(v, err)
			got, err := io.ReadAll(p)
			require.NoError(v, err)
			require.True(v, bytes.Equal(want, got))
		}
		_, err = parts.NextPart()
		require.Equal(v, io.EOF, err)

		require.Equal(v, "<h1>Here</h1>", v.get("/page"), "redirected to /page/")
		require.Contains(v, v.get("/"), `<a href="large.bin">large.bin</a>`)
		require.Equal(v, 404, v.ask("GET", "/nowhere", nil).StatusCode)
		a = v.ask("GET", "/large.bin", nil) // a client that goes in the middle
		_, err = io.ReadFull(a.Body, make([]byte, 1000))
		require.NoError(v, err)
		require.NoError(v, a.Body.Close())
	})
}

func TestExpvar(t *testing.T) {
	each(t, kinds, expvar.Handler, func(v *web) {
		a := v.ask("GET", "/", nil)
		require.Equal(v, "application/json; charset=utf-8", a.Header.Get("Content-Type"))
		var all struct {
			Cmdline  []string
			Memstats struct{ Alloc int }
		}
		require.NoError(v, json.Unmarshal([]byte(v.whole(a)), &all))
		require.Equal(v, os.Args, all.Cmdline)
		require.Positive(v, all.Memstats.Alloc)
	})
}

func TestPprof(t *testing.T) {
	each(t, kinds, func() http.Handler {
		all := http.NewServeMux()
		all.HandleFunc("/debug/pprof/", pprof.Index)
		all.HandleFunc("/debug/pprof/profile", pprof.Profile)
		all.HandleFunc("/debug/pprof/trace", pprof.Trace)
		all.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		return all
	}, func(v *web) {
		require.Contains(v, v.get("/debug/pprof/"), "full goroutine stack dump")
		page := v.get("/debug/pprof/goroutine?debug=1")
		require.Contains(v, page, "goroutine profile: total ")
		require.Contains(v, page, "net/http/pprof.handler.ServeHTTP")
		require.Regexp(v, `^num_symbols: 1\n`, v.get("/debug/pprof/symbol"))

		gone := *v.client
		gone.Timeout = 100 * time.Millisecond
		_, err := gone.Get(v.url + "/debug/pprof/profile?seconds=60")
		require.Error(v, err)
		var profile string
		exectest.Eventually(v.T, exectest.Patience, "the profile of a client that has gone to end", func() bool {
			before := time.Now()
			a := v.ask("GET", "/debug/pprof/profile?seconds=1", nil)
			if a.StatusCode == 500 {
				return false // there is one at a time
			}
			profile = unzip(v.T, v.whole(a))
			require.GreaterOrEqual(v, time.Since(before), time.Second)
			return true
		})
		require.Contains(v, profile, "nanoseconds", "the names of the values are in it")
		require.Contains(v, unzip(v.T, v.get("/debug/pprof/heap")), "inuse_space")
		require.Regexp(v, "^go 1\\.\\d+ trace", v.get("/debug/pprof/trace?seconds=0.1"))

	})
}

func unzip(t *testing.T, packed string) string {
	t.Helper()
	in, err := gzip.NewReader(strings.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	return string(text)
}

// origin is what a reverse proxy stands before. It tells waits of each request that waits.
func origin(drops <-chan struct{}, waits chan<- struct{}) http.Handler {
	all := http.NewServeMux()
	all.HandleFunc("/sent", func(w http.ResponseWriter, r *http.Request) {
		in, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Length")
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %s ", r.Method, r.URL, r.Header.Get("X-Forwarded-For"))
		_, _ = w.Write(in)
		w.Header().Set("X-Length", fmt.Sprint(len(in)))
	})
	all.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		fmt.Fprint(w, "the page")
	})
	all.HandleFunc("/drops", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
			<-drops
		}
	})
	all.HandleFunc("/breaks", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	all.HandleFunc("/waits", func(_ http.ResponseWriter, r *http.Request) {
		waits <- struct{}{}
		<-r.Context().Done()
	})
	return all
}

func TestReverseProxy(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			drops, waits := make(chan struct{}), make(chan struct{}, 10)
			behind := k.serve(t, origin(drops, waits))
			to, err := url.Parse(behind.url)
			require.NoError(t, err)
			failed := make(chan error, 10)
			v := k.serve(t, &httputil.ReverseProxy{
				Transport:    behind.client.Transport,
				ErrorLog:     log.New(io.Discard, "", 0),
				Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
				ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { failed <- err; w.WriteHeader(502) },
			})
			for _, size := range []int{0, 1, 100_000, 8 << 20} {
				for _, body := range []io.Reader{bytes.NewReader(noise(size)), io.MultiReader(bytes.NewReader(noise(size)))} {
					a := v.ask("PUT", "/sent?a=b", body)
					require.Equal(t, 202, a.StatusCode)
					require.Equal(t, []string{"1", "2"}, a.Header["X-Two"])
					require.True(t, "PUT /sent?a=b 127.0.0.1 "+string(noise(size)) == v.whole(a))
					require.Equal(t, http.Header{"X-Length": {fmt.Sprint(size)}}, a.Trailer)
				}
			}
			hinted(v)
			dropped(v, drops)

			a := v.ask("GET", "/breaks", nil)
			_, err = io.ReadAll(a.Body)
			require.Error(t, err, "half an answer is passed on as half an answer")

			ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
			go func() {
				<-waits
				cancel()
			}()
			r, err := http.NewRequestWithContext(ctx, "GET", v.url+"/waits", nil)
			require.NoError(t, err)
			_, err = v.client.Do(r)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, servertest.Receive(t, failed), "canceled", "the origin knows that the client has gone")
			v.drain()
			behind.drain()
		})
	}
}

// hinted asks for a page with Early Hints.
func hinted(v *web) {
	r, err := http.NewRequest("GET", v.url+"/hints", nil)
	require.NoError(v, err)
	var hints []string
	ctx := httptrace.WithClientTrace(v.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
		return nil
	}})
	a, err := v.client.Do(r.WithContext(ctx))
	require.NoError(v, err)
	require.Equal(v, []string{"103 </style.css>; rel=preload"}, hints)
	require.Empty(v, a.Header.Get("Link"))
	require.Equal(v, "the page", v.whole(a))
}

// dropped requires that what is flushed gets through at once.
func dropped(v *web, drops chan<- struct{}) {
	a := v.ask("GET", "/drops", nil)
	in := bufio.NewReader(a.Body)
	for i := range 3 {
		line, err := in.ReadString('\n')
		require.NoError(v, err)
		require.Equal(v, fmt.Sprintln(i), line)
		drops <- struct{}{}
	}
	_, err := in.ReadByte()
	require.Equal(v, io.EOF, err)
}
