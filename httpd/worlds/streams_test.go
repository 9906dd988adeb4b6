package worlds_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/sim"
)

// peer is what a client of HTTP/2 knows of its connection. It keeps account of each window.
type peer struct {
	*client
	in       *bufio.Reader
	streams  map[uint32]*stream
	begun    int // requests that were sent
	rude     bool
	most     int    // streams at a time, says the server; 0: it has not said it
	control  []byte // frames that go out first
	encoder  *hpack.Encoder
	encoded  strings.Builder
	decoder  *hpack.Decoder
	window   int // bytes of DATA that the client may send
	grants       // likewise the server
	initial  int // of the windows of new streams
	size     int // of these windows, when everything is given back
	largest  int // piece of a body
	late     time.Duration
	settings []func()      // what each SETTINGS changes that has no answer yet
	warned   bool          // GOAWAY has come
	last     uint32        // the last stream that the server looks at
	changes  int           // of the windows, by SETTINGS, that are still to come
	next     time.Duration // when the next one may come
	pinged   int           // at the end: how many PING were sent
	pings    int           // and answered
	finished bool          // the client reads no more
}

// grants is a window that a client gives to the server.
type grants struct {
	room int           // bytes that the server may send
	owed int           // that the client has not given back
	due  time.Duration // when it does
}

// stream is a request on its stream.
type stream struct {
	*request
	number  uint32
	urgency int
	whole   bool // its answer is there from the beginning
	lives   int  // other streams that the server may still count, when it began
	window  int
	grants
	sent    int           // of the body
	until   time.Duration // when it no longer waits for 100 (Continue); 0: it does not
	resets  int           // after so many bytes of the body, or of the answer; -1: never
	shut    bool          // the window never opens again, until the server gives up
	ended   bool          // the client sends no more
	headed  bool
	done    bool // the client expects no more
	got     int
	length  int
	informs int
	trailer string
	denied  bool           // the answer is not the handler's
	passed  map[uint32]int // how many frames of each other stream came since the last one
}

// mostID is the highest number of a stream.
const mostID = 1<<31 - 1

const tunnelled = "CONNECT" // what HTTP/2 has in place of an Upgrade (RFC 8441)

// run2 is the script over HTTP/2.
func (c *client) run2() error {
	r := c.Rand()
	n, told, asked := 1+r.IntN(from(r, 1, 4, 16)), 0, 0
	roomy := r.IntN(3) == 0
	for i := range n {
		q := c.draw(i, i == n-1)
		q.stream = &stream{request: q, window: startWindow, resets: -1, length: -1, urgency: 3, passed: map[uint32]int{}}
		q.stream.draw(r, roomy)
		c.plan = append(c.plan, q)
		told, asked = told+len(q.content), asked+len(q.body)+200
	}
	c.depth = from(r, 1, 3, 100)
	switch how := from(r, party.Stays, party.Stays, party.Stays, party.HalfCloses, party.Resets, party.Closes); {
	case how == party.HalfCloses && (!roomy || c.tls != nil): // it could open no window any more, or not close TLS
	case how != party.HalfCloses && how != party.Stays:
		c.Stop = r.IntN(asked + 100)
		fallthrough
	default:
		c.Parting = how
	}
	c.Fit(asked, told)
	p := &peer{client: c, in: bufio.NewReader(&c.Client), streams: map[uint32]*stream{}, window: startWindow, rude: r.IntN(4) == 0,
		largest: max(1<<r.IntN(15), asked/100), decoder: hpack.NewDecoder(4096, nil)}
	p.encoder = hpack.NewEncoder(&p.encoded)
	p.open(r, roomy)
	err := error(nil)
	if c.tls != nil {
		conn := tls.Client(c.Conn, c.tls)
		if err = conn.Handshake(); err != nil {
			return p.broken(party.Unexpected(err))
		}
		c.Conn = conn
	}
	c.Go(func(*sim.Client) error { return p.write() })
	err = p.readAll()
	if c.Over = true; c.LeftAt == 0 {
		c.LeftAt = c.w.Now()
	}
	return err
}

