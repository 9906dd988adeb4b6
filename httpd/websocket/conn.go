package websocket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/listener"
)

// Type is the type of a [Message]: Text or Binary.
type Type uint8

// Text and Binary are the types of messages (RFC 6455 5.6). A text that was received is valid UTF-8. Whether a text that is
// sent is valid is not checked.
const (
	Text   = Type(frame.Text)
	Binary = Type(frame.Binary)
)

// Message is a message that was received, or a piece of one: see [Conn.Receive] and [Conn.ReceivePiece].
type Message struct {
	// Data is the content. Receive and ReceivePiece lend it until the turn ends; a coroutine's Read returns a copy.
	Data []byte
	Type Type // the type of the message: Text or Binary
}

// Codes of RFC 6455 7.4.1 for [Conn.Close], and of a [CloseError]. Codes from 3000 to 4999 are free for a program's
// own protocol.
const (
	CodeNormal    = frame.Normal    // 1000, the connection has done its work
	CodeGoingAway = frame.GoingAway // 1001, a server shuts down, or a browser leaves the page
	CodePolicy    = frame.Policy    // 1008, the peer breaks a rule that has no code of its own
)

// CloseError says how a connection has ended. Code is one of RFC 6455 7.4.1: the peer's code if it has closed, 1005 if its
// close frame has no code, 1006 if it has gone without a close handshake or does not answer. If the peer has broken the
// protocol, it is the code that was sent to it: 1002, 1007 or 1009.
type CloseError struct {
	Code   int    // a code of RFC 6455 7.4.1, such as CodeNormal
	Reason string // the reason that the peer has given, UTF-8 of up to 123 bytes, or ""
}

// Error returns the code and the reason, in one line.
func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("websocket: closed with code %d", e.Code)
	}
	return fmt.Sprintf("websocket: closed with code %d: %q", e.Code, e.Reason)
}

// Conn is a connection of WebSocket that never blocks: messages in order, both ways. It belongs to a scheduler, and only code
// that runs there may call its methods, except Scheduler. Its action receives. Other tasks and posted functions may send and
// close as well. At rest it has no buffer and no goroutine.
type Conn struct {
	options     *Options
	conn        *listener.Conn
	subprotocol string
	codec       *deflate.Codec // nil: messages are not compressed
	waker       act.Waker      // of the present turn of its task, or the wait after it

	// What is received.
	head  frame.Header
	left  int64 // of head's payload, still to come; 0: between two frames
	size  int64 // of the present message, with all of head's payload
	heard time.Duration

	given  int64     // bytes that listener.Conn has taken since the peer was asked, plus the bytes queued then
	pushed *Prepared // the oldest message of Push that waits; the others are in extra.backlog
	extra  *extra    // only to be read; see more

	text    frame.UTF8
	kind    Type // of the message that is being received; 0: none
	packed  bool // that message is compressed
	phase   phase
	sign    sign
	wants   bool // the action waits for input
	client  bool // this side masks what it sends, and the other one does not
	gathers bool // see gathered
	drops   bool // Conn.pushed may be dropped for a later message
}

// phase is how far a connection is.
type phase uint8

const (
	open   phase = iota
	closed       // a close frame was sent, or none can be
	ending       // likewise, and the user's action has no more turns
)

// sign is whether a peer has been asked for a sign of life.
type sign uint8

const (
	unasked sign = iota
	asked
	askedBehind // something that the peer had to take first
)

// extra is the part of a connection that one at rest does without.
type extra struct {
	partial []byte // the message so far, if it has not come in one piece
	got     error  // how the connection has ended for Receive: a CloseError, or an error of the system call

	// What is sent: first what listener.Conn has taken, then out, then the answer to the latest ping, then what was
	// pushed.
	out     []byte
	pong    []byte
	ponged  bool     // there is an answer to the latest ping
	backlog []pushed // after Conn.pushed; the last one may be the close frame
	dropped int

	held listener.Meter

	// What belongs to the session.
	failure error         // of the user's action
	leave   time.Duration // when it is closed because of a shutdown; 0: none has come
}

// none is the extra of all connections at rest. It is not changed.
var none extra

// more returns the extra of c to be changed.
func (c *Conn) more() *extra {
	if c.extra == &none {
		c.extra = &extra{}
	}
	return c.extra
}

// count counts the memory that is held between two turns. Messages of Push are shared by their receivers, so the program has
// to bound them; only the references count.
func (c *Conn) count() {
	x := c.extra
	if x != &none {
		x.held.Set(c.conn, cap(x.partial)+len(x.out)+cap(x.pong)+16*cap(x.backlog))
	}
}

