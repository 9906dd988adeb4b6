// Command hello answers HTTP requests, to show a protocol of lines. It reads a request line by line and gives each the same
// answer, which is enough for curl and wrk. It is not an HTTP server: it ignores the path and reads no bodies. Package httpd is
// one.
//
//	go run ./examples/hello
//	curl http://127.0.0.1:7008
package main

import (
	"bytes"
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

const (
	answer   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n"
	farewell = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nConnection: close\r\n\r\nHello, world!\n"
	tooLarge = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	// maxHeader bounds a request: its line and its fields.
	maxHeader = 8 << 10
)

func main() { program.Serve("127.0.0.1:7008", hello, &inspect.Inspector{}) }

// hello returns the action of a connection. After the answer to an HTTP/1.1 GET it waits for the next request, unless the
// client says "Connection: close". Any other request is the last; a body that it may have is discarded when the
// connection is closed. After a shutdown request it goes on until the client has closed.
func hello(c *listener.Conn) act.Action {
	return &session{conn: c, in: listener.Line{Conn: c, Max: maxHeader}}
}

type session struct {
	conn *listener.Conn
	in   listener.Line
	size int    // bytes of the current request that were read
	open bool   // the first line of the request was read
	last bool   // the request is the last
	rest string // the part of the answer that is not written yet
}

func (x *session) Act(t *act.Task) act.Directive {
	for x.rest == "" {
		line, err := x.in.Read()
		if err != nil && !errors.Is(err, listener.ErrTooLong) {
			return listener.Next(t, err)
		}
		x.size += len(line) + len("\r\n")
		x.take(line, err != nil || x.size > maxHeader)
	}
	n, err := x.conn.WriteString(x.rest)
	if x.rest = x.rest[n:]; err == nil && x.last {
		return act.Done
	}
	return x.conn.Next(t, err)
}

// take handles a line of the request. A blank line ends the request.
func (x *session) take(line []byte, excess bool) {
	switch {
	case excess:
		x.rest, x.last = tooLarge, true
	case !x.open: // blank lines before the first are to be ignored: RFC 9112 section 2.2
		x.open = len(line) > 0
		x.last = !bytes.HasPrefix(line, []byte("GET ")) || !bytes.HasSuffix(line, []byte(" HTTP/1.1"))
	case len(line) > 0:
		x.last = x.last || bytes.EqualFold(line, []byte("Connection: close"))
	case x.last:
		x.rest = farewell
	default:
		x.rest, x.size, x.open = answer, 0, false
	}
}
