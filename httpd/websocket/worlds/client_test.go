package worlds_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	wire "github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// client is a client. One strand says what is planned, another one reads, and further ones send what answers that.
type client struct {
	party.Client
	*server
	n        int
	handles  handling
	handler  *handler // nil: the handshake was not answered
	plan     []saying
	messages []message
	status   int // of the close frame at the end
	reason   string
	behaviour
	compression

	// What it has said.
	queue   []saying
	sending bool
	said    []*saying     // begun
	whole   int           // how many of them are sent
	quiet   bool          // it says nothing any more
	spoken  bool          // everything that was planned
	heard   time.Duration // when it last said a whole frame

	// What it has read.
	in       *bufio.Reader
	switched bool
	got      int           // messages
	gotAt    time.Duration // the last of them
	ponged   int           // the number of the ping in said that was answered last, and one more
	closed   *status
	closedAt time.Duration
}

// status is what a close frame says.
type status struct {
	code   int
	reason string
}

func (s *status) String() string {
	if s == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d %.20q", s.code, s.reason)
}

// run is the script.
func (c *client) run(s *sim.Client) error {
	r := s.Rand()
	c.Client = party.Client{Client: s, World: c.w, Manners: party.Draw(r)}
	c.behave(r)
	c.offers(r)
	c.handles = from(r, echoes, echoes, echoes, inPieces, inPieces, either, deaf)
	if c.handles == deaf && r.IntN(2) == 0 {
		c.way = resets // after unreceived bytes no other end is noticed
		c.draw()
		s.Go(func(*sim.Client) error { // it may be waiting for room
			c.Sleep(c.pause + time.Duration(r.Int64N(int64(5*time.Second))))
			c.Parting = party.Resets
			c.Part()
			c.Sleep(time.Second)
			if h := c.handler; h != nil && !h.over && c.gentle && c.whole > 0 {
				return c.wrong("the handler has not noticed a reset")
			}
			return nil
		})
	} else if c.handles == deaf {
		c.controls(r)
	} else {
		c.draw()
	}
	total := 0
	for _, s := range c.plan {
		total += len(s.raw)
	}
	switch c.way {
	case halfCloses, silent, resets, leaves:
		if r.IntN(2) == 0 {
			c.stop = r.IntN(total + 1)
		}
	}
	c.Fit(total, total)
	c.in = bufio.NewReaderSize(&c.Client, 16+r.IntN(5000))
	s.Go(func(*sim.Client) error { return c.talk() })
	err := c.read()
	c.Over = true
	return err
}

// controls draws what a client says to a handler that does not receive: no message.
func (c *client) controls(r interface{ IntN(int) int }) {
	for range 1 + r.IntN(8) {
		c.control(c.Rand())
	}
	switch c.way {
	case violates:
		c.violate(c.Rand())
	case closes:
		c.close(c.Rand())
	}
}

// prompt reports whether it reads everything at once.
func (c *client) prompt() bool { return c.ReadGap == 0 && c.silence == 0 }

// napped reports whether its handler has left something unread, or does.
func (c *client) napped() bool {
	return c.handler != nil && (c.handler.naps > 0 || c.handler.awake > 0)
}

// hasNotHeard reports whether its handler may have left something unread: whatever comes after that is not a sign of
// life yet.
func (c *client) hasNotHeard() bool {
	h := c.handler
	return c.napped() || h != nil && (h.how == deaf || h.kept != nil)
}

// await waits until f, or until there is no need to.
func (c *client) await(f func() bool) { c.Await(func() bool { return c.quiet || f() }) }

