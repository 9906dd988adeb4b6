// Package site has the http.Handlers that bench/nethttp measures. Nothing in it knows on which server it runs.
package site

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
)

// Hello is the content of /small, and the answer to a body.
const Hello = "Hello, World!"

// JSON is the content of /json, nearly 2 KiB. It is not encoded for each request: that would cost the same on all servers.
var JSON = "[" + strings.Repeat(`{"id":1234,"name":"a thing that was sold","price":12.5,"paid":1},`, 31) + "0]"

// Pieces is the number of pieces of /stream, of the size Streamed, and of /flushes, of the size Flushed.
const (
	Pieces   = 64
	Streamed = 32 << 10
	Flushed  = 1 << 10
)

// New returns the handler of the site. Its files are in the directory root. Requests below /proxy/ go to the origin.
func New(root string, origin *url.URL) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /small", text("text/plain", Hello))
	mux.HandleFunc("GET /json", text("application/json", JSON))
	mux.Handle("GET /files/", http.StripPrefix("/files", http.FileServer(http.Dir(root))))
	mux.HandleFunc("GET /large", large)
	mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.Handle(Say, rpc)
	mux.HandleFunc("GET /stream", stream(Streamed, false))
	mux.HandleFunc("GET /flushes", stream(Flushed, true))
	mux.HandleFunc("POST /read", take(func(body io.Reader) (int64, error) {
		content, err := io.ReadAll(body)
		return int64(len(content)), err
	}))
	mux.HandleFunc("POST /discard", take(func(body io.Reader) (int64, error) { return io.Copy(io.Discard, body) }))
	mux.Handle("GET /proxy/", http.StripPrefix("/proxy", proxy(origin)))
	return mux
}

func text(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind) // else the content is looked at to find one
		_, _ = io.WriteString(w, content)
	}
}

// Large is the length of the content of /large, which is written in pieces like Piece.
const Large = 1 << 20

// Piece is zeros.
var Piece = make([]byte, 32<<10)

func large(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(Large))
	for range Large / len(Piece) {
		if _, err := w.Write(Piece); err != nil {
			return
		}
	}
}

func stream(size int, flush bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		piece, to := make([]byte, size), http.NewResponseController(w)
		for range Pieces {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if flush && to.Flush() != nil {
				return
			}
		}
	}
}

// take answers a body that was read whole.
func take(read func(body io.Reader) (int64, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := read(r.Body)
		if err != nil || r.ContentLength >= 0 && n != r.ContentLength {
			http.Error(w, "half of a body", http.StatusBadRequest)
			return
		}
		text("text/plain", Hello)(w, r)
	}
}

// proxy keeps as many connections as there are clients. The default is 2, and a connection for each further request.
func proxy(to *url.URL) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}
