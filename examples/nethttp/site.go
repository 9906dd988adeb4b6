// This site is made of ordinary parts of net/http and chi. Nothing in it knows of Daimon.

package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// options are the options of a site.
type options struct {
	// upstream gets the requests below /api/, without that prefix. If it is nil there are none.
	upstream *url.URL
	// timeout is how long a page may take. It must be above 0.
	timeout time.Duration
}

// setUpstream parses text as upstream.
func (o *options) setUpstream(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("it needs a scheme and a host, as in http://127.0.0.1:9090")
	}
	o.upstream = u
	return nil
}

//go:embed public
var embedded embed.FS

// site returns the handler of the site. Its streams of events end with ending.
func site(ending context.Context, o options) http.Handler {
	public, err := fs.Sub(embedded, "public")
	if err != nil {
		panic(err) // the name is good
	}
	r := chi.NewRouter()
	r.Use(middleware.RequestID,
		middleware.ClientIPFromRemoteAddr,
		middleware.ClientIPFromXFF("127.0.0.0/8", "::1/128"), // a proxy on this machine is trusted, and no other
		middleware.Logger,
		middleware.Recoverer)

	r.Group(func(pages chi.Router) {
		pages.Use(middleware.Timeout(o.timeout), middleware.Compress(5))
		pages.Get("/me", me)
		pages.Get("/wait/{duration}", wait)
		pages.Method("GET", "/*", http.FileServerFS(public))
		pages.Method("HEAD", "/*", http.FileServerFS(public))
	})
	r.Get("/bytes/{n}", download)
	r.Post("/sha256", digest)
	r.Method("GET", "/events", clock{ending.Done()})
	if o.upstream != nil {
		r.Handle("/api/*", http.StripPrefix("/api", proxy(o.upstream)))
	}
	r.Mount("/debug", middleware.Profiler()) // net/http/pprof and expvar: not for everybody on the Internet
	return r
}

// me shows what the server knows about a request.
func me(w http.ResponseWriter, r *http.Request) {
	known := map[string]string{
		"client":   middleware.GetClientIP(r.Context()),
		"request":  middleware.GetReqID(r.Context()),
		"protocol": r.Proto,
		"tls":      "none",
	}
	if r.TLS != nil {
		known["tls"] = r.TLS.NegotiatedProtocol
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(known) // a client that has gone is not a failure
}

// wait answers after a while, or not at all if that takes too long.
func wait(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(chi.URLParam(r, "duration"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(d):
		fmt.Fprintf(w, "That took %v.\n", d)
	case <-r.Context().Done(): // middleware.Timeout answers
	}
}

// most is the most that a client may download at a time.
const most = 1 << 30

// download sends as many bytes as the client wants, as fast as it reads them.
func download(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(chi.URLParam(r, "n"), 10, 64)
	if err != nil || n < 0 || n > most {
		http.Error(w, fmt.Sprintf("a number from 0 to %d, please", most), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	_, _ = io.CopyN(w, &counter{}, n)
}

// counter is an endless text: "0\n1\n2\n" and so on.
type counter struct {
	next int
	text [20]byte // of a number
	rest []byte   // of it
}

func (c *counter) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(c.rest) == 0 {
			c.rest = append(strconv.AppendInt(c.text[:0], int64(c.next), 10), '\n')
			c.next++
		}
		m := copy(p[n:], c.rest)
		c.rest, n = c.rest[m:], n+m
	}
	return n, nil
}

// digest sends the SHA-256 of the body that it gets.
func digest(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest) // in vain if the client has gone
		return
	}
	fmt.Fprintf(w, "%x\n", sum.Sum(nil))
}

func proxy(to *url.URL) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
	}}
}
