package httpd_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// scene is a conversation over HTTP/2. What a client says are frames and other events, with "; " between them:
//
//	GET 1 /a x=y            a request with the usual pseudo-fields; so are HEAD and POST, which has no END
//	HEADERS 1 END :path=/   with nothing but these fields. PART is without END_HEADERS; PAD=3 is padding; DEP=5 a priority;
//	CONT 1 HEX=8286         HEX are bytes of the block. "Strings of Go" can stand for names and values
//	DATA 1 "abc" END PAD=3  or as many bytes as a number says
//	RST 1 CANCEL  SETTINGS 4=100  SETTINGS ACK  PING x  PING x ACK  GOAWAY  WINDOW 1 5  PRIORITY 1 DEP=3  UPDATE 1 u=0
//	FRAME 9 0 1 "abc"       any frame: type, flags, stream, payload
//	BYTES "abc"
//
//	with MaxBody=5 log      settings of the server, see player.with
//	raw                     the preface and SETTINGS are not sent first
//	all  order              SETTINGS and WINDOW_UPDATE are heard as well, or in which order the DATA frames of streams come
//	room 9  take 9          the client has room for 9 bytes, or takes 9 more
//	pass 5s  eof  reset     time passes; the client ends its side, or resets the connection
//	stop 8s                 a shutdown with that Spread
//	= 1 200                 what was heard up to here
//
// What it hears are first the frames of the connection, but for SETTINGS and WINDOW_UPDATE, and then the streams: status, fields,
// content, trailers, "RST CODE", or "…" if a stream has no end. "!" is an orderly end of the connection, and "!!" a cut.
// The outcome has to be the same however the bytes are cut.
type scene struct {
	says, hears string
	seen        string // by the handler, and what else it is "with"
}

// scenes plays those of each section.
func scenes(t *testing.T, sections map[string][]scene) {
	for section, all := range sections {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			for _, s := range all {
				s.run(t)
			}
		})
	}
}

// run plays a scene whole, byte by byte, and cut at each place.
func (s scene) run(t *testing.T) {
	t.Run("", s.cut)
}

func (s scene) cut(t *testing.T) {
	n, heard := s.play(t, 0)
	step := 1 + n*n/100_000 + heard/1000
	if race.Enabled {
		step = max(step, n/20) // go test ./... has them all without the detector
	}
	if n < 1000 && !t.Failed() {
		s.play(t, -1)
	}
	for at := 1; at < n && !t.Failed(); at += step {
		s.play(t, at)
	}
}

// play plays a scene cut at a place, or at all if that is -1, and returns how many bytes were said and heard.
func (s scene) play(t *testing.T, at int) (said, heard int) {
	t.Helper()
	p := newPlayer(t)
	p.at = at
	p.play(s.says)
	if c := p.client; c.state == open && c.end == nil && c.room > 1000 {
		p.say(p.frame("PING behind"))
		p.flush()
		require.True(t, p.answered || p.client.state != open, "%s", s.says)
		p.answered = false
	}
	hears, seen := p.story(), p.seen()
	if hears != s.hears || seen != s.seen {
		t.Errorf("%.300s, cut at %d:\n%s for %s\n%s for %s, should be", s.says, at, hears, seen, s.hears, s.seen)
	}
	p.client.endInput()
	_ = p.d.s.Close()
	return p.said, p.heard
}

// player is the client of a scene.
type player struct {
	t        testing.TB
	d        *driver
	web      httpd.Server
	recorder recorder
	client   *client
	at       int    // where what it says is cut; -1: everywhere; 0: nowhere
	said     int    // bytes
	pending  string // bytes that are not said yet

	raw, all, ordered bool
	unknown           bool // what it says is not made by frame, so windows and methods are not known
	window            uint32
	gives             map[uint32]int // windows for the server's DATA
	sent              int            // DATA
	credit            int            // that the server has given for it
	asks              map[uint32]bool
	heard             int // bytes
	over              []string
	streams           map[uint32]*heardStream
	hpack             *hpack.Decoder
	fields            []hpack.HeaderField
	frames            int
	acks              int
	answered          bool
	order             []string // the streams of all frames with DATA
}

// heardStream is what a client hears on a stream.
type heardStream struct {
	text   []string
	body   string
	length string // Content-Length
	status string
	data   int
	over   bool
	reset  bool
}

