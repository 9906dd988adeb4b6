package main

import (
	"bytes"
	"fmt"

	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/nethttp/site"
)

const (
	kilo = 1 << 10
	mega = 1 << 20
)

// files are those of the sites.
var files = map[string]int{"1m.pdf": mega, "64m.pdf": 64 * mega}

// row is a request, and what of it is measured.
type row struct {
	name, path       string
	body             int  // bytes of the request's; 0: it is a GET
	chunked          bool // the body has no Content-Length
	answer           int  // bytes of its content
	tls              bool
	conns, exchanges int
	most, inline     float64 // limits of the medians; inline 0: not measured
}

// rows without Inline have bodies of more than 4 MiB, or handlers that block.
var rows = []row{
	{name: "small", path: "/small", answer: len(site.Hello), conns: 100, exchanges: 30000, most: 0.8, inline: 0.6},
	{name: "small1", path: "/small", answer: len(site.Hello), conns: 1, exchanges: 15000, most: 1, inline: 0.6},
	{name: "json", path: "/json", answer: len(site.JSON), conns: 100, exchanges: 20000, most: 0.8, inline: 0.6},
	{name: "tls-small", path: "/small", tls: true, answer: len(site.Hello), conns: 100, exchanges: 20000, most: 0.8, inline: 0.6},
	{name: "file1m", path: "/files/1m.pdf", answer: mega, conns: 10, exchanges: 1000, most: 1, inline: 1},
	{name: "file64m", path: "/files/64m.pdf", answer: 64 * mega, conns: 2, exchanges: 20, most: 1, inline: 1},
	{name: "file1m-tls", path: "/files/1m.pdf", tls: true, answer: mega, conns: 10, exchanges: 500, most: 1, inline: 1},
	{name: "file64m-tls", path: "/files/64m.pdf", tls: true, answer: 64 * mega, conns: 2, exchanges: 8, most: 1, inline: 1},
	{name: "stream", path: "/stream", answer: site.Pieces * site.Piece, conns: 10, exchanges: 500, most: 1, inline: 1},
	{name: "flushes", path: "/flushes", answer: site.Pieces * site.Flushed, conns: 10, exchanges: 1000, most: 1, inline: 1},
	{name: "post64k", path: "/read", body: 64 * kilo, answer: len(site.Hello), conns: 10, exchanges: 4000, most: 1, inline: 1},
	{name: "upload", path: "/discard", body: 16 * mega, answer: len(site.Hello), conns: 4, exchanges: 60, most: 1},
	{name: "upload-chunked", path: "/discard", body: 16 * mega, chunked: true, answer: len(site.Hello), conns: 4, exchanges: 60, most: 1},
	{name: "proxy", path: "/proxy/json", answer: len(site.JSON), conns: 100, exchanges: 5000, most: 1},
	{name: "proxy1m", path: "/proxy/files/1m.pdf", answer: mega, conns: 10, exchanges: 500, most: 1},
}

// names are those of all rows.
func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

// talk is what is sent: the load generator only wants an answer of some length.
func (r row) talk() load.Talk {
	head := fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\n", r.path)
	body := bytes.Repeat([]byte("x"), r.body)
	switch {
	case r.body == 0:
		head = "GET " + head
	case r.chunked:
		head = "POST " + head + "Transfer-Encoding: chunked\r\n"
		body = chunks(body)
	default:
		head = fmt.Sprintf("POST %sContent-Length: %d\r\n", head, r.body)
	}
	return load.Talk{Say: append([]byte(head+"\r\n"), body...)}
}

// chunks has body in chunks of 32 KiB, as net/http's client sends them.
func chunks(body []byte) (text []byte) {
	const size = 32 * kilo
	for ; len(body) > 0; body = body[min(size, len(body)):] {
		piece := body[:min(size, len(body))]
		text = fmt.Appendf(text, "%x\r\n%s\r\n", len(piece), piece)
	}
	return append(text, "0\r\n\r\n"...)
}
