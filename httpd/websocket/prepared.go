package websocket

import (
	"net"
	"slices"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

// Prepared is a message that is framed, and compressed, once for all its receivers; see [Conn.Push]. It does not change, and
// any goroutine may use it.
type Prepared struct {
	opcode  frame.Opcode
	plain   []byte                 // the frame of a server
	payload []byte                 // of plain
	packed  atomic.Pointer[[]byte] // the same, compressed if that is smaller; nil: nobody has wanted it
}

// Prepare returns a message with a copy of p, to be pushed to any number of connections: see [Conn.Push]. A text must be
// UTF-8, which is not checked. Prepare panics if t is neither Text nor Binary. Any goroutine.
func Prepare(t Type, p []byte) *Prepared {
	if t != Text && t != Binary {
		panic("websocket: Prepare of no type")
	}
	return prepare(frame.Opcode(t), p)
}

func prepare(o frame.Opcode, p []byte) *Prepared {
	m := &Prepared{opcode: o}
	m.plain = whole(frame.Header{Opcode: o}, p)
	m.payload = m.plain[len(m.plain)-len(p):]
	return m
}

// whole returns a frame with p.
func whole(h frame.Header, p []byte) []byte {
	h.Final, h.Length = true, int64(len(p))
	return append(h.Append(make([]byte, 0, frame.MaxHeader+len(p))), p...)
}

// frame returns the frame that c sends next, which nobody may change.
func (m *Prepared) frame(c *Conn) []byte {
	p := m.plain
	if !m.opcode.Control() && c.compresses(m.payload) {
		if p = m.compressed(); len(p) < len(m.plain) {
			c.codec.Sent(m.payload)
		}
	}
	if c.client {
		return c.masked(p)
	}
	return p[:len(p):len(p)]
}

// compressed returns the frame compressed, or plain if that is smaller. It refers to no other message, so it is good for all
// receivers. Schedulers that want it at the same time do not wait for each other.
func (m *Prepared) compressed() []byte {
	if p := m.packed.Load(); p != nil {
		return *p
	}
	p := m.plain
	if packed, ok := deflate.New(deflate.Terms{}).Compress(nil, m.payload); ok {
		p = whole(frame.Header{Opcode: m.opcode, Compressed: true}, packed)
	}
	m.packed.Store(&p)
	return p
}

// Push sends a message that many connections share. The caller is usually another task or a posted function, for example
// when a line goes to all members of a room. The connection does not copy the message: up to 4 KiB of messages, or one,
// wait in the [listener.Conn], as with its PushShared, and more as references, in order. They are sent without a further
// call. If Options.Backlog of them wait, the error is an act.Blocked, which wakes its task when there may be room. For a peer that
// is too slow the caller may also use PushOrDrop, or Close the connection with CodePolicy.
//
// Send and Push send in the order of their calls. So a Send waits for all messages that were pushed before it: an action
// whose peer gets more than it can take should push its answers as well. Close sends waiting messages before the close frame,
// within Options.CloseTimeout. When the peer closes, waiting messages are dropped.
//
// Messages that are pushed in one turn go out together when the turn ends; messages that posted functions push go out
// together after those functions. The error is net.ErrClosed after Close, and when the connection has ended; an error of the
// system call may come with a later call. Push is for the scheduler's thread: see [Conn.Scheduler].
func (c *Conn) Push(m *Prepared) error { return c.push(m, false) }

// PushOrDrop is [Conn.Push] for a message that may be dropped, such as a price that a newer one replaces. If there is no room,
// it drops the oldest of the waiting messages that were pushed with PushOrDrop, which may be m itself, and [Conn.Dropped] counts
// it. Messages of Push, such as answers, are never dropped for one of PushOrDrop. The error is as for Push, except act.Blocked.
func (c *Conn) PushOrDrop(m *Prepared) error { return c.push(m, true) }

func (c *Conn) push(m *Prepared, drops bool) error {
	if c.phase != open {
		return net.ErrClosed
	}
	if c.queue(m, drops); c.waits() == 1 && !c.gathers {
		c.gathers = true
		c.conn.Scheduler().Internals().AtTurnEnd((*gathered)(c))
	}
	most := c.options.backlog()
	if c.waits() <= most {
		return nil
	}
	err := c.flush()
	if len(c.extra.out) > 0 {
		c.waker.Wake() // its task waits for room
	}
	if c.waits() <= most {
		return nil
	}
	one := c.waits() - 1 // too many: m
	if _, full := err.(act.Blocked); full && drops {
		for one = 0; !c.waiting(one).drops; {
			one++
		}
		c.more().dropped++
		arenas.Get(c.conn.Scheduler()).dropped++
		err = nil
	}
	c.remove(one)
	return err
}

// gathered is a Conn to which something was pushed in this turn, or in this pass by posted functions: the frames of many
// connections are put together one after the other when it ends, so that they need one buffer.
type gathered Conn

func (g *gathered) TurnEnd() {
	c := (*Conn)(g)
	c.gathers = false
	if c.flush() == nil {
		_ = c.conn.Internals().Send() // an error is the next call's
	}
	if len(c.extra.out) > 0 || c.waits() > 0 {
		c.waker.Wake() // its task waits for room
	}
	c.settle()
}

// Dropped returns how many messages PushOrDrop has dropped. Messages that waited when the connection ended are
// not counted.
func (c *Conn) Dropped() int { return c.extra.dropped }

// few is how many bytes of pushed messages a connection may hold: as much as listener.Conn gathers in a turn.
const few = 4 << 10

// roomToPush returns nil if m may be given to the listener.Conn: less than few bytes lie there with it, or it is alone.
func (c *Conn) roomToPush(m *Prepared) error {
	queued, n := c.conn.Queued(), len(m.plain)
	if n > c.conn.Room() || queued > 0 && queued+n > few {
		return c.conn.Sent()
	}
	return nil
}

// pushed is a message that waits.
type pushed struct {
	*Prepared
	drops bool // it may be dropped for a later one
}

// waits returns how many messages of Push wait.
func (c *Conn) waits() int {
	if c.pushed == nil {
		return 0
	}
	return 1 + len(c.extra.backlog)
}

// waiting returns the n-th message that waits.
func (c *Conn) waiting(n int) pushed {
	if n == 0 {
		return pushed{c.pushed, c.drops}
	}
	return c.extra.backlog[n-1]
}

// queue has m wait.
func (c *Conn) queue(m *Prepared, drops bool) {
	if c.waits() == 0 {
		c.pushed, c.drops = m, drops
		return
	}
	x := c.more()
	x.backlog = append(x.backlog, pushed{m, drops})
}

// remove removes the n-th message that waits.
func (c *Conn) remove(n int) *Prepared {
	m, b := c.waiting(n).Prepared, c.extra.backlog
	switch {
	case len(b) == 0:
		c.pushed = nil
		return m
	case n == 0:
		c.pushed, c.drops, b[0] = b[0].Prepared, b[0].drops, pushed{}
		b = b[1:]
	default:
		b = slices.Delete(b, n-1, n)
	}
	if len(b) == 0 {
		b = nil
	}
	c.more().backlog = b
	return m
}

// forget drops all messages that wait.
func (c *Conn) forget() {
	if c.pushed = nil; c.extra.backlog != nil {
		c.more().backlog = nil
	}
}
