package libraries

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// origin is what a reverse proxy stands before.
func origin() http.Handler {
	all := http.NewServeMux()
	all.HandleFunc("/sent", func(w http.ResponseWriter, r *http.Request) {
		in, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Length")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %s ", r.Method, r.URL, r.Header.Get("X-Forwarded-For"))
		_, _ = w.Write(in)
		w.Header().Set("X-Length", fmt.Sprint(len(in)))
	})
	all.HandleFunc("/breaks", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	return all
}

// The reverse proxy of the standard library is both a handler, and a client of one.
func TestReverseProxy(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			behind := k.serve(t, origin())
			to, err := url.Parse(behind.url)
			require.NoError(t, err)
			v := k.serve(t, &httputil.ReverseProxy{
				Transport: behind.client.Transport,
				ErrorLog:  log.New(io.Discard, "", 0),
				Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
			})
			for _, size := range []int{0, 1, 8 << 20} {
				for _, body := range []io.Reader{bytes.NewReader(noise(size)), io.MultiReader(bytes.NewReader(noise(size)))} {
					a := v.ask("PUT", "/sent?a=b", body)
					require.Equal(t, 202, a.StatusCode)
					require.True(t, "PUT /sent?a=b 127.0.0.1 "+string(noise(size)) == v.whole(a))
					require.Equal(t, http.Header{"X-Length": {fmt.Sprint(size)}}, a.Trailer)
				}
			}
			a := v.ask("GET", "/breaks", nil)
			_, err = io.ReadAll(a.Body)
			require.Error(t, err, "half an answer is passed on as half an answer")
			v.drain()
			behind.drain()
		})
	}
}
