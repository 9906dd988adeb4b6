// Command reverseproxy is the measured proxy of net/http: httputil.ReverseProxy with a Transport for one origin.
package main

import (
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	origin := flag.String("origin", "", "the `address` of the server behind it")
	l := goserver.Listen()
	to := &url.URL{Scheme: "http", Host: *origin}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1000 // the default is 2 for a host, and further ones are closed
	transport.DisableCompression = true                             // else it asks for gzip, and unpacks it
	p := &httputil.ReverseProxy{Transport: transport, BufferPool: &buffers{}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	log.Fatal((&http.Server{Handler: p}).Serve(l))
}

// buffers spares a new buffer of 32 KiB for each answer.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