// settle gives the extra back if there is nothing in it.
func (c *Conn) settle() {
	c.count()
	x := c.extra
	if x != &none && x.partial == nil && x.got == nil && x.out == nil && !x.ponged && x.backlog == nil && x.dropped == 0 &&
		x.held == (listener.Meter{}) && x.failure == nil && x.leave == 0 {
		c.extra = &none
	}
}

// Scheduler returns the scheduler that the connection belongs to, even after its end. Any goroutine may call it, to post to
// that scheduler.
func (c *Conn) Scheduler() *act.Scheduler { return c.conn.Scheduler() }

// Subprotocol returns the subprotocol that the server has chosen in the handshake, one of Options.Subprotocols, or "".
func (c *Conn) Subprotocol() string { return c.subprotocol }

// Err returns how the connection has ended, as Receive does, or nil while it is open. It may be called after the action
// has finished, for example by a client that connects again; see [Client.Dial].
func (c *Conn) Err() error {
	if c.phase != open && c.extra.got == nil {
		return net.ErrClosed
	}
	return c.extra.got
}

// Receive returns the next message. It is lent until the turn ends, and must not be changed. The error is an
// act.Blocked if no whole message has arrived; a *CloseError if the connection has ended, however it did; net.ErrClosed
// after Close; or an error of the system call. If ReceivePiece has returned pieces of the message, the rest is
// returned.
func (c *Conn) Receive() (Message, error) {
	m, _, err := c.receive(true)
	return m, err
}

// ReceivePiece is Receive without waiting for the whole message: it returns the part that has arrived, lent until the turn
// ends, in order, and whether it is the last one. So a large message takes no memory. Pieces have nothing to do with frames.
// That a text is UTF-8 is certain only up to the character that a piece may end in. A compressed message is one piece.
func (c *Conn) ReceivePiece() (piece Message, last bool, err error) { return c.receive(false) }

func (c *Conn) receive(whole bool) (m Message, last bool, err error) {
	if err := c.Err(); err == net.ErrClosed {
		return m, false, err
	}
	for {
		if err := c.begin(); err != nil {
			return m, false, c.wait(err)
		}
		in, err := c.payload()
		if err != nil {
			return m, false, c.wait(err)
		}
		whole := whole || c.packed
		data := c.unmask(in, whole)
		last = c.left == 0 && c.head.Final
		if !c.packed && !c.isText(data, last) {
			return m, false, c.fail(frame.NotUTF8, frame.ErrText)
		}
		if !last && (whole || len(data) == 0 && c.extra.partial == nil) {
			continue
		}
		if c.extra.partial != nil {
			x := c.more()
			data, x.partial = x.partial, nil
		}
		if c.packed {
			if data, err = c.inflate(data); err != nil {
				return m, false, err
			}
		}
		m = Message{data, c.kind}
		if last {
			arenas.Get(c.conn.Scheduler()).received++
			c.complete()
		}
		return m, last, nil
	}
}

// payload returns what has come of the payload that is still to come. The error says why that is nothing.
func (c *Conn) payload() ([]byte, error) {
	if c.left == 0 {
		return nil, nil
	}
	in, err := c.conn.Peek(1)
	if len(in) == 0 {
		return nil, c.lost(err)
	}
	return in[:min(int64(len(in)), c.left)], nil
}

// complete ends the message that is being received. Its text has ended with a character.
func (c *Conn) complete() { c.kind, c.packed, c.size = 0, false, 0 }

// unmask takes in, a piece of the payload. It is appended to the part of the message that is kept. If it is the
// beginning, and is not to be kept, it goes to memory of this turn, or stays where it is if it has no mask.
func (c *Conn) unmask(in []byte, whole bool) []byte {
	to := in[:len(in):len(in)]
	ends := int64(len(in)) == c.left && c.head.Final
	keep := c.extra.partial != nil || whole && !ends
	switch {
	case keep:
		x := c.more()
		n := len(x.partial)
		x.partial = slices.Grow(x.partial, len(in))[:n+len(in)]
		to = x.partial[n:]
	case !c.client:
		to = arenas.Get(c.conn.Scheduler()).take(len(in))
	}
	if keep || !c.client {
		frame.Mask(to, in, c.head.Key, c.head.Length-c.left)
	}
	c.left -= int64(len(in))
	c.conn.Discard(len(in))
	c.hear()
	return to
}

// begin begins the next frame of a message, unless one has begun.
func (c *Conn) begin() error {
	if c.left > 0 {
		return c.extra.got
	}
	h, n, err := c.front()
	if err != nil {
		return err
	}
	c.conn.Discard(n)
	c.hear()
	if c.head, c.left = h, h.Length; h.Opcode != frame.Continuation {
		c.kind, c.packed = Type(h.Opcode), h.Compressed
	}
	c.size += h.Length
	return nil
}