// talk is the strand that says what is planned.
func (c *client) talk() error {
	c.put(saying{what: "handshake", raw: fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: world\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", c.n, c.field)})
	c.await(func() bool { return c.switched || c.eager })
	for _, s := range c.plan {
		if c.closed != nil || c.Over {
			break
		}
		if s.waits {
			c.await(func() bool { return c.closed != nil || !c.sending && c.whole == len(c.said) })
		}
		c.put(s)
		c.await(func() bool { return c.closed != nil || c.saidMessages()-c.got < c.depth || !c.echoes() })
		if s.waits {
			c.await(func() bool { return c.closed != nil || c.answered(s.ping) })
		}
	}
	c.await(func() bool { return !c.sending })
	c.part()
	c.spoken = true
	return nil
}

// saidMessages returns how many messages it has begun to complete.
func (c *client) saidMessages() (n int) {
	for _, s := range c.said {
		n = max(n, s.message)
	}
	return n
}

// answered reports whether a ping was answered, or a later one.
func (c *client) answered(ping []byte) bool {
	return slices.ContainsFunc(c.said[:c.ponged], func(s *saying) bool { return s.ping != nil && bytes.Equal(s.ping, ping) })
}

// put sends something, after what is being sent.
func (c *client) put(s saying) {
	c.queue = append(c.queue, s)
	if c.sending {
		return
	}
	for c.sending = true; len(c.queue) > 0; {
		next := c.queue[0]
		c.queue, c.said = c.queue[1:], append(c.said, &next)
		if !c.send(next.raw) {
			break
		}
		c.whole = len(c.said)
	}
	c.sending = false
}

// send sends bytes, up to where it stops, and reports whether those were all.
func (c *client) send(p []byte) bool {
	if c.quiet || !c.Send(p) {
		c.quiet = c.quiet || c.Cut()
		return false
	}
	c.heard = c.Latest
	if len(c.said) == 1 && c.stop >= 0 { // after the handshake
		c.Stop = c.Sent + c.stop
	}
	return true
}

// part ends what it says.
func (c *client) part() {
	if c.closed == nil && c.way != closes && c.way != violates {
		c.Sleep(c.pause)
	}
	if c.Over || c.Left {
		return
	}
	switch c.way {
	case waits:
		c.waits()
	case silent:
		c.quiet = true
	case halfCloses:
		c.Parting = party.HalfCloses
	case resets:
		c.Parting = party.Resets
	case leaves:
		c.Parting = party.Closes
	}
	c.Part()
}

// waits waits for the server to close. If that has no reason to it closes itself.
func (c *client) waits() {
	for until := c.w.Now() + time.Duration(c.Rand().Int64N(int64(20*time.Second))); c.w.Now() < until || c.order.Given; {
		if c.Over || c.closed != nil || c.Broken() {
			return
		}
		if c.gentle && c.timed && c.prompt() && c.switched && !c.napped() && c.w.Now() > c.due(c.ReadAt)+time.Second {
			c.w.Errorf("%v was not asked for a sign of life for %v\n%s", c.Client, c.w.Now()-c.Latest, c.describe())
			return
		}
		if h := c.handler; c.gentle && c.prompt() && h != nil && h.pusher != nil && h.pusher.waits > 0 && c.got == len(h.sent) &&
			c.w.Now() > max(h.pusher.waits, c.gotAt)+2*time.Second {
			c.w.Errorf("%v has got everything, and a task still waits for room\n%s", c.Client, c.describe())
			return
		}
		c.Sleep(100 * time.Millisecond)
	}
	c.status, c.reason = 1000, "enough"
	c.put(saying{what: "close 1000", status: 1000, raw: frame{true, bye, closing(1000, "enough")}.bytes([4]byte{1, 2, 3, 4})})
}

// due returns when it is asked for a sign of life at the latest. If it has taken something since it should have been asked, the
// server has counted that as one when it saw no answer.
func (c *client) due(took time.Duration) time.Duration {
	if due := c.Latest + ping5; took <= due {
		return due
	}
	return took + pong3 + ping5
}

// answer sends an answer, in a strand of its own: the server may not take it before more was read.
func (c *client) answer(what string, status int, f frame) {
	if c.quiet || c.Left || c.Half || c.Over {
		return
	}
	r := c.Rand().Uint32()
	s := saying{what: what, status: status, raw: f.bytes([4]byte{byte(r), byte(r >> 8), byte(r >> 16), byte(r >> 24)})}
	c.Go(func(*sim.Client) error { c.put(s); return nil })
}

// read is the strand that reads.
func (c *client) read() error {
	if err := c.handshake(); err != nil {
		return c.end(err, true)
	}
	for {
		f, packed, begun, err := readFrame(c.in)
		if errors.Is(err, errRules) {
			return c.wrong("%v", err)
		}
		if err != nil {
			return c.end(err, begun)
		}
		if c.closed != nil {
			return c.wrong("a frame of opcode %d and %d bytes behind the close frame", f.opcode, len(f.payload))
		}
		if err := c.take(f, packed); err != nil {
			return err
		}
	}
}

// handshake reads the answer to the handshake.
func (c *client) handshake() error {
	const want = "HTTP/1.1 101 Switching Protocols\r\n"
	var read []byte
	for !bytes.HasSuffix(read, []byte("\r\n\r\n")) {
		b, err := c.in.ReadByte()
		if err != nil {
			return err
		}
		if read = append(read, b); len(read) > 1000 || len(read) == len(want) && string(read) != want {
			return c.wrong("the answer to the handshake is %q", read)
		}
	}
	if !strings.Contains(string(read), "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") {
		return c.wrong("the answer to the handshake is %q", read)
	}
	if strings.Contains(string(read), "\r\nSec-WebSocket-Extensions: permessage-deflate") != c.packs {
		return c.wrong("the answer to the handshake is %q", read)
	}
	c.switched = true
	return nil
}

// take takes a frame of the server.
func (c *client) take(f frame, packed bool) error {
	switch f.opcode {
	case pong:
		for i := c.ponged; i < len(c.said); i++ {
			if s := c.said[i]; s.ping != nil && bytes.Equal(s.ping, f.payload) {
				c.ponged = i + 1
				return nil
			}
		}
		return c.wrong("a pong that answers no ping, an earlier one, or one again: %q", f.payload)
	case ping:
		return c.pinged(f)
	case bye:
		return c.farewell(f)
	case more:
		return c.wrong("a fragment")
	}
	if !f.final || packed && !c.packs {
		return c.wrong("a fragment, or a compressed message")
	}
	m := message{f.opcode, f.payload}
	if packed {
		if err := c.inflate(&m); err != nil {
			return c.wrong("a message that cannot be inflated: %v", err)
		}
	}
	if c.got >= len(c.handler.sent) {
		return c.wrong("%v that was not sent: it is the %d.", m, c.got)
	}
	want := c.handler.sent[c.got]
	switch {
	case m.opcode != want.opcode || !bytes.Equal(m.data, want.data):
		return c.wrong("%v in place of the %d., %v", m, c.got, want.message)
	case c.gentle && c.prompt() && c.w.Now() > want.at+2*time.Second:
		return c.wrong("%v comes %v after it was sent", m, c.w.Now()-want.at)
	}
	c.got, c.gotAt = c.got+1, c.w.Now()
	c.seen.messages++
	return nil
}

// pinged answers a ping, and checks that there is a reason for it.
func (c *client) pinged(f frame) error {
	if !c.timed {
		return c.wrong("a ping, without a limit of silence")
	}
	if now := c.w.Now(); c.gentle && c.prompt() && !c.hasNotHeard() && c.Latest < now-100*time.Millisecond && now < c.Latest+ping5 && c.whole == len(c.said) && !c.sending {
		return c.wrong("a ping after %v of silence", now-c.Latest)
	}
	if c.way == silent {
		if c.Stop = c.Sent; !c.sending && len(c.queue) == 0 {
			c.quiet = true
		}
	}
	c.answer("the answer to a ping", 0, frame{true, pong, f.payload})
	return nil
}

// farewell takes a close frame, and answers it unless it is an answer itself.
func (c *client) farewell(f frame) error {
	code, reason, err := f.status()
	h := c.handler
	switch {
	case err != nil:
		return c.wrong("%v", err)
	case c.got != len(h.sent) && !c.mayMiss():
		return c.wrong("a close frame in place of %d messages", len(h.sent)-c.got)
	case code == 1001 && c.gentle && c.prompt() && c.order.Given && c.order.Terms.Kind == shutdown.Unbounded && c.w.Now() > c.order.At+c.order.Terms.Announce+c.order.Terms.Spread+5*time.Second && h.closes == nil && !c.farewelled():
		return c.wrong("a close frame %v after the order", c.w.Now()-c.order.At)
	case !c.mayClose(code, reason):
		return c.wrong("a close frame with code %d and reason %q", code, reason)
	}
	c.closed, c.closedAt = &status{code, reason}, c.w.Now()
	if !c.mute && !c.farewelled() {
		c.answer("the answer to a close frame", code, frame{true, bye, closing(code, "")})
	}
	return nil
}

// farewelled reports whether it has begun to send a close frame.
func (c *client) farewelled() bool {
	for _, s := range c.said {
		if s.status != 0 {
			return true
		}
	}
	return false
}

// mayMiss reports whether what it has not got are notices that were waiting when it closed.
func (c *client) mayMiss() bool {
	h := c.handler
	missing := h.sent[c.got:]
	if len(missing) > c.backlog || slices.ContainsFunc(missing, func(s sending) bool { return !s.pushed }) {
		return false
	}
	return c.Half || c.farewelled() || c.violated()
}

// mayClose reports whether there is a reason for a close frame of the server.
func (c *client) mayClose(code int, reason string) bool {
	h := c.handler
	var ended *status
	if h.ended != nil {
		ended = h.ended.status
	}
	switch {
	case h.closes != nil && h.closes.code == code && (h.closes.reason == reason || len(h.closes.reason) > 123 && strings.HasPrefix(h.closes.reason, reason)):
		return true
	case code == 1001 && reason == "" && c.order.Given:
		return true
	case ended != nil && ended.code == 1006:
		return false
	}
	for _, s := range c.said {
		switch {
		case s.breaks != 0:
			return code == s.breaks && reason != ""
		case s.status != 0:
			return code == s.status && reason == ""
		}
	}
	return false
}

// wrong is an error that nothing excuses.
func (c *client) wrong(format string, args ...any) error {
	return fmt.Errorf("%s\n%s", fmt.Sprintf(format, args...), c.describe())
}

// end is called when the connection has ended. It returns nil, or an error that a fault has to explain, or one that nothing
// does.
func (c *client) end(err error, begun bool) error {
	if _, unexpected := err.(interface{ Timeout() bool }); !unexpected && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err // of wrong
	}
	h := c.handler
	orderly := err == io.EOF && !begun
	late := c.gentle && c.prompt()
	switch now := c.w.Now(); {
	case c.Left, c.order.MayCut(), h != nil && h.panics:
		return nil
	case h == nil && (c.order.Given || c.Half): // it is closed as an idle connection of HTTP
		return nil
	case orderly && c.closed != nil:
		since := max(c.closedAt, c.Latest)
		switch {
		case !late || !c.timed:
		case !c.mute && !c.quiet && c.whole == len(c.said) && now > since+time.Second:
			return c.wrong("the connection ends %v after the close handshake", now-since)
		case c.mute && !c.farewelled() && !c.violated() && !c.Half && !c.order.Given && h.ended == nil && now < h.overAt+close2:
			return c.wrong("the connection ends %v after a close frame that was not answered", now-c.closedAt)
		case c.mute && now > since+close2+time.Second:
			return c.wrong("the connection ends %v after a close frame that was not answered", now-c.closedAt)
		}
		c.seen.orderly++
		return nil
	case orderly && c.Half && (c.got == len(h.sent) || c.mayMiss()):
		c.seen.orderly++
		return nil
	case c.timed && c.quiet && c.closed == nil:
		if late && (now < c.heard+ping5+pong3 || !c.napped() && now > c.due(c.gotAt)+pong3+time.Second) {
			return c.wrong("it is cut off after %v of silence", now-c.Latest)
		}
		return nil
	case c.timed && c.silence > ping5+pong3, c.timed && !late && h != nil && h.over && now >= h.overAt+close2:
		return nil
	case !c.gentle: // a reset explains it, or the world fails
		return fmt.Errorf("%w\n%s", err, c.describe())
	}
	return c.wrong("the connection has ended: %v, within a frame: %v", err, begun)
}

// describe is for the report of a failure.
func (c *client) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the client %+v, handled by %v; it has said %d frames, %d of them whole", c.behaviour, c.handles, len(c.said), c.whole)
	for i, s := range c.said {
		if i > len(c.said)-8 {
			fmt.Fprintf(&b, "; %s", s.what)
		}
	}
	fmt.Fprintf(&b, "; it spoke at %v, has got %d messages, closed %v, left %v, half %v, quiet %v", c.Latest, c.got, c.closed, c.Left, c.Half, c.quiet)
	if h := c.handler; h != nil {
		fmt.Fprintf(&b, "; the handler has got %d, has sent %d, ends by %v after %d, has closed %v, ended %+v, ordered %v", h.got, len(h.sent), h.ending, h.after,
			h.closes, h.ended, h.ordered)
	}
	return b.String()
}

