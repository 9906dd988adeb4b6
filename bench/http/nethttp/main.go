// Command nethttp is the measured server of net/http: a Server with only its handler set.
package main

import (
	"io"
	"log"
	"net/http"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	s := &http.Server{Handler: http.HandlerFunc(hello)}
	log.Fatal(s.Serve(goserver.Listen()))
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain") // else the body is looked at to find one
	io.WriteString(w, "Hello, World!")
}
