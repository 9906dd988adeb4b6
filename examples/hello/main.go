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

func main() { program.Serve("127.0.0.1:7008", hello.Hello, &inspect.Inspector{}) }
