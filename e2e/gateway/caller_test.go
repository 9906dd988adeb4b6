package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
)

// A caller is a client on one connection.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func newCaller(c net.Conn) *caller { return &caller{c, bufio.NewReader(c)} }

// ask sends a request, whose content has a length if there is any, and returns the answer.
func (k *caller) ask(method, target, content string, fields ...string) (*message, error) {
	text := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n"
	for _, f := range fields {
		text += f + "\r\n"
	}
	if content != "" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(content))
	}
	if _, err := io.WriteString(k, text+"\r\n"+content); err != nil {
		return nil, err
	}
	return k.answer(method)
}

// answer reads the final answer to a request.
func (k *caller) answer(method string) (*message, error) {
	for {
		m, err := readHead(k.in)
		if err != nil {
			return nil, err
		}
		if m.status()/100 != 1 || m.status() == 101 {
			m.readBody(k.in, method)
			return &m, nil
		}
	}
}
