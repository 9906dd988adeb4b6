package worlds_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/internal/testing/party"
)

// message is a message, of either side.
type message struct {
	opcode byte
	data   []byte
}

func (m message) String() string {
	return fmt.Sprintf("a message of %d bytes, opcode %d", len(m.data), m.opcode)
}

// saying is a frame that a client sends, or what it sends in place of one.
type saying struct {
	raw     []byte
	what    string
	ping    []byte // the payload, if it is one
	message int    // how many messages are complete with it
	status  int    // of a close frame
	breaks  int    // the rules, and the server must answer with this code
	waits   bool   // for the pong
}

// parting is what a client does when it has said everything.
type parting string

const (
	closes     parting = "closes"      // with a close frame
	waits      parting = "waits"       // for the server to close, and closes after a while
	violates   parting = "violates"    // the rules
	halfCloses parting = "half-closes" // its side of the connection
	silent     parting = "is silent"   // says nothing, and answers no ping
	resets     parting = "resets"      // the connection
	leaves     parting = "leaves"      // closes the connection
)

// words are the source of all texts: characters of one to four bytes. A byte in the wrong place is noticed.
var words = func() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	runes := []rune("ab €κσ𝄞\u07ff\u0800\uffff\U0010ffff")
	for b.Len() < 1<<18 {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return []byte(b.String())
}()

// content returns n bytes, or up to three more for a text.
func content(r *rand.Rand, opcode byte, n int) message {
	if opcode == binry {
		return message{binry, party.Content(r, n)}
	}
	from := r.IntN(len(words) - n - 8)
	for !utf8.RuneStart(words[from]) {
		from++
	}
	to := from + n
	for !utf8.RuneStart(words[to]) {
		to++
	}
	return message{text, words[from:to:to]}
}

// amount draws a length: a magnitude, or a bound.
func (h *server) amount(r *rand.Rand) int {
	n := r.IntN(1 << r.IntN(15))
	switch r.IntN(20) {
	case 0:
		n = 124 + r.IntN(4)
	case 1:
		n = 65534 + r.IntN(4)
	case 2:
		n = min(h.limit, 100_000) // texts may have three more
	case 3:
		n = 0
	}
	return min(n, h.limit-3)
}

func from[T any](r *rand.Rand, values ...T) T { return party.From(r, values...) }

// draw draws what a client says.
func (c *client) draw() {
	r := c.Rand()
	for range from(r, 0, 1, 4, 4, 12) {
		if r.IntN(3) == 0 {
			c.control(r)
		}
		m := content(r, from[byte](r, text, binry), c.amount(r))
		if c.limit < 100_000 && r.IntN(10) == 0 {
			m = content(r, binry, c.limit) // as large as may be
		}
		c.messages = append(c.messages, m)
		if c.packs && r.IntN(3) > 0 {
			c.fragments(r, message{m.opcode, c.squeeze(m.data)}, true)
		} else {
			c.fragments(r, m, false)
		}
		c.plan[len(c.plan)-1].message = len(c.messages)
	}
	for range from(r, 0, 0, 1, 3) {
		c.control(r)
	}
	switch {
	case c.way == violates:
		c.violate(r)
	case c.way == closes:
		c.close(r)
	}
}

// fragments adds a message in frames, with control frames between them.
func (c *client) fragments(r *rand.Rand, m message, packed bool) {
	opcode, data := m.opcode, m.data
	for largest := 1 << r.IntN(18); ; opcode = more {
		n := len(data)
		if r.IntN(3) > 0 {
			n = r.IntN(min(largest, n) + 1)
			n = max(n, len(m.data)/20)
		}
		n = min(n, len(data))
		last := n == len(data) && r.IntN(3) > 0
		c.say(r, saying{what: fmt.Sprintf("%d bytes of opcode %d, last %v", n, opcode, last)}, frame{last, opcode, data[:n]})
		if packed && opcode != more {
			c.pack()
		}
		if data = data[n:]; last {
			return
		}
		if r.IntN(4) == 0 {
			c.control(r)
		}
	}
}

// say adds a frame.
func (c *client) say(r *rand.Rand, s saying, f frame) {
	key := [4]byte{}
	if r.IntN(8) > 0 {
		key = [4]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}
	}
	s.raw = f.bytes(key)
	c.plan = append(c.plan, s)
}

