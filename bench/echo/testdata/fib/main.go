// Command fib is an echo server on fib, with -reactors pollers. It is a module of its own, since fib needs Go 1.27.
package main

import (
	"flag"
	"log"
	"runtime"

	"github.com/lesismal/fib"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "pollers, and GOMAXPROCS; 0: as fib chooses")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	config := fib.DefaultConfig()
	config.LogSettings = false
	config.IOPollerCount = *reactors
	echo := fib.HandlerFuncs{Data: func(c *fib.Connection, in []byte) { _ = c.Send(in) }} // an error has closed c
	engine, err := fib.New(config, fib.Binding{Network: "tcp", Addr: *addr, Handler: echo})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(engine.Run())
}
