// Command nethttp is the measured server of net/http: a Server with only its handler set.
package main

import (
	"log"
	"net/http"

	"github.com/daimon-go/daimon/bench/http/handler"
	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	s := &http.Server{Handler: http.HandlerFunc(handler.Serve)}
	log.Fatal(s.Serve(goserver.Listen()))
}
