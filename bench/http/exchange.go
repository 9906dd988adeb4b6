package main

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/bench/http/handler"
	"github.com/daimon-go/daimon/bench/internal/answer"
)

// The values of -exchange. Only servers with package handler know the last two.
const (
	get      = "get"
	download = "download"
	upload   = "upload"
)

// what returns the value of -exchange.
func (o Options) what() string {
	if o.Exchange == "" {
		return get
	}
	return o.Exchange
}

// exchange returns what is sent to a server at addr, and the body that it has to answer with.
func (o Options) exchange(addr string) (request []byte, body string, err error) {
	switch o.what() {
	case get:
		request, err = answer.Request(o.Request, addr)
		return request, answer.Hello, err
	case download:
		return fmt.Appendf(nil, "GET /download HTTP/1.1\r\nHost: %s\r\n\r\n", addr), string(handler.Large), nil
	case upload:
		head := fmt.Appendf(nil, "POST /upload HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", addr, len(handler.Large))
		return slices.Concat(head, handler.Large), answer.Hello, nil
	}
	return nil, "", fmt.Errorf("-exchange is %s, %s or %s, not %q", get, download, upload, o.Exchange)
}