// draw draws what only a stream has.
func (s *stream) draw(r *rand.Rand, roomy bool) {
	q := s.request
	if q.ending == tunnels {
		q.method, q.framing, q.expects, q.trailers = tunnelled, chunked, false, nil
		q.body, q.status = party.Noise()[:q.client.within], 200
		q.steps = slices.DeleteFunc(q.steps, func(s step) bool { return s.do == doRead })
	}
	switch {
	case q.ending != tunnels && q.client.kind == action && roomy && r.IntN(3) == 0:
		*q = request{client: q.client, n: q.n, method: "GET", announced: -1, collect: -1, dice: q.dice, status: 200, atOnce: true, stream: s}
		q.extend(party.Content(r, 100_000+r.IntN(200_000)))
		q.add(step{do: doWrite, n: len(q.content)})
		s.whole, s.urgency = true, from(r, 3, 3, 0, 7)
	case q.client.timed && q.ending != tunnels && r.IntN(10) == 0:
		s.shut = true
	case r.IntN(8) == 0:
		s.resets = from(r, 0, r.IntN(len(q.body)+1), r.IntN(len(q.content)+1))
	}
	if q.expects {
		s.until = q.client.w.Now() + from[time.Duration](r, time.Second, 20*time.Second)
	}
}

// open draws the windows and begins the connection.
func (p *peer) open(r *rand.Rand, roomy bool) {
	p.initial, p.size, p.room = startWindow, startWindow, startWindow
	p.late = from(r, 0, 0, 10*time.Millisecond, 3*time.Second)
	pairs := []uint32{2, 0}
	if exact := len(p.plan[r.IntN(len(p.plan))].content); roomy {
		p.initial, p.size = 1<<28, 1<<28
	} else if r.IntN(2) == 0 {
		p.initial = from(r, 0, 1, exact, r.IntN(1000))
		p.size = max(p.initial, from(r, 1000+r.IntN(20_000), startWindow, 1<<28))
	}
	if p.size < startWindow {
		p.late = min(p.late, 10*time.Millisecond)
	}
	if p.initial != startWindow {
		pairs = append(pairs, 4, uint32(p.initial))
	}
	p.control = setting(pairs...).append([]byte(preface))
	p.settings = []func(){func() {}}
	if !roomy {
		p.changes = from(r, 0, 2, 4)
	}
	if roomy && (p.Parting == party.HalfCloses || r.IntN(2) == 0) {
		p.grants.room += 1 << 28
		p.control = word(ofWindow, 0, 1<<28).append(p.control)
	}
}

// write is the strand that writes.
func (p *peer) write() error {
	for !p.stopped() {
		var next func()
		p.Await(func() bool { next = p.choose(); return next != nil || len(p.control) > 0 || p.stopped() })
		switch {
		case len(p.control) > 0:
			out := p.control
			p.control = nil
			p.Send(out)
		case next != nil:
			next()
		}
	}
	if !p.Cut() {
		p.Rest(3 * time.Second)
	}
	p.Part()
	return nil
}

// stopped reports whether the client sends no more.
func (p *peer) stopped() bool {
	return p.finished || p.Over || p.Broken() || p.Cut() || p.Parting != party.Stays && p.Stop < 0 && p.asked()
}

// asked reports whether all requests were sent.
func (p *peer) asked() bool {
	return !slices.ContainsFunc(p.plan, func(q *request) bool { return !q.stream.ended })
}

// choose draws what the client does next among all that it can do. nil: nothing.
func (p *peer) choose() func() {
	var can []func()
	now, open := p.w.Now(), 0
	if p.owed > 0 && now >= p.due {
		can = append(can, func() { p.grant(0, &p.grants) })
	}
	for _, q := range p.plan[:p.begun] {
		s := q.stream
		if !s.done {
			open++
		}
		switch {
		case s.resets >= 0 && !s.gone && (s.sent >= s.resets || s.got >= s.resets) && !(s.done && s.ended):
			can = append(can, func() { p.cancel(s) })
		case s.shut, s.headed && !s.denied && s.got == len(q.content) && q.method != tunnelled: // it needs no window any more
		case !s.done && s.owed > 0 && now >= s.due:
			can = append(can, func() { p.grant(s.number, &s.grants) })
		}
		switch waits := s.until > now && !s.headed; {
		case s.ended, s.sent == 0 && waits, q.method == tunnelled && !s.headed && !p.eager:
		case s.sent == len(q.body) && q.method == tunnelled && s.got < s.sent: // the echo comes first
		case s.sent == len(q.body), min(s.window, p.window) > 0:
			can = append(can, func() { p.data(s) })
		}
	}
	if p.begun < len(p.plan) && open < p.depth && (!p.warned || p.rude && p.last == mostID) && (p.rude || p.most > 0 && open < p.most) {
		can = append(can, p.begin)
	}
	if p.changes > 0 && p.begun > 0 && len(p.settings) == 0 && now >= p.next {
		can = append(can, p.change)
	}
	if p.pinged == p.pings && p.pinged < 2 && p.over() {
		can = append(can, func() {
			p.pinged++
			p.say(frame{kind: ofPing, payload: make([]byte, 8)})
		})
	}
	if len(can) == 0 {
		return nil
	}
	return can[p.Rand().IntN(len(can))]
}

