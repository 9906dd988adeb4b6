// Command gobwas is the measured server of github.com/gobwas/ws, with its upgrade without net/http and its functions for
// frames, on a goroutine for each connection: each message is sent back. A message comes with one read of a small buffer,
// and goes with one write.
package main

import (
	"bufio"
	"io"
	"log"
	"net"

	"github.com/gobwas/ws"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

// small is the size of both buffers of a connection. Larger frames get memory of their own.
const small = 256

func main() {
	l := goserver.Listen()
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(c)
	}
}

// serve leaves the connection to another goroutine, whose stack has not grown in the handshake.
func serve(c net.Conn) {
	if _, err := ws.Upgrade(c); err != nil {
		c.Close()
		return
	}
	go messages(c)
}

func messages(c net.Conn) {
	defer c.Close()
	in, out := bufio.NewReaderSize(c, small), bufio.NewWriterSize(c, small)
	for {
		h, err := echo(in, out)
		if err != nil || h.OpCode == ws.OpClose {
			return
		}
	}
}

// echo sends a frame back.
func echo(in *bufio.Reader, out *bufio.Writer) (ws.Header, error) {
	h, err := ws.ReadHeader(in)
	if err != nil {
		return h, err
	}
	payload, taken, err := read(in, int(h.Length))
	if err != nil {
		return h, err
	}
	ws.Cipher(payload, h.Mask, 0)
	h.Masked = false
	if err := ws.WriteHeader(out, h); err != nil {
		return h, err
	}
	if _, err := out.Write(payload); err != nil {
		return h, err
	}
	if _, err := in.Discard(taken); err != nil {
		return h, err
	}
	return h, out.Flush()
}

// read returns n bytes: of the buffer, where taken of them are to be discarded, or of a new one.
func read(in *bufio.Reader, n int) (p []byte, taken int, err error) {
	if n <= in.Size() {
		p, err = in.Peek(n)
		return p, n, err
	}
	p = make([]byte, n)
	_, err = io.ReadFull(in, p)
	return p, 0, err
}
