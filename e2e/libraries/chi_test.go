package libraries

import (
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// logged returns the logger of chi, writing to out. Panics are one line there, and not a stack on standard error.
func logged(out io.Writer) func(http.Handler) http.Handler {
	return middleware.RequestLogger(lines{&middleware.DefaultLogFormatter{Logger: log.New(out, "", 0), NoColor: true}})
}

type lines struct {
	*middleware.DefaultLogFormatter
}

func (l lines) NewLogEntry(r *http.Request) middleware.LogEntry {
	return entry{l.DefaultLogFormatter.NewLogEntry(r), l.Logger}
}

type entry struct {
	middleware.LogEntry
	to middleware.LoggerInterface
}

func (e entry) Panic(v any, _ []byte) { e.to.Print("panic: ", v) }

// routed is a router with most of the middleware of chi.
type routed struct {
	log     exectest.Log
	release chan struct{} // what /busy waits for
}

func (x *routed) handler() http.Handler {
	r := chi.NewRouter()
	//lint:ignore SA1019 many programs have RealIP, though clients can lie to it
	r.Use(middleware.RequestID, middleware.RealIP, logged(&x.log), middleware.Recoverer, middleware.StripSlashes, middleware.GetHead,
		middleware.Heartbeat("/alive"), middleware.Compress(5), middleware.SetHeader("X-Everywhere", "yes"))
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", chi.URLParam(r, "id"), r.RemoteAddr, middleware.GetReqID(r.Context()))
	})
	r.Get("/long", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for range 1000 {
			fmt.Fprintln(w, strings.Repeat("again and ", 100))
		}
	})
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("planned") })
	r.Get("/abort", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r.With(middleware.Timeout(20*time.Millisecond)).Get("/late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r.With(middleware.Throttle(1)).Get("/busy", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun")
		w.(http.Flusher).Flush()
		<-x.release
	})
	r.With(middleware.AllowContentType("text/plain"), middleware.RequestSize(10)).Post("/upload",
		func(w http.ResponseWriter, r *http.Request) {
			in, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d %v", len(in), err)
		})
	r.With(middleware.BasicAuth("here", map[string]string{"ada": "secret"})).Mount("/private", middleware.NoCache(http.StripPrefix("/private",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "private "+r.URL.Path) }))))
	return r
}

func TestChi(t *testing.T) {
	var x *routed
	each(t, func() http.Handler {
		x = &routed{release: make(chan struct{})}
		return x.handler()
	}, func(v *web) {
		require.Equal(v, "7 192.0.2.1 mine", v.get("/users/7/", "X-Real-Ip", "192.0.2.1", "X-Request-Id", "mine"))
		require.Regexp(v, `^7 127\.0\.0\.1:\d+ \S+-\d{6}$`, v.get("/users/7"))
		require.Equal(v, ".", v.get("/alive"))
		a := v.ask("HEAD", "/users/7", nil)
		require.Equal(v, 200, a.StatusCode)
		require.Equal(v, "yes", a.Header.Get("X-Everywhere"))
		require.Empty(v, v.whole(a))

		long := strings.Repeat(strings.Repeat("again and ", 100)+"\n", 1000)
		require.True(v, long == v.get("/long"))
		a = v.ask("GET", "/long", nil, "Accept-Encoding", "gzip")
		require.Equal(v, "gzip", a.Header.Get("Content-Encoding"))
		unpacked, err := gzip.NewReader(a.Body)
		require.NoError(v, err)
		text, err := io.ReadAll(unpacked)
		require.NoError(v, err)
		require.True(v, long == string(text))

		for range 3 { // on one connection
			require.Equal(v, 500, v.ask("GET", "/panic", nil).StatusCode)
		}
		a = v.ask("GET", "/abort", nil)
		_, err = io.ReadAll(a.Body)
		require.Error(v, err, "half an answer")
		require.Equal(v, 504, v.ask("GET", "/late", nil).StatusCode)
		require.Equal(v, 404, v.ask("GET", "/nowhere", nil).StatusCode)
		a = v.ask("DELETE", "/users/7", nil)
		require.Equal(v, 405, a.StatusCode)
		require.Equal(v, "GET", a.Header.Get("Allow"))

		busy := v.ask("GET", "/busy", nil)
		require.Equal(v, 429, v.ask("GET", "/busy", nil).StatusCode)
		close(x.release)
		require.Equal(v, "begun", v.whole(busy))

		require.Equal(v, "5 <nil>", v.whole(v.ask("POST", "/upload", strings.NewReader("12345"), "Content-Type", "text/plain")))
		require.Equal(v, "10 http: request body too large",
			v.whole(v.ask("POST", "/upload", strings.NewReader(strings.Repeat("x", 100_000)), "Content-Type", "text/plain")))
		require.Equal(v, 415, v.ask("POST", "/upload", strings.NewReader("{}"), "Content-Type", "text/json").StatusCode)

		a = v.ask("GET", "/private/x", nil)
		require.Equal(v, 401, a.StatusCode)
		require.Equal(v, `Basic realm="here"`, a.Header.Get("WWW-Authenticate"))
		a = v.ask("GET", "/private/x", nil, "Authorization", "Basic YWRhOnNlY3JldA==")
		require.Equal(v, "private /x", v.whole(a))
		require.Contains(v, a.Header.Get("Cache-Control"), "no-store")

		for _, line := range []string{
			`[mine] "GET http://X/users/7/ HTTP/1.1" from 192.0.2.1 - 200 16B in `,
			`"GET http://X/panic HTTP/1.1" from `, ` - 500 0B in `, "panic: planned\n",
			`"GET http://X/late HTTP/1.1" from `, ` - 504 0B in `,
		} {
			at := strings.NewReplacer("http://X", v.url)
			require.Contains(v, x.log.String(), at.Replace(line))
		}
	})
}
