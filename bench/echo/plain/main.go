// Command plain is the echo server that everybody writes first: package net, a goroutine for each
// connection. It stands beside the others for orientation only. It takes the flags of Daimon's echo;
// -reactors is its GOMAXPROCS, so that it gets no more CPUs than the others have threads.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"runtime"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("plain: listening on ", l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(c)
	}
}

// echo hides the connection's other methods from io.CopyBuffer, which would else splice through a
// pipe: more system calls, and not what anybody's handler does.
func echo(c net.Conn) {
	defer c.Close()
	io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 4<<10))
}
