// Package hello shows a protocol of lines. It reads HTTP requests line by line and gives each the same answer, which is
// enough for curl and wrk. It is not an HTTP server: it looks at no path and reads no bodies. Package httpd is one.
package hello

import (
	"bytes"
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

const (
	answer   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n"
	farewell = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nConnection: close\r\n\r\nHello, world!\n"
	tooLarge = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	// maxHeader bounds a request: its line and its fields.
	maxHeader = 8 << 10
)

// Hello is the action of one connection. After the answer to an HTTP/1.1 GET it waits for the next request, unless the
// client says "Connection: close". Any other request is the last; a body that it may have is discarded when the
// connection is closed. On an order it goes on until the client has closed.
func Hello(c *listener.Conn) act.Action {
	return &hello{conn: c, in: listener.Line{Conn: c, Max: maxHeader}}
}

type hello struct {
	conn *listener.Conn
	in   listener.Line
	size int    // bytes of the current request that were read
	open bool   // the first line of the request was read
	last bool   // the request is the last
	rest string // the part of the answer that is not written yet
}

func (h *hello) Act(t *act.Task) act.Directive {
	for h.rest == "" {
		line, err := h.in.Read()
		if err != nil && !errors.Is(err, listener.ErrTooLong) {
			return listener.Next(t, err)
		}
		h.size += len(line) + len("\r\n")
		h.take(line, err != nil || h.size > maxHeader)
	}
	n, err := h.conn.WriteString(h.rest)
	if h.rest = h.rest[n:]; err == nil && h.last {
		return act.Done
	}
	return h.conn.Next(t, err)
}

// take handles a line of the request. A blank line ends the request.
func (h *hello) take(line []byte, excess bool) {
	switch {
	case excess:
		h.rest, h.last = tooLarge, true
	case !h.open: // blank lines before the first are to be ignored: RFC 9112 section 2.2
		h.open = len(line) > 0
		h.last = !bytes.HasPrefix(line, []byte("GET ")) || !bytes.HasSuffix(line, []byte(" HTTP/1.1"))
	case len(line) > 0:
		h.last = h.last || bytes.EqualFold(line, []byte("Connection: close"))
	case h.last:
		h.rest = farewell
	default:
		h.rest, h.size, h.open = answer, 0, false
	}
}