// front returns the header of a data frame, which is the next one that is unread, and its size. It takes the control frames
// before it.
func (c *Conn) front() (h frame.Header, n int, err error) {
	for c.extra.got == nil {
		in, err := c.conn.Peek(1)
		for err == nil {
			if h, n, err = frame.Parse(in, !c.client, c.codec != nil); err != nil {
				return h, 0, c.fail(frame.Protocol, err)
			}
			need := n
			if h.Opcode.Control() {
				need += int(h.Length)
			}
			if n > 0 && len(in) >= need {
				break
			}
			in, err = c.conn.Peek(max(need, len(in)+1))
		}
		if err != nil {
			return h, 0, c.lost(err)
		}
		switch {
		case h.Opcode.Control():
			whole := n + int(h.Length)
			payload := arenas.Get(c.conn.Scheduler()).take(int(h.Length))
			frame.Mask(payload, in[n:whole], h.Key, 0)
			c.conn.Discard(whole)
			c.hear()
			c.control(h.Opcode, payload)
		case (h.Opcode == frame.Continuation) != (c.kind != 0):
			return h, 0, c.fail(frame.Protocol, errOrder)
		case h.Length > c.most(h.Compressed || c.packed)-c.size:
			return h, 0, c.fail(frame.TooLarge, errTooLarge)
		default:
			return h, n, nil
		}
	}
	return h, 0, c.extra.got
}

const (
	errOrder    frame.Error = "a message within a message, or a continuation of none"
	errTooLarge frame.Error = "a message is too large"
)

// control takes a control frame.
func (c *Conn) control(o frame.Opcode, payload []byte) {
	switch o {
	case frame.Ping: // the latest is answered (RFC 6455 5.5.3)
		switch {
		case c.phase != open:
		case c.flush() == nil && c.ready():
			c.put(frame.Pong, payload, false)
		default:
			x := c.more()
			x.pong, x.ponged = append(x.pong[:0], payload...), true
		}
	case frame.Close:
		code, reason, err := frame.ParseClose(payload)
		switch {
		case err == frame.ErrText:
			_ = c.fail(frame.NotUTF8, err)
		case err != nil:
			_ = c.fail(frame.Protocol, err)
		default:
			c.more().got = &CloseError{code, string(reason)}
			c.shut(code, "")
		}
	}
}

// hear notes a sign of life.
func (c *Conn) hear() { c.heard, c.sign = c.conn.Scheduler().Now(), unasked }

// wait notes that the action waits for input, if it does.
func (c *Conn) wait(err error) error {
	if c.extra.got == nil {
		c.wants = true
	}
	return err
}

// lost returns err, which is final if it is not an act.Blocked.
func (c *Conn) lost(err error) error {
	if _, is := err.(act.Blocked); is {
		return err
	}
	if err == io.EOF {
		err = &CloseError{Code: frame.Abnormal}
	}
	return c.broken(err)
}

// broken ends the connection without a close frame.
func (c *Conn) broken(err error) error {
	x := c.more()
	c.phase, x.got, x.partial = max(c.phase, closed), err, nil
	c.forget()
	return err
}

// fail closes the connection since the peer has broken the protocol (RFC 6455 7.1.7).
func (c *Conn) fail(code int, err error) error {
	reason := string(err.(frame.Error))
	x := c.more()
	x.got, x.partial = &CloseError{code, reason}, nil
	c.shut(code, reason)
	return c.extra.got
}

// Send sends a message, all of it or nothing. The part that the kernel does not take at once is copied. There is room if the
// message and the queued bytes fit into listener.Limits.High; if nothing is queued there is room for a message of any size.
// Otherwise the error is an act.Blocked, woken when there may be room. It is net.ErrClosed after Close, and when the
// connection has ended; or an error of the system call. Send is for the scheduler's thread: see [Conn.Scheduler].
//
// A message for which there is no room before the peer closes is not sent: the answer to a close frame goes out at once, and
// a peer that does not read could hold it up (RFC 6455 5.5.1).
func (c *Conn) Send(t Type, p []byte) error {
	if t != Text && t != Binary {
		panic("websocket: Send of no type")
	}
	if c.phase != open {
		return net.ErrClosed
	}
	err := c.flush()
	if err == nil && len(p)+frame.MaxHeader > c.conn.Room() {
		err = c.conn.Sent() // nil if nothing is queued: then there is room for any message
	}
	if err != nil {
		return err
	}
	compressed := false
	if c.compresses(p) {
		a := arenas.Get(c.conn.Scheduler())
		var packed []byte
		if packed, compressed = c.codec.Compress(a.space[:0], p); compressed {
			p = packed
		}
		a.keep(packed)
	}
	c.put(frame.Opcode(t), p, compressed)
	return nil
}

