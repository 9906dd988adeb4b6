// Command plain is the usual echo server: package net, and a goroutine for each connection. It is measured for orientation
// only.
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

// echo hides the connection's other methods from io.CopyBuffer, which would otherwise splice through a pipe: more system
// calls, and not what handlers do.
func echo(c net.Conn) {
	defer c.Close()
	io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 4<<10))
}