func newPlayer(t testing.TB) *player {
	p := &player{t: t, d: newDriver(t), window: http2.DefaultWindow, gives: map[uint32]int{0: http2.DefaultWindow},
		streams: map[uint32]*heardStream{}, asks: map[uint32]bool{}}
	p.hpack = hpack.NewDecoder(4096, func(f hpack.HeaderField) { p.fields = append(p.fields, f) })
	p.web.Handler = p.handle
	return p
}

// handle is a handler for scenes: its answer depends on the path.
func (p *player) handle(w *httpd.Response, r *httpd.Request) act.Action {
	require.Equal(p.t, string(r.Path()) == "/old", r.Proto() != "HTTP/2.0")
	switch string(r.Path()) {
	case "/do": // these steps
		return does(p.t, strings.NewReplacer("+", " ", ",", ", ").Replace(string(r.Query())))(w, r)
	case "/wait":
		return waiting{}
	case "/echo":
		return echo(w, r)
	case "/switch":
		return upgrading(w, r)
	case "/1000", "/40000": // milliseconds
		return late(w, r)
	case "/small":
		return httpd.WithBody(4, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })(w, r)
	}
	return p.recorder.serve(w, r)
}

// with is a setting of the server: a number or a time, or one of the events that are seen.
func (p *player) with(setting string) {
	name, value, _ := strings.Cut(setting, "=")
	n, _ := strconv.Atoi(value)
	d, _ := time.ParseDuration(value)
	k := &p.recorder
	switch name {
	case "MaxBody":
		p.web.MaxBody = int64(n)
	case "MaxHead":
		p.web.MaxHead = n
	case "MaxFields":
		p.web.MaxFields = n
	case "MaxStreams":
		p.web.MaxStreams = n
	case "Body":
		p.web.Timeouts.Body = d
	case "Head":
		p.web.Timeouts.Head = d
	case "Idle":
		p.web.Timeouts.Idle = d
	case "Write":
		p.web.Timeouts.Write = d
	case "log":
		p.web.OnResponse = func(w *httpd.Response, r *httpd.Request) {
			k.entries = append(k.entries, fmt.Sprintf("%d/%d %s %s", w.Status(), w.Written(), r.Method(), r.Target()))
		}
	case "states":
		p.web.OnState = func(_ *listener.Conn, s httpd.ConnState) {
			k.entries = append(k.entries, [...]string{"new", "active", "idle", "hijacked", "closed"}[s])
		}
	default:
		require.Fail(p.t, "no setting: "+setting)
	}
}

func (p *player) play(says string) {
	for item := range strings.SplitSeq(says, "; ") {
		if item == "" || item[0] >= 'A' && item[0] <= 'Z' {
			if p.dial(); item != "" {
				p.say(p.frame(item))
			}
			continue
		}
		verb, rest, _ := strings.Cut(item, " ")
		n, _ := strconv.Atoi(rest)
		d, _ := time.ParseDuration(rest)
		switch verb {
		case "with":
			for setting := range strings.FieldsSeq(rest) {
				p.with(setting)
			}
			continue
		case "raw":
			p.raw = true
			continue
		case "all":
			p.all = true
			continue
		case "order":
			p.ordered = true
			continue
		}
		p.dial()
		p.flush()
		switch verb {
		case "room":
			p.client.room = n
		case "take":
			p.client.take(n)
			p.d.settle()
		case "pass":
			p.d.pass(d)
		case "eof":
			p.client.endInput()
		case "reset":
			p.client.finish(syscall.ECONNRESET)
			p.d.settle()
		case "stop":
			p.d.s.Shutdown(shutdown.Policy{Time: time.Minute, Spread: d})
			p.d.settle()
		case "=":
			p.listen()
			require.Equal(p.t, rest, p.story(), "in %.300s", says)
		default:
			require.Fail(p.t, "no event: "+item)
		}
		p.check()
	}
	p.dial()
	p.flush()
}

func (p *player) dial() {
	if p.client == nil {
		p.client = p.d.dial(&p.web, listener.Limits{})
		if !p.raw {
			p.say(http2.Preface + p.frame("SETTINGS"))
		}
	}
}

func (p *player) say(bytes string) { p.pending += bytes }

// flush says what is pending, in the pieces that the scene wants.
func (p *player) flush() {
	pieces := []string{p.pending}
	switch n := p.at - p.said; {
	case p.at < 0:
		pieces = strings.Split(p.pending, "")
	case 0 < n && n < len(p.pending):
		pieces = []string{p.pending[:n], p.pending[n:]}
	}
	p.said, p.pending = p.said+len(p.pending), ""
	for _, piece := range pieces {
		p.client.send(piece)
		p.check()
	}
	p.listen()
}