func (p *peer) say(f frame) { p.Send(f.append(nil)) }

// begin sends the head of the next request.
func (p *peer) begin() {
	r, q := p.Rand(), p.plan[p.begun]
	s := q.stream
	p.begun++
	s.number, s.room = uint32(2*p.begun-1), p.initial
	if n := p.size - p.initial; n > 0 {
		s.owe(p, n)
		s.due += party.Below(r, time.Second)
	}
	p.streams[s.number] = s
	for _, o := range p.plan[:q.n] {
		if gone := o.returned && o.stream.done && o.stream.ended; !gone {
			s.lives++
		}
	}
	scheme := "http"
	if p.tls != nil {
		scheme = "https"
	}
	fields := []string{":method", q.method, ":scheme", scheme, ":authority", "world", ":path", q.id()}
	if q.method == tunnelled {
		fields = append(fields, ":protocol", "echo")
	}
	fields = append(fields, "x-id", q.id())
	if q.framing == sized {
		fields = append(fields, "content-length", strconv.Itoa(len(q.body)))
	}
	if q.trailers != nil {
		fields = append(fields, "trailer", "x-behind")
	}
	if q.expects {
		fields = append(fields, "expect", "100-continue")
	}
	if s.urgency != 3 {
		fields = append(fields, "priority", "u="+strconv.Itoa(s.urgency))
	}
	s.ended = q.framing == bodiless
	b := block(r, s.number, encode(p.encoder, &p.encoded, fields...), s.ended)
	if q.from, q.head = p.Sent, len(b); s.ended {
		q.finish = q.from + q.head
	}
	p.Send(b)
}

// data sends more of a body, or what ends it.
func (p *peer) data(s *stream) {
	r, q := p.Rand(), s.request
	n := min(len(q.body)-s.sent, frameMost, s.window, p.window, 1+r.IntN(p.largest))
	f := frame{kind: ofData, id: s.number, payload: q.body[s.sent : s.sent+n : s.sent+n]}
	s.sent += n
	switch rest := len(q.body) - s.sent; {
	case rest == 0 && n == 0 && q.trailers != nil:
		s.ended = true
		b := block(r, s.number, encode(p.encoder, &p.encoded, "x-behind", q.trailers.Get("X-Behind")), true)
		q.finish = p.Sent + len(b)
		p.Send(b)
		return
	case rest == 0 && q.trailers == nil && q.method != tunnelled && (n == 0 || r.IntN(3) > 0), rest == 0 && n == 0:
		f.flags = endStream
		s.ended = true
	}
	f = f.pad(r, min(s.window, p.window, frameMost)-n)
	s.window -= len(f.payload)
	p.window -= len(f.payload)
	if s.ended {
		q.finish = p.Sent + 9 + len(f.payload)
	}
	p.say(f)
}

// cancel resets a stream. What still comes on it is thrown away.
func (p *peer) cancel(s *stream) {
	s.gone, s.ended = true, true
	if !s.done {
		p.seen.resets++
	}
	s.done = true
	p.say(word(ofReset, s.number, 8))
}

// owe notes that n bytes are to be given back.
func (g *grants) owe(p *peer, n int) {
	if g.owed == 0 {
		g.due = p.w.Now() + party.Below(p.Rand(), p.late+1)
	}
	g.owed += n
}

// grant gives bytes back.
func (p *peer) grant(id uint32, g *grants) {
	n := g.owed
	g.owed, g.room = 0, g.room+n
	p.say(word(ofWindow, id, uint32(n)))
}

// change makes the windows of all streams smaller, or as large as they were, by SETTINGS, which count when their answer comes.
func (p *peer) change() {
	p.changes--
	to := p.size
	if p.changes%2 == 1 {
		to = from(p.Rand(), 0, 1, 1000)
	}
	by := to - p.initial
	p.initial = to
	streams := slices.Clone(p.plan[:p.begun])
	p.settings = append(p.settings, func() {
		p.next = p.w.Now() + party.Below(p.Rand(), time.Second)
		for _, q := range streams {
			q.stream.room += by
		}
	})
	p.say(setting(4, uint32(to)))
}

// over reports whether the client expects no more. When two PINGs were answered after that, everything has arrived.
func (p *peer) over() bool {
	return !slices.ContainsFunc(p.plan, func(q *request) bool { return !(q.stream.done && q.stream.ended) && !p.unseen(q.stream) })
}

