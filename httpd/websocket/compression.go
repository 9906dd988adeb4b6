package websocket

import (
	"cmp"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

// Compression says whether messages are compressed, if the peer can (permessage-deflate, RFC 7692). The zero Compression is
// off. Do not compress secrets together with text from strangers: the size of the message gives secrets away.
type Compression struct {
	// On has compression offered, by a Client, or accepted, by a Server.
	On bool
	// Takeover lets a message refer to earlier ones, so that small messages that resemble each other become much smaller. It
	// costs up to 40 KiB for each connection, and small messages take three times as long. Without it a connection has no
	// memory for compression. The peer may prevent it.
	Takeover bool
	// Min is the size of the smallest message that is compressed when it is sent, in bytes. 0 means 256, or 64 with Takeover.
	// A message that compression does not make smaller is sent as it is.
	Min int
}

// answer returns the terms that a server agrees to; nil if it does not compress.
func (o *Compression) answer(r *httpd.Request) (codec *deflate.Codec, extensions string, err error) {
	if r.Header("Sec-WebSocket-Extensions") == nil {
		return nil, "", nil
	}
	terms, extensions, err := deflate.Answer(r.Values("Sec-WebSocket-Extensions"), o.Takeover)
	if !o.On || extensions == "" {
		return nil, "", err
	}
	return deflate.New(terms), extensions, err
}

func (o *Compression) min() int {
	if o.Takeover {
		return cmp.Or(o.Min, 64)
	}
	return cmp.Or(o.Min, 256)
}

const errPacked frame.Error = "malformed compressed data"

// most is how many bytes may come for a message.
func (c *Conn) most(packed bool) int64 {
	if packed {
		return deflate.Packed(c.options.maxMessage())
	}
	return c.options.maxMessage()
}

// inflate returns the message that has come compressed, in memory of this turn.
func (c *Conn) inflate(packed []byte) ([]byte, error) {
	a := arenas.Get(c.conn.Scheduler())
	to := a.room()
	p, err := c.codec.Inflate(to, packed, c.options.maxMessage())
	switch {
	case err == deflate.ErrSize:
		return nil, c.fail(frame.TooLarge, errTooLarge)
	case err != nil:
		return nil, c.fail(frame.NotUTF8, errPacked)
	case !c.isText(p, true):
		return nil, c.fail(frame.NotUTF8, frame.ErrText)
	}
	if len(p) <= cap(to) {
		a.take(len(p)) // it is there
	}
	return p, nil
}

// isText reports whether the next piece of the message is UTF-8, if that has to be.
func (c *Conn) isText(piece []byte, last bool) bool {
	return c.receiving.kind != Text || c.text.Write(piece) && (!last || c.text.Over())
}

// compresses reports whether a message is compressed when it is sent, if that makes it smaller.
func (c *Conn) compresses(p []byte) bool {
	return c.codec != nil && len(p) >= c.options.Compression.min()
}

// compress returns p compressed, if that is smaller. It is in memory that is for the time of a call.
func (c *Conn) compress(p []byte) (packed []byte, ok bool) {
	a := arenas.Get(c.conn.Scheduler())
	packed, ok = c.codec.Compress(a.space[:0], p)
	if a.keep(packed); !ok {
		return p, false
	}
	return packed, true
}

// compressPiece returns a piece of a message as it is sent, in such memory, and whether it begins a compressed message: the
// size of the first piece decides.
func (c *Conn) compressPiece(p []byte, last bool) (packed []byte, begins bool) {
	begins = c.sending.kind == 0
	if begins {
		c.sending.packed = c.compresses(p)
	}
	if !c.sending.packed {
		return p, false
	}
	a := arenas.Get(c.conn.Scheduler())
	packed = c.codec.Piece(a.space[:0], p, last)
	a.keep(packed)
	return packed, begins
}
