// Command nethttp is the measured server of net/http: a Server with only its handler set.
package main

import (
	"io"
	"log"
	"net/http"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	s := &http.Server{Handler: http.HandlerFunc(greet)}
	log.Fatal(s.Serve(goserver.Listen()))
}

func greet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain") // else the body is looked at to find one
	_, _ = io.WriteString(w, answer.Hello)
}