// check wants the windows that were given to be right, at any time.
func (p *player) check() {
	if x, is := p.client.host.action.(interface{ Check() error }); is {
		require.NoError(p.t, x.Check())
	}
}

// seen is what the handler has seen, and how many tasks have failed.
func (p *player) seen() string {
	all := p.recorder.entries
	for range p.d.logs.Len() {
		all = append(all, "failure")
	}
	return strings.Join(all, "; ")
}

var usual = map[string]string{"GET": "END", "HEAD": "END", "POST": ""}

// frame returns the bytes of a frame.
func (p *player) frame(item string) string {
	words := words(item)
	verb, rest := words[0], words[1:]
	take := func() (word string) {
		if len(rest) > 0 {
			word, rest = rest[0], rest[1:]
		}
		return word
	}
	number := func() uint32 {
		n, _ := strconv.ParseUint(take(), 10, 32)
		return uint32(n)
	}
	h, block := http2.Header{}, []byte(nil)
	if end, is := usual[verb]; is {
		h.Type, h.Stream = http2.Headers, number()
		fields := []string{":method=" + verb, ":scheme=http", ":authority=a", ":path=" + take()}
		if rest = append(fields, rest...); end != "" {
			rest = append(rest, end)
		}
	}
	switch verb {
	case "GET", "HEAD", "POST":
		h.Flags = http2.EndHeaders
		p.asks[h.Stream] = verb == "HEAD"
		p.gives[h.Stream] += int(p.window)
	case "HEADERS":
		h.Type, h.Flags, h.Stream = http2.Headers, http2.EndHeaders, number()
		p.gives[h.Stream] += int(p.window)
	case "CONT":
		h.Type, h.Flags, h.Stream = http2.Continuation, http2.EndHeaders, number()
	case "DATA":
		h.Stream = number()
		block = payload(take())
	case "RST":
		h.Type, h.Stream = http2.RSTStream, number()
		block = binary.BigEndian.AppendUint32(nil, uint32(code(take())))
	case "SETTINGS":
		h.Type = http2.Settings
		for len(rest) > 0 && rest[0] != "ACK" {
			id, value, _ := strings.Cut(take(), "=")
			k, _ := strconv.Atoi(id)
			n, _ := strconv.ParseUint(value, 10, 32)
			block = binary.BigEndian.AppendUint16(block, uint16(k))
			block = binary.BigEndian.AppendUint32(block, uint32(n))
			if k == 4 {
				p.window = uint32(max(n, uint64(p.window)))
				for id := range p.streams {
					p.gives[id] += int(n)
				}
			}
		}
	case "PING":
		h.Type = http2.Ping
		block = append([]byte(take()), make([]byte, 8)...)[:8]
	case "GOAWAY":
		h.Type, block = http2.GoAway, make([]byte, 8)
	case "WINDOW":
		h.Type, h.Stream = http2.WindowUpdate, number()
		n := number()
		block = binary.BigEndian.AppendUint32(nil, n)
		p.gives[h.Stream] += int(n)
	case "PRIORITY":
		h.Type, h.Stream = http2.Priority, number()
	case "UPDATE":
		h.Type = http2.PriorityUpdate
		block = binary.BigEndian.AppendUint32(nil, number())
		block = append(block, take()...)
	case "FRAME":
		h.Type, h.Flags, h.Stream = http2.Type(number()), http2.Flags(number()), number()
		block = payload(take())
	case "BYTES":
		return string(payload(take()))
	default:
		require.Fail(p.t, "no frame: "+item)
	}
	before, padding := []byte(nil), 0
	for _, word := range rest {
		name, value, _ := cutField(word)
		switch name {
		case "":
			require.NotEmpty(p.t, word)
			block = appendString(appendString(append(block, 0), name), value)
		case "END", "ACK":
			h.Flags |= http2.EndStream
		case "PART":
			h.Flags &^= http2.EndHeaders
		case "PAD":
			padding, _ = strconv.Atoi(value)
			h.Flags |= http2.Padded
		case "DEP":
			n, _ := strconv.Atoi(value)
			before = append(binary.BigEndian.AppendUint32(nil, uint32(n)), 15)
			h.Flags |= http2.HasPriority
		case "HEX":
			more, err := hex.DecodeString(value)
			require.NoError(p.t, err)
			block = append(block, more...)
		default:
			block = appendString(appendString(append(block, 0), name), value)
		}
	}
	if h.Type == http2.Priority {
		h.Flags = 0
	}
	if h.Flags.Has(http2.Padded) && h.Type <= http2.Headers && verb != "FRAME" {
		before = append([]byte{byte(padding)}, before...)
		block = append(block, make([]byte, padding)...)
	}
	block = append(before, block...)
	h.Length = uint32(len(block))
	if h.Type == http2.Data {
		p.sent += len(block)
	}
	return string(append(h.Append(nil), block...))
}