// put sends a frame, after everything else. The part that does not fit waits in out.
func (c *Conn) put(o frame.Opcode, p []byte, compressed bool) {
	a := arenas.Get(c.conn.Scheduler())
	if !o.Control() {
		a.sent++
	}
	h := frame.Header{Opcode: o, Final: true, Compressed: compressed, Masked: c.client, Length: int64(len(p))}
	if c.client {
		masks.Get(c.conn.Scheduler()).random(h.Key[:])
	}
	c.write(h.Append(a.head[:0]))
	if c.client {
		c.writeMasked(p, h.Key)
	} else {
		c.write(p)
	}
	if len(c.extra.out) > 0 {
		c.waker.Wake() // its task waits for room
	}
}

func (c *Conn) write(p []byte) {
	n := 0
	if len(c.extra.out) == 0 {
		n, _ = c.conn.Write(p) // the next flush finds an error again
		c.given += int64(n)
	}
	if n < len(p) {
		x := c.more()
		x.out = append(x.out, p[n:]...)
	}
}

// send gives p to the listener.Conn, as far as there is room. Those bytes are not changed any more, and the rest is
// out.
func (c *Conn) send(p []byte) error {
	n, err := c.conn.Internals().WriteShared(p)
	c.given += int64(n)
	switch {
	case n < len(p):
		c.more().out = p[n:]
	case c.extra.out != nil:
		c.more().out = nil
	}
	return err
}

// flush sends the frames that did not fit before.
func (c *Conn) flush() error {
	for {
		if len(c.extra.out) > 0 {
			if err := c.send(c.extra.out); err != nil {
				return err
			}
		}
		switch {
		case c.extra.ponged && c.phase == open:
			if _, err := c.conn.Write(nil); err != nil {
				return err
			}
			x := c.more()
			p := x.pong
			x.pong, x.ponged = nil, false
			c.put(frame.Pong, p, false)
		case c.waits() > 0:
			if err := c.roomToPush(c.pushed); err != nil {
				return err
			}
			m := c.remove(0)
			if !m.opcode.Control() {
				arenas.Get(c.conn.Scheduler()).sent++
			}
			if err := c.send(m.frame(c)); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// ready reports whether a frame that is sent now would not have to wait in out.
func (c *Conn) ready() bool {
	_, err := c.conn.Write(nil)
	return err == nil
}

// Close begins the close handshake, after the messages that were sent. The code is one that RFC 6455 7.4 allows in a close
// frame, and the reason is UTF-8, of which up to 123 bytes are sent. Whatever the peer still sends is thrown away. The
// connection is closed when the peer has answered, or after Options.CloseTimeout. A second Close does nothing. Close panics on a
// code that is not allowed. It is for the scheduler's thread: see [Conn.Scheduler].
func (c *Conn) Close(code int, reason string) {
	if !frame.ValidCode(code) {
		panic(fmt.Sprintf("websocket: Close with code %d, which must not be sent", code))
	}
	if c.phase == open {
		c.shut(code, reason)
		c.waker.Wake()
	}
}

// shut sends the close frame, if none was sent, after the messages that wait. A peer that has closed, or has broken
// the protocol, takes no more of that.
func (c *Conn) shut(code int, reason string) {
	var space [frame.MaxControl]byte
	said := frame.AppendClose(space[:0], code, reason)
	switch _ = c.flush(); {
	case c.extra.got != nil && c.phase != open && c.waits() > 0:
		last := c.waiting(c.waits() - 1)
		c.forget()
		c.pushed = last.Prepared
	case c.phase != open:
		return
	case c.extra.got == nil && c.waits() > 0:
		c.queue(prepare(frame.Close, said), false)
	default:
		c.forget()
		c.put(frame.Close, said, false)
	}
	c.phase, c.more().partial = max(c.phase, closed), nil
}

// Next turns the error of a call into the Directive to return, for a task that goes on by receiving. It is Yield for nil,
// or Wait if there is nothing to receive; Wait for an act.Blocked, which will wake t; Done for a *CloseError, and for
// net.ErrClosed after Close; and any other error fails the task.
func (c *Conn) Next(t *act.Task, err error) act.Directive {
	if c.ends(err) {
		return act.Done
	}
	if err == nil && c.extra.got == nil && c.phase == open {
		c.wants = true
		return c.conn.Next(t, nil)
	}
	return listener.Next(t, err)
}

// ends reports whether err is how c has ended, if that is ordinary.
func (c *Conn) ends(err error) bool {
	if _, is := c.extra.got.(*CloseError); is && errors.Is(err, c.extra.got) {
		return true
	}
	return c.phase != open && errors.Is(err, net.ErrClosed)
}
