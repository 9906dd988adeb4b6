// Command fib is the measured server of fib. It is a module of its own, since fib needs Go 1.27.
package main

import (
	"crypto/tls"
	"flag"
	"io"
	"log"
	"net/http"
	"runtime"

	"github.com/lesismal/fib"
	fibhttp "github.com/lesismal/fib/http"
	fibtls "github.com/lesismal/fib/tls"
)

var large = make([]byte, 1<<20)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS")
	certificate := flag.String("tls-cert", "", "the `file` of a certificate; without one there is no TLS")
	key := flag.String("tls-key", "", "the `file` of its key")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	var handler fib.Handler = fibhttp.NewHandler(fibhttp.HandlerFunc(serve))
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			log.Fatal(err)
		}
		handler = fibtls.NewServer(fibhttp.ConfigureTLS(&tls.Config{Certificates: []tls.Certificate{pair}}), handler)
	}
	engine, err := fib.New(fib.DefaultConfig(), fib.Binding{Network: "tcp", Addr: *addr, Handler: handler})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(engine.Run())
}

func serve(c *fibhttp.Context) {
	switch r := c.Request; r.URL.Path {
	case "/large":
		c.Respond(http.StatusOK, "application/octet-stream", large)
		return
	case "/discard":
		_, _ = io.Copy(io.Discard, r.Body) // it has come whole
	}
	c.Respond(http.StatusOK, "text/plain", []byte("Hello, World!"))
}
