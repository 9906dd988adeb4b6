package websocket

import (
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

// SendPiece sends a message piece by piece, so that a large one need not be in memory. Each piece is sent as Send sends a
// message, all of it or nothing, and it is a frame of its own. All pieces of a message have the same type, and last is true
// for the last one, which may be empty.
//
// If the first piece has at least Compression.Min bytes, all of them are compressed.
//
// From the first piece until the last one no other message is sent: pushed messages wait, and a Send returns an act.Blocked,
// even to the task that sends the pieces. So one task at a time sends in pieces. Pings and pongs go between the pieces.
// Close ends the connection within the message, and drops the messages that wait. Other errors are as from Send.
func (c *Conn) SendPiece(t Type, p []byte, last bool) error {
	o := frame.Opcode(t)
	switch {
	case t != Text && t != Binary:
		panic("websocket: SendPiece of no type")
	case c.sending.kind != 0 && c.sending.kind != t:
		panic("websocket: SendPiece of another type than the pieces before")
	case c.sending.kind != 0:
		o = frame.Continuation
	}
	if err := c.room(len(p)); err != nil {
		return err
	}
	h := frame.Header{Opcode: o, Final: last}
	p, h.Compressed = c.compressPiece(p, last)
	c.putFrame(h, p)
	if c.sending.kind = t; last {
		c.unblock()
		if _ = c.flush(); c.waits() > 0 {
			c.waker.Wake() // its task waits for room
		}
	}
	return nil
}

// blockedMessage is a Conn as the error that says that a message is sent in pieces.
type blockedMessage Conn

func (*blockedMessage) Error() string { return "websocket: another message is sent in pieces" }

func (b *blockedMessage) Arm(t *act.Task) {
	if b.sending.kind == 0 {
		t.Waker().Wake()
		return
	}
	x := (*Conn)(b).more()
	x.waiting = append(slices.DeleteFunc(x.waiting, act.Waker.Stale), t.Waker())
}

// unblock ends the message that is sent in pieces, or gives it up.
func (c *Conn) unblock() {
	for _, w := range c.extra.waiting {
		w.Wake()
	}
	if c.sending = (message{}); c.extra.waiting != nil {
		c.more().waiting = nil
	}
}