// The opcodes of RFC 6455 5.2, and bits beside them.
const (
	more   = 0
	text   = 1
	binry  = 2
	bye    = 8
	ping   = 9
	pong   = 10
	final  = 0x80
	masked = 0x80
)

// frame is a frame. The headers, masks and close frames of package frame have tables of the RFC's examples, and libraries that talk
// to it; here it is the other side that is looked at.
type frame struct {
	final   bool
	opcode  byte
	payload []byte
}

// bytes returns the frame of a client.
func (f frame) bytes(key [4]byte) []byte {
	p := header(f.final, f.opcode, key, len(f.payload))
	begin := len(p)
	p = append(p, f.payload...)
	wire.Mask(p[begin:], p[begin:], key, 0)
	return p
}

// header returns the header of a frame of a client.
func header(final bool, opcode byte, key [4]byte, length int) []byte {
	return wire.Header{Final: final, Opcode: wire.Opcode(opcode), Masked: true, Key: key, Length: int64(length)}.Append(nil)
}

// errRules is what a server must not send.
var errRules = errors.New("the server breaks the rules")

// reserved1 is the bit of a compressed message (RFC 7692 6).
const reserved1 = 0x40

// readFrame reads the frame of a server. packed reports whether it begins a compressed message, and begun whether the
// connection has ended within it.
func readFrame(r *bufio.Reader) (f frame, packed, begun bool, err error) {
	var head []byte
	for {
		h, n, err := wire.Parse(head, false, true)
		switch {
		case err != nil:
			return f, false, false, fmt.Errorf("%w: %w", errRules, err)
		case n > 0:
			f = frame{h.Final, byte(h.Opcode), make([]byte, min(h.Length, 1<<24))} // no server here sends as much
			_, err := io.ReadFull(r, f.payload)
			return f, h.Compressed, err != nil, err
		}
		b, err := r.ReadByte()
		if err != nil {
			return f, false, len(head) > 0, err
		}
		head = append(head, b)
	}
}

// status returns what a close frame says. Without a code that is 1005.
func (f frame) status() (code int, reason string, err error) {
	code, said, err := wire.ParseClose(f.payload)
	if err != nil {
		err = fmt.Errorf("%w: %w", errRules, err)
	}
	return code, string(said), err
}

// closing returns the payload of a close frame.
func closing(code int, reason string) []byte { return wire.AppendClose(nil, code, reason) }
