// Package site has the http.Handlers that bench/nethttp measures. Nothing in it knows on which server it runs.
package site

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Hello is the content of /small and the answer to each body.
const Hello = "Hello, World!"

// JSON is the content of /json, of 2 KiB. It is not encoded for each request, which would cost all servers the same.
var JSON = "[" + strings.Repeat(`{"id":1234,"name":"a thing that was sold","price":12.50,"paid":1},`, 31) + "0]"

// Of /stream and /flushes.
const (
	Pieces  = 64
	Piece   = 32 << 10
	Flushed = 1 << 10
)

// New returns the handler of a site. Its files are in root. Requests below /proxy/ go to an origin, if there is one.
func New(root, origin string) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /small", small)
	mux.HandleFunc("GET /json", list)
	mux.Handle("GET /files/", http.StripPrefix("/files", http.FileServer(http.Dir(root))))
	mux.HandleFunc("GET /stream", stream)
	mux.HandleFunc("GET /flushes", flushes)
	mux.HandleFunc("POST /read", read)
	mux.HandleFunc("POST /discard", discard)
	if origin != "" {
		to, err := url.Parse(origin)
		if err != nil {
			return nil, err
		}
		mux.Handle("/proxy/", http.StripPrefix("/proxy", proxy(to)))
	}
	return mux, nil
}

// Files writes the files of a site: name and size.
func Files(root string, files map[string]int) error {
	for name, size := range files {
		if err := os.WriteFile(filepath.Join(root, name), bytes.Repeat([]byte("0123456789abcde\n"), size/16), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func small(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, Hello)
}

func list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, JSON)
}

func stream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	piece := make([]byte, Piece)
	for range Pieces {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

func flushes(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	piece := make([]byte, Flushed)
	to := http.NewResponseController(w)
	for range Pieces {
		if _, err := w.Write(piece); err != nil || to.Flush() != nil {
			return
		}
	}
}

func read(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	received(w, r, int64(len(content)), err)
}

func discard(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	received(w, r, n, err)
}

// received answers a body of n bytes.
func received(w http.ResponseWriter, r *http.Request, n int64, err error) {
	if err != nil || r.ContentLength >= 0 && n != r.ContentLength {
		http.Error(w, "half of a body", http.StatusBadRequest)
		return
	}
	small(w, r)
}

// proxy keeps as many connections as there are clients. The default is 2, and a connection for each further request.
func proxy(to *url.URL) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}