// unseen reports whether the server has said that it does not answer the request, or the client does not send it for that reason.
func (p *peer) unseen(s *stream) bool { return p.warned && (s.number == 0 || s.number > p.last) }

// readAll is the strand that reads.
func (p *peer) readAll() error {
	defer func() { p.finished = true }()
	for first := true; p.pings < 2; first = false {
		f, err := readFrame(p.in)
		if err != nil {
			return p.broken(err)
		}
		if len(f.payload) > frameMost || first && (f.kind != ofSettings || f.flags != 0) {
			return fmt.Errorf("frame %d of %d bytes, the first: %v", f.kind, len(f.payload), first)
		}
		if err := p.read(f); err != nil {
			return err
		}
	}
	if missing := serverWindow - p.window; missing < 0 || 2*missing >= serverWindow {
		return fmt.Errorf("of a window of %d bytes %d were not given back", serverWindow, missing)
	}
	return nil
}

// serverWindow is how much DATA a server takes at a time, on all streams of a connection.
const serverWindow = 1 << 20

func (p *peer) read(f frame) error {
	s := p.streams[f.id]
	if f.id == 0 {
		s = &stream{}
	}
	switch {
	case s == nil, (f.id == 0) != (f.kind == ofSettings || f.kind == ofPing || f.kind == ofGoAway || f.kind == ofWindow && f.id == 0):
		return fmt.Errorf("a frame of type %d on stream %d", f.kind, f.id)
	case f.kind == ofData:
		return p.content(s, f)
	case f.kind == ofHeaders:
		fields, err := p.fields(f)
		if err != nil || s.gone {
			return err
		}
		return p.head(s, fields, f.flags&endStream != 0)
	case f.kind == ofReset:
		return p.resetBy(s, f.number())
	case f.kind == ofSettings && f.flags == ack:
		if len(p.settings) == 0 {
			return errors.New("an answer to SETTINGS that were not sent")
		}
		p.settings[0]()
		p.settings = p.settings[1:]
	case f.kind == ofSettings:
		for at := 0; at < len(f.payload); at += 6 {
			if f.payload[at+1] == 3 {
				p.most = int(frame{payload: f.payload[at+2:]}.number())
			}
		}
		p.control = frame{kind: ofSettings, flags: ack}.append(p.control)
	case f.kind == ofPing && f.flags == ack:
		p.pings++
	case f.kind == ofPing:
		p.control = frame{kind: ofPing, flags: ack, payload: f.payload}.append(p.control)
	case f.kind == ofGoAway:
		last, code := f.number(), frame{payload: f.payload[4:]}.number()
		first := !p.warned && last != mostID && !p.Half // what is on its way by then has to be answered
		if code != 0 || first || p.warned && last > p.last {
			return fmt.Errorf("GOAWAY with stream %d after %d, code %d: %s", last, p.last, code, f.payload[8:])
		}
		p.warned, p.last = true, last
	case f.kind == ofWindow:
		window := &p.window
		if f.id > 0 {
			window = &s.window
		}
		if *window += int(f.number()); f.number() == 0 || *window > serverWindow {
			return fmt.Errorf("a window of %d on stream %d", *window, f.id)
		}
	default:
		return fmt.Errorf("a frame of type %d", f.kind)
	}
	return nil
}

// fields decodes a field block, which the server does not cut.
func (p *peer) fields(f frame) (map[string]string, error) {
	if f.flags&^endStream != endHeaders {
		return nil, fmt.Errorf("HEADERS with flags %#x", f.flags)
	}
	all, err := p.decoder.DecodeFull(f.payload)
	fields := map[string]string{}
	for _, f := range all {
		fields[f.Name] = f.Value
	}
	return fields, err
}

// head is a head, or trailers.
func (p *peer) head(s *stream, fields map[string]string, end bool) error {
	q, id := s.request, fields["x-id"]
	status, _ := strconv.Atoi(fields[":status"])
	switch {
	case s.done, s.headed && !end:
		return p.wrong(q, "HEADERS again")
	case s.headed:
		s.trailer = fields["x-after"]
	case status == http.StatusContinue:
		if !q.expects || s.until == 0 {
			return p.wrong(q, "100 (Continue) again, or unasked")
		}
		s.until = 0
		return nil
	case p.isRefusal(q, status) && id == "":
		s.headed, s.denied = true, true
		q.refused = q.refused || !q.served
	case id != q.id() && q.ending != tunnels:
		return p.wrong(q, "an answer with status %d that is for %q", status, id)
	case status == http.StatusEarlyHints:
		s.informs++
		p.seen.interim++
		return nil
	case status != q.status, s.informs > q.informed:
		return p.wrong(q, "status %d after %d interim answers", status, s.informs)
	default:
		s.headed = true
		if text, has := fields["content-length"]; has {
			s.length, _ = strconv.Atoi(text)
		}
		if q.hijacked {
			p.seen.tunnels++
		}
	}
	if end {
		return p.ends(s)
	}
	return nil
}

