package main

import (
	"bytes"
	"io"
	"net"
	"net/http"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/bench/nethttp/site"
)

const (
	kilo = 1 << 10
	mega = 1 << 20
)

// files are the files of the site, with their sizes.
var files = map[string]int{"1m.pdf": mega, "64m.pdf": 64 * mega}

// row is a request, and what of it is measured.
type row struct {
	name, path       string
	body             int    // bytes of the request's; 0: it is a GET
	chunked          bool   // the body has no Content-Length
	content          string // of the answer
	length           int    // of a content that is not compared, only counted
	tls              bool
	idle             bool // memory is measured, with an exchange on each connection, and not CPU time
	conns, exchanges int
	most, inline     float64 // limits of the medians; inline 0: not measured
}

// rows without Inline have bodies of more than 4 MiB, or handlers that block.
var rows = []row{
	{name: "small", path: "/small", content: site.Hello, conns: 100, exchanges: 30000, most: 0.8, inline: 0.6},
	{name: "small1", path: "/small", content: site.Hello, conns: 1, exchanges: 15000, most: 1, inline: 0.6},
	{name: "json", path: "/json", content: site.JSON, conns: 100, exchanges: 20000, most: 0.8, inline: 0.6},
	{name: "tls-small", path: "/small", tls: true, content: site.Hello, conns: 100, exchanges: 20000, most: 0.8, inline: 0.6},
	{name: "file1m", path: "/files/1m.pdf", length: mega, conns: 10, exchanges: 1000, most: 1, inline: 1},
	{name: "file64m", path: "/files/64m.pdf", length: 64 * mega, conns: 2, exchanges: 20, most: 1, inline: 1},
	{name: "file1m-tls", path: "/files/1m.pdf", tls: true, length: mega, conns: 10, exchanges: 500, most: 1, inline: 1},
	{name: "file64m-tls", path: "/files/64m.pdf", tls: true, length: 64 * mega, conns: 2, exchanges: 8, most: 1, inline: 1},
	{name: "stream", path: "/stream", length: site.Pieces * site.Streamed, conns: 10, exchanges: 500, most: 1, inline: 1},
	{name: "flushes", path: "/flushes", length: site.Pieces * site.Flushed, conns: 10, exchanges: 1000, most: 1, inline: 1},
	{name: "post64k", path: "/read", body: 64 * kilo, content: site.Hello, conns: 10, exchanges: 4000, most: 1, inline: 1},
	{name: "upload", path: "/discard", body: 16 * mega, content: site.Hello, conns: 4, exchanges: 60, most: 1},
	{name: "upload-chunked", path: "/discard", body: 16 * mega, chunked: true, content: site.Hello, conns: 4, exchanges: 60, most: 1},
	{name: "proxy", path: "/proxy/json", content: site.JSON, conns: 100, exchanges: 5000, most: 1},
	{name: "proxy1m", path: "/proxy/files/1m.pdf", length: mega, conns: 10, exchanges: 500, most: 1},
	{name: "idle", path: "/small", idle: true, content: site.Hello, conns: 10000, most: 0.1, inline: 0.1},
}

// names returns the names of all rows.
func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

// exact reports whether the bytes of the answer are known beforehand. Longer ones are framed as it suits the server.
func (r row) exact() bool { return r.content != "" && !r.tls }

// talk is what is sent to a server, and its answer, if that is known.
func (r row) talk(s *server.Process) (load.Talk, error) {
	if !r.exact() {
		return load.Talk{Say: r.request()}, nil
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return load.Talk{}, err
	}
	defer c.Close()
	a, err := answer.Ask(c, r.request(), r.content)
	return a.Talk(r.request(), 1), err
}

// request is what net/http's client sends.
func (r row) request() []byte {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if r.body > 0 {
		method, body = http.MethodPost, bytes.NewReader(make([]byte, r.body))
	}
	if r.chunked {
		body = struct{ io.Reader }{body} // whose length nobody knows
	}
	request, err := http.NewRequest(method, "http://localhost"+r.path, body)
	if err != nil {
		panic(err) // the path is good
	}
	var text bytes.Buffer
	_ = request.Write(&text) // a Buffer takes everything
	return text.Bytes()
}