// control adds pings, or a pong that nobody has asked for.
func (c *client) control(r *rand.Rand) {
	if r.IntN(4) == 0 {
		c.say(r, saying{what: "pong"}, frame{true, pong, content(r, binry, r.IntN(126)).data})
		return
	}
	for range from(r, 1, 1, 5) {
		p := append([]byte{}, content(r, binry, from(r, 2, 8, 20, 125, 2+r.IntN(124))).data...)
		p[0], p[1] = byte(len(c.plan)>>8), byte(len(c.plan)) // no two are the same
		if len(c.plan) == 0 {
			p = []byte{}
		}
		c.say(r, saying{what: "ping", ping: p}, frame{true, ping, p})
	}
	c.plan[len(c.plan)-1].waits = r.IntN(2) == 0 && c.handles != deaf
}

// close adds a close frame.
func (c *client) close(r *rand.Rand) {
	c.status, c.reason = from(r, 1000, 1000, 1001, 1003, 1005, 1011, 3000, 4999), ""
	if c.status != 1005 && r.IntN(2) == 0 {
		c.reason = string(content(r, text, r.IntN(121)).data)
	}
	c.say(r, saying{what: fmt.Sprint("close ", c.status), status: c.status}, frame{true, bye, closing(c.status, c.reason)})
	if r.IntN(8) == 0 { // what follows it means nothing
		c.say(r, saying{what: "behind the close"}, frame{true, from[byte](r, text, ping, bye), []byte("xx")})
	}
}

// violate adds what breaks the rules.
func (c *client) violate(r *rand.Rand) {
	one := func(name string, code int, f frame) { c.say(r, saying{what: name, breaks: code}, f) }
	raw := func(name string, p ...byte) { c.plan = append(c.plan, saying{what: name, breaks: 1002, raw: p}) }
	if c.packs && c.handles != deaf && r.IntN(2) == 0 {
		c.violateCompression(r)
		return
	}
	bits := 3
	if c.packs {
		bits = 2
	}
	within := c.handles != deaf && r.IntN(2) == 0 // a message
	if within {
		c.say(r, saying{what: "a beginning"}, frame{false, text, content(r, text, r.IntN(100)).data})
	}
	kinds := 11
	if c.handles != deaf { // else what a message has is not looked at
		kinds = 15
	}
	switch r.IntN(kinds) {
	case 0:
		p := content(r, text, 1+r.IntN(10)).data
		raw("no mask", append([]byte{final | from[byte](r, ping, text), byte(len(p))}, p...)...)
	case 1:
		raw("a reserved bit", final|0x10<<r.IntN(bits)|from[byte](r, more, text, binry, ping, bye), masked)
	case 2:
		raw("an unknown opcode", final|from[byte](r, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15), masked)
	case 3:
		raw("half a control frame", from[byte](r, ping, pong, bye), masked)
	case 4:
		raw("a long control frame", final|from[byte](r, ping, pong, bye), masked|126)
	case 5:
		if within {
			one("a message within a message", 1002, frame{true, text, []byte("x")})
		} else {
			one("more of nothing", 1002, frame{true, more, []byte("x")})
		}
	case 6:
		first := from[byte](r, text, binry)
		if within {
			first = more
		}
		raw("a length that is too long", from(r, []byte{first, masked | 126, 0, 125}, []byte{first, masked | 127, 0, 0, 0, 0, 0, 0, 255, 255},
			[]byte{first, masked | 127, 128, 0, 0, 0, 0, 0, 0, 0})...)
	case 7:
		one("a code that must not be sent", 1002, frame{true, bye, closing(from(r, 0, 999, 1004, 1006, 1015, 2999, 5000), "")})
	case 8:
		one("half a code", 1002, frame{true, bye, []byte{3}})
	case 9:
		one("a reason that is no text", 1007, frame{true, bye, closing(1000, from(r, "\xff", "\xe2\x82", "\xed\xa0\x80"))})
	case 10:
		c.large(r, within)
	case 11, 12, 13:
		c.noText(r, within)
	default:
		c.largeInAll(r, within)
	}
	for range r.IntN(3) { // nobody listens any more
		c.say(r, saying{what: "behind it"}, frame{true, from[byte](r, text, ping, bye), []byte("xx")})
	}
}