// appendString appends a string of HPACK, without Huffman's code (RFC 7541 5.2).
func appendString(to []byte, s string) []byte {
	if n := len(s) - 0x7F; n >= 0 {
		to = append(to, 0x7F)
		for ; n >= 0x80; n >>= 7 {
			to = append(to, byte(n)|0x80)
		}
		return append(append(to, byte(n)), s...)
	}
	return append(append(to, byte(len(s))), s...)
}

// payload is a string, or as many bytes as a number says.
func payload(word string) []byte {
	if n, err := strconv.Atoi(word); err == nil {
		return []byte(strings.Repeat("z", n))
	}
	return []byte(unquote(word))
}

func unquote(word string) string {
	if s, err := strconv.Unquote(word); err == nil {
		return s
	}
	return word
}

// words splits an item at the blanks that are in no string.
func words(item string) (all []string) {
	for item = strings.TrimLeft(item, " "); item != ""; item = strings.TrimLeft(item, " ") {
		n := 0
		for n < len(item) && item[n] != ' ' {
			if quoted, err := strconv.QuotedPrefix(item[n:]); err == nil && item[n] == '"' {
				n += len(quoted)
			} else {
				n++
			}
		}
		all, item = append(all, item[:n]), item[n:]
	}
	return all
}

// cutField splits a field at its first "=" that is in no string.
func cutField(word string) (name, value string, found bool) {
	if quoted, err := strconv.QuotedPrefix(word); err == nil && word[0] == '"' {
		return unquote(quoted), unquote(strings.TrimPrefix(word[len(quoted):], "=")), true
	}
	name, value, found = strings.Cut(word, "=")
	return name, unquote(value), found
}

func code(name string) http2.Code {
	for c := range http2.Code(14) {
		if c.String() == name {
			return c
		}
	}
	return 99
}

// listen reads what has come, as a strict client does.
func (p *player) listen() {
	for {
		in := p.client.out[p.heard:]
		if len(in) < http2.HeaderLen {
			return
		}
		h := http2.ParseHeader(in)
		if p.frames == 0 && string(in[:5]) == "HTTP/" {
			p.over = append(p.over, strings.Fields(string(in))[:2]...)
			p.heard = len(p.client.out)
			return
		}
		n := http2.HeaderLen + int(h.Length)
		if len(in) < n {
			return
		}
		require.LessOrEqual(p.t, h.Length, uint32(http2.MaxFrame))
		require.True(p.t, p.frames > 0 || h.Type == http2.Settings && !h.Flags.Has(http2.Ack), "SETTINGS come first")
		p.heard += n
		p.frames++
		p.hear(h, in[http2.HeaderLen:n])
	}
}

