// Command hello answers HTTP requests, without being an HTTP server: see package hello.
//
//	go run ./examples/hello
//	curl http://127.0.0.1:7008
package main

import (
	"github.com/daimon-go/daimon/examples/hello/hello"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
)

func main() {
	server := program.Server{Addr: "127.0.0.1:7008"}
	inspector := inspect.Flag()
	server.Parse()
	server.Run(inspector, server.Listen(server.Addr, hello.Hello))
}
