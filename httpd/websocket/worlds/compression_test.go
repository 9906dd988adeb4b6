package worlds_test

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"strings"
)

// compression is that of a client (RFC 7692). It has a compressor for the connection, as many have.
type compression struct {
	field  string // of the handshake
	packs  bool   // both sides compress
	keeps  bool   // what it sends refers to what it has sent
	kept   bool   // and so for the server
	stream *flate.Writer
	wire   bytes.Buffer
	window []byte // the end of what it has inflated
}

// offers draws what it offers. The server agrees if it compresses.
func (c *client) offers(r *rand.Rand) {
	if !c.compress || r.IntN(8) == 0 {
		return
	}
	offer := from(r, "", "", "; client_no_context_takeover", "; server_no_context_takeover", "; client_max_window_bits",
		"; server_no_context_takeover; client_no_context_takeover", "; server_max_window_bits=9, permessage-deflate")
	c.field = "Sec-WebSocket-Extensions: permessage-deflate" + offer + "\r\n"
	c.packs = c.options.Compress > 0
	c.keeps = c.options.Takeover && !strings.Contains(offer, "client_no_context")
	c.kept = c.options.Takeover && !strings.Contains(offer, "server_no_context")
	c.stream, _ = flate.NewWriter(&c.wire, from(r, -2, 1, 6))
}

// squeeze compresses a message.
func (c *client) squeeze(p []byte) []byte {
	c.seen.squeezed++
	if c.wire.Reset(); !c.keeps {
		c.stream.Reset(&c.wire)
	}
	_, _ = c.stream.Write(p)
	_ = c.stream.Flush()
	return bytes.Clone(bytes.TrimSuffix(c.wire.Bytes(), []byte("\x00\x00\xff\xff")))
}

// pack makes the last frame of the plan the first one of a compressed message.
func (c *client) pack() { c.plan[len(c.plan)-1].raw[0] |= reserved1 }

// inflate inflates a message.
func (c *client) inflate(m *message) (err error) {
	c.seen.inflated++
	in := io.MultiReader(bytes.NewReader(m.data), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff"))
	if m.data, err = io.ReadAll(flate.NewReaderDict(in, c.window)); err == nil && c.kept {
		c.window = append(c.window, m.data...)
		c.window = c.window[max(0, len(c.window)-32<<10):]
	}
	return err
}

// violateCompression adds a compressed message that breaks the rules.
func (c *client) violateCompression(r *rand.Rand) {
	m, code := message{text, c.squeeze([]byte("almost a text\xe2\x82"))}, 1007
	switch r.IntN(4) {
	case 0:
		m.data = []byte(from(r, "", "\x06", "\xf2\x48\xcd", "\x00\x05\x00\xfa\xfe"))
	case 1:
		m.data = m.data[:len(m.data)/2]
	case 2:
		m, code = message{binry, c.squeeze(make([]byte, c.limit+1+r.IntN(100_000)))}, 1009
	}
	first := len(c.plan)
	c.fragments(r, m, true)
	for i := range c.plan[first:] { // what is too large may be so before it is inflated
		if s := &c.plan[first+i]; s.ping == nil && s.what != "pong" {
			s.breaks = code
		}
	}
}
