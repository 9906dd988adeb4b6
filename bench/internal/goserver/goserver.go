// Package goserver is what the servers written in Go have in common: the flags that Daimon's examples take,
// and the socket.
package goserver

import (
	"flag"
	"log"
	"net"
	"runtime"
)

// Listen parses the flags and listens. -reactors is GOMAXPROCS, so that a server gets no more CPUs than the
// others have threads.
func Listen() net.Listener {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	return l
}
