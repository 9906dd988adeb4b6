package websocket

import (
	"cmp"
	"math"
	"time"
)

// Options configure the connections of a [Server] or a [Client]. The zero Options are good for the Internet. A negative
// time-out means no limit.
type Options struct {
	// Subprotocols are the protocols that this side speaks. A server chooses the first one of the client's list that
	// is among them.
	Subprotocols []string
	// MaxMessage is the size of the largest message, in bytes. For a larger one the connection is closed with code 1009,
	// before that much has been received. 0 means 1 MiB, and less than 0 means no limit. A message that has arrived in
	// part takes at most twice the memory of that part.
	//
	// A compressed message is inflated when all of it has come, to at most that size. That takes further memory, and some
	// milliseconds of the turn for each MiB.
	MaxMessage int64
	// Backlog bounds the messages of Conn.Push that wait for a slow peer. 0 means 64, and less than 0 means none.
	Backlog int
	// Compress has messages compressed in both directions if the peer agrees (permessage-deflate, RFC 7692). It is the size of
	// the smallest message that is compressed when it is sent, in bytes: 256 is usual, and 64 with Takeover. A message that
	// compression does not make smaller is sent as it is. 0 means no compression.
	//
	// Do not compress secrets together with text from strangers: the size of the message gives secrets away.
	Compress int
	// Takeover lets a compressed message refer to earlier ones, so that small messages that resemble each other become much
	// smaller. It costs up to 40 KiB for each connection, and small messages take three times as long. Without it a connection
	// has no memory for compression. The peer may prevent it.
	Takeover bool
	// Ping is how long the peer may be silent, without sending a frame, before a ping is sent. 0 means 30 s.
	Ping time.Duration
	// Pong is the time in which the peer has to answer, with any frame. Otherwise the connection is cut off, unless the peer
	// has taken some of the queued bytes meanwhile. While the action leaves a message unread, no answer is expected, but a
	// peer that has closed its connection is noticed. 0 means 30 s.
	Pong time.Duration
	// CloseTimeout is how long the close handshake may take. Then the connection is closed without it. 0 means 5 s.
	CloseTimeout time.Duration
}

func (o *Options) maxMessage() int64 {
	if o.MaxMessage < 0 {
		return math.MaxInt64
	}
	return cmp.Or(o.MaxMessage, 1<<20)
}

func (o *Options) backlog() int { return max(0, cmp.Or(o.Backlog, 64)) }