// content is DATA. It counts for the windows even if the client has reset the stream.
func (p *peer) content(s *stream, f frame) error {
	q, n := s.request, len(f.payload)
	s.room, p.room = s.room-n, p.room-n
	switch {
	case s.room < 0 && n > 0, p.room < 0:
		return p.wrong(q, "%d bytes, with windows that are short of %d and %d", n, s.room, p.room)
	case f.flags&^endStream != 0:
		return p.wrong(q, "DATA with flags %#x", f.flags)
	case n > 0:
		p.owe(p, n)
		s.owe(p, n)
	}
	if s.gone {
		return nil
	}
	if s.done || !s.headed {
		return p.wrong(q, "DATA where none can be")
	}
	want := q.content
	if q.ending == tunnels {
		want = q.body[:s.sent]
	}
	if !s.denied && (n > len(want)-s.got || !bytes.Equal(f.payload, want[s.got:s.got+n])) {
		return p.wrong(q, "something else in %d bytes from %d of %d on", n, s.got, len(want))
	}
	s.got += n
	for _, q := range p.plan[:p.begun] {
		o := q.stream
		if o == s || !o.whole || !s.whole || !o.headed || o.done || s.urgency < o.urgency {
			continue
		}
		if o.passed[s.number]++; o.passed[s.number] > 1 || s.urgency > o.urgency {
			return p.wrong(q, "%d frames of stream %d come first", o.passed[s.number], s.number)
		}
	}
	if clear(s.passed); f.flags == endStream {
		return p.ends(s)
	}
	return nil
}

// ends is the end of an answer.
func (p *peer) ends(s *stream) error {
	q := s.request
	mute := q.method == "HEAD"
	s.done = true
	switch {
	case s.denied:
		return nil
	case q.ending == tunnels && s.got == len(q.body):
	case s.length >= 0 && q.announced >= 0 && s.length != q.announced:
		return p.wrong(q, "a Content-Length of %d", s.length)
	case q.announced >= 0 && s.got == q.announced && !mute: // it is complete before the handler has returned
	case mute && p.kind != inline: // likewise
	case !q.over || q.aborted || q.failed || q.short() && !mute:
		return p.wrong(q, "it looks complete")
	case !mute && (s.got != len(q.content) || s.got != q.written):
		return p.wrong(q, "%d bytes of %d look complete", s.got, len(q.content))
	case !mute && q.announced < 0 && s.trailer != q.behind.Get("X-After"):
		return p.wrong(q, "the trailer %q", s.trailer)
	case q.returned && !q.logged && p.kind == action:
		return p.wrong(q, "it is not logged")
	case s.trailer != "":
		p.seen.trailers++
	}
	p.seen.answers++
	return nil
}

// resetBy is RST_STREAM.
func (p *peer) resetBy(s *stream, code uint32) error {
	q := s.request
	over := s.done
	s.done, s.ended = true, true
	switch {
	case s.gone, p.order.MayCut(), !p.gentle:
	case code == 0 && over: // what is left of the body is not read
	case code == 2 && (q.aborted || q.failed || q.bad || q.over && q.short()):
	case code == 8 && s.shut:
	case code == 7 && !q.served && s.lives >= p.most:
		p.seen.refused++
	default:
		return p.wrong(q, "RST_STREAM with code %d", code)
	}
	q.refused = q.refused || code == 7
	return nil
}

// broken is called at the end of the connection. It returns nil, or an error that a fault has to explain, or one that nothing does.
func (p *peer) broken(err error) error {
	if p.over() {
		return nil
	}
	p.seen.cut++
	for _, q := range p.plan {
		s := q.stream
		unseen := p.unseen(s)
		q.refused = q.refused || unseen
		switch {
		case unseen && q.served:
			return p.wrong(q, "it is served, after GOAWAY with stream %d", p.last)
		case p.order.Given && p.most == 0: // the server does not know the connection
		case s.done, unseen, p.Left, p.Cut(), p.order.MayCut(), p.order.Given && q.hijacked, p.hasty && p.ReadGap > 0:
		case !p.gentle:
			return fmt.Errorf("answer to %v: %w\n%s", q, err, q.describe())
		default:
			return p.wrong(q, "the connection has ended: %v, GOAWAY: %v", err, p.warned)
		}
	}
	return nil
}