func (p *player) tell(format string, args ...any) {
	p.over = append(p.over, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// hear reads a frame.
func (p *player) hear(h http2.Header, payload []byte) {
	if h.Stream != 0 && h.Type != http2.WindowUpdate {
		p.hearStream(h, payload)
		return
	}
	switch h.Type {
	case http2.Settings:
		if h.Flags.Has(http2.Ack) {
			if p.acks++; p.acks > 1 || p.raw {
				p.tell("ACK")
			}
			return
		}
		require.Equal(p.t, 1, p.frames)
		text := "SETTINGS"
		for ; len(payload) > 0; payload = payload[6:] {
			text += fmt.Sprintf(" %d=%d", binary.BigEndian.Uint16(payload), binary.BigEndian.Uint32(payload[2:]))
		}
		if p.all {
			p.tell("%s", text)
		}
	case http2.Ping:
		text := strings.TrimRight(string(payload), "\x00")
		if p.answered = h.Flags.Has(http2.Ack) && text == "behind"; p.answered {
			return
		}
		p.tell("%s %s", map[bool]string{false: "PING", true: "PONG"}[h.Flags.Has(http2.Ack)], text)
	case http2.GoAway:
		p.tell("GOAWAY %d %v", binary.BigEndian.Uint32(payload), http2.Code(binary.BigEndian.Uint32(payload[4:])))
	case http2.WindowUpdate:
		n := int(binary.BigEndian.Uint32(payload))
		if h.Stream == 0 {
			p.credit += n
			require.True(p.t, p.unknown || p.credit <= 1<<20-http2.DefaultWindow+p.sent, "more than was taken")
		}
		if p.all {
			p.tell("WINDOW %d %d", h.Stream, n)
		}
	default:
		require.Fail(p.t, "no frame of a server", "%+v", h)
	}
}

// hearStream reads a frame of a stream.
func (p *player) hearStream(h http2.Header, payload []byte) {
	s := p.streams[h.Stream]
	if s == nil {
		s = &heardStream{}
		p.streams[h.Stream] = s
	}
	require.True(p.t, !s.over || h.Type == http2.RSTStream && !s.reset, "a frame after the end: %+v", h) // see RFC 9113 8.1
	switch h.Type {
	case http2.Headers:
		require.True(p.t, h.Flags.Has(http2.EndHeaders))
		p.fields = nil
		_, err := p.hpack.Write(payload)
		require.NoError(p.t, err)
		require.NoError(p.t, p.hpack.Close())
		p.hearHead(s, h)
	case http2.Data:
		require.NotEmpty(p.t, s.status)
		s.body += string(payload)
		p.order = append(p.order, strconv.Itoa(int(h.Stream)))
		s.data += len(payload)
		p.gives[0] -= len(payload)
		if p.gives[h.Stream] -= len(payload); !p.unknown && (p.gives[h.Stream] < 0 || p.gives[0] < 0) {
			require.Fail(p.t, "more DATA than the client has allowed")
		}
	case http2.RSTStream:
		s.flush()
		s.text = append(s.text, "RST "+http2.ReadRST(payload).String())
		s.over, s.reset = true, true
		return
	default:
		require.Fail(p.t, "no frame of a server", "%+v", h)
	}
	if h.Flags.Has(http2.EndStream) {
		if s.length != "" && !p.asks[h.Stream] && !p.unknown {
			require.Equal(p.t, s.length, strconv.Itoa(s.data))
		}
		s.flush()
		s.over = true
	}
}

func (s *heardStream) flush() {
	if s.body != "" {
		if len(s.body) > 40 {
			s.text = append(s.text, fmt.Sprintf("[%d]", len(s.body)))
		} else {
			s.text = append(s.text, strconv.Quote(s.body))
		}
		s.body = ""
	}
}

// hearHead reads a head or trailers.
func (p *player) hearHead(s *heardStream, h http2.Header) {
	date, mark := "", ""
	if s.status != "" {
		s.flush()
		mark = "+"
		require.True(p.t, h.Flags.Has(http2.EndStream), "trailers end the stream")
	}
	for i, f := range p.fields {
		require.Equal(p.t, strings.ToLower(f.Name), f.Name)
		require.Equal(p.t, i == 0 && mark == "", f.Name == ":status")
		switch f.Name {
		case ":status":
			if s.text = append(s.text, f.Value); f.Value >= "200" {
				s.status = f.Value
			}
		case "date":
			date = f.Value
		case "content-length":
			if s.length = f.Value; h.Flags.Has(http2.EndStream) {
				s.text = append(s.text, "length="+f.Value)
			}
		case "content-type": // of what the server says itself
		default:
			s.text = append(s.text, mark+f.Name+"="+f.Value)
		}
	}
	if mark == "" && s.status != "" {
		when, err := time.Parse(http.TimeFormat, date)
		require.True(p.t, err == nil && !when.Before(noon) && !when.After(p.d.Wall()), date)
	}
}

// story is what was heard up to now.
func (p *player) story() string {
	all := slices.Clone(p.over)
	if p.ordered {
		all = append(all, "order "+strings.Join(p.order, " "))
	}
	for _, id := range slices.Sorted(maps.Keys(p.streams)) {
		s := *p.streams[id]
		if s.text = slices.Clone(s.text); !s.over {
			s.flush()
			s.text = append(s.text, "…")
		}
		all = append(all, fmt.Sprintf("%d %s", id, strings.Join(s.text, " ")))
	}
	end := map[state]string{closed: "!", aborted: "!!"}[p.client.state]
	return strings.Join(all, " | ") + end
}