// large adds the beginning of a message that is too large.
func (c *client) large(r *rand.Rand, within bool) {
	opcode := from[byte](r, text, binry)
	if within {
		opcode = more
	}
	p := header(false, opcode, [4]byte{1, 2, 3, 4}, c.limit+1+r.IntN(1<<r.IntN(30)))
	c.plan = append(c.plan, saying{what: "a frame that is too large", breaks: 1009, raw: append(p, party.Content(r, r.IntN(100))...)})
}

// largeInAll adds a message that is too large, of frames that are not. Its beginning, a text of at most 103 bytes, may have
// been sent.
func (c *client) largeInAll(r *rand.Rand, within bool) {
	opcode, left := byte(binry), c.limit
	if within {
		opcode, left = more, c.limit-103
	}
	if c.limit > 100_000 { // that takes too long
		c.large(r, within)
		return
	}
	for largest := 1 + c.limit/(2+r.IntN(20)); left > 0; opcode = more {
		p := content(r, text, r.IntN(largest)).data
		if len(p) >= left {
			break
		}
		left -= len(p)
		c.say(r, saying{what: fmt.Sprintf("%d bytes of too many", len(p))}, frame{false, opcode, p})
	}
	p := header(false, opcode, [4]byte{1, 2, 3, 4}, left+104+r.IntN(10))
	c.plan = append(c.plan, saying{what: "a message that is too large", breaks: 1009, raw: p})
}

// noText adds a text that is none. Nothing follows that would complete a frame or a message: it is noticed before.
func (c *client) noText(r *rand.Rand, within bool) {
	opcode := byte(text)
	if within {
		opcode = more
	}
	good := content(r, text, r.IntN(100)).data
	bad := from(r, "\x80", "\xc0\x80", "\xe0\x9f", "\xed\xa0", "\xf0\x80", "\xf4\x90", "\xff")
	switch r.IntN(3) {
	case 0: // at once
		c.say(r, saying{what: "no text", breaks: 1007}, frame{r.IntN(2) == 0, opcode, append(append([]byte{}, good...), bad...)})
	case 1: // in two fragments
		bad = from(r, "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90", "\xe2\x82\xc0", "\xf0\x9d\x84\x41", "\xc3\xc3")
		at := 1 + r.IntN(len(bad)-1)
		c.say(r, saying{what: "almost a text"}, frame{false, opcode, append(append([]byte{}, good...), bad[:at]...)})
		if r.IntN(2) == 0 {
			c.control(r)
		}
		c.say(r, saying{what: "no text", breaks: 1007}, frame{r.IntN(2) == 0, more, []byte(bad[at:])})
	case 2: // half a character at the end
		c.say(r, saying{what: "half a character", breaks: 1007}, frame{true, opcode, append(append([]byte{}, good...), from(r, "\xe2\x82", "\xf0\x9d\x84", "\xc3")...)})
	}
}

// behaviour is how a client behaves beside its Manners.
type behaviour struct {
	way     parting
	depth   int           // messages that are not answered, at most
	stop    int           // how many bytes it says after the handshake; -1: all
	silence time.Duration // how long it does not read
	eager   bool          // it does not wait for the answer to its handshake
	mute    bool          // it does not answer a close frame
	pause   time.Duration // before it parts
}

func (c *client) behave(r *rand.Rand) {
	c.behaviour = behaviour{depth: from(r, 1, 3, 100, 100), stop: -1, eager: r.IntN(4) == 0, mute: c.timed && r.IntN(4) == 0,
		way: from(r, closes, closes, closes, waits, waits, violates, violates, halfCloses, silent, resets, leaves)}
	if c.way == silent && !c.timed {
		c.way = closes
	}
	if r.IntN(8) == 0 {
		c.Manners, c.silence = party.Prompt, party.Below(r, 20*time.Second)
		c.Deaf = c.silence
	}
	if r.IntN(2) == 0 {
		c.pause = party.Below(r, from(r, time.Millisecond, time.Second, 30*time.Second))
	}
}

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
