// Command plain is the echo server that everybody writes first: package net, a goroutine for each
// connection. It stands beside the others for orientation only.
package main

import (
	"io"
	"log"
	"net"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	l := goserver.Listen()
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
