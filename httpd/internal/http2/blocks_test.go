package http2

import (
	"bytes"

	"golang.org/x/net/http2/hpack"
)

// asked is what a browser asks for.
var asked = []string{":method", "GET", ":authority", "www.example.org", ":scheme", "https", ":path", "/articles/17?page=2",
	"sec-ch-ua", `"Chromium";v="140", "Not=A?Brand";v="24"`, "sec-ch-ua-mobile", "?0", "user-agent",
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
	"sec-fetch-site", "none", "sec-fetch-mode", "navigate", "accept-encoding", "gzip, deflate, br, zstd",
	"accept-language", "en-US,en;q=0.9", "cookie", "session=0123456789abcdef", "cookie", "theme=dark", "priority", "u=0, i"}

// blocks returns a block of these fields as a client sends them first, and as it does afterwards, when it has them in its
// table.
func blocks(fields ...string) (first, next []byte) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for range 2 {
		first, next = next, nil
		for i := 0; i < len(fields); i += 2 {
			_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		next = bytes.Clone(b.Bytes())
		b.Reset()
	}
	return first, next
}

func (d *Decoder) decode(h *Head, block []byte) bool {
	d.Begin(h, Limits{}, false)
	return d.Write(block) == nil && d.End(true) == nil && h.Refused == nil
}

var lines = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nDate: Fri, 27 Nov 2026 18:00:00 GMT\r\nContent-Length: 13")
