package httpd

import (
	"cmp"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// headers is HEADERS: a request, or trailers (RFC 9113 6.2, 8.1). A block that is not wanted is decoded all the same, since it
// changes the decoder's table. bad is what is wrong with the frame.
func (x *http2Conn) headers(t *act.Task, h http2.Header, p []byte, bad *http2.Error) error {
	s, state := x.of(h.Stream)
	next, wrong := state.Receive(h)
	if wrong != nil && wrong.Stream == 0 {
		return wrong
	}
	b := headerBlock{h: h, bad: cmp.Or(wrong, bad)}
	var head *http2.Head
	if state == http2.Idle {
		x.last = h.Stream
	}
	switch {
	case b.bad != nil:
	case state == http2.Idle && x.full():
		b.bad = &http2.Error{Code: http2.RefusedStream, Stream: h.Stream, Why: "more requests than MaxStreams"} // 9113 5.1.2
	case state == http2.Idle:
		b.to = x.cache.stream(x, h.Stream)
		b.to.state, head = next, &b.to.head
	case s == nil || s.lost != nil:
	default:
		b.to, b.tail = s, new(http2.Head)
		head = b.tail
	}
	if x.block = b; head == nil { // nobody wants it
		head = new(http2.Head)
	}
	x.decoder.Begin(head, x.limits(), b.tail != nil)
	return x.fragment(t, h, p)
}

// fragment is a part of a field block.
func (x *http2Conn) fragment(t *act.Task, h http2.Header, p []byte) error {
	before := x.decoder.Size()
	bad := x.decoder.Write(p)
	x.taken += blockByte*len(p) + x.decoder.Size() - before
	if bad != nil {
		if bad.Code == http2.EnhanceYourCalm {
			x.cache.counts.floods[http2.OfBlocks]++
		}
		return bad
	}
	if !h.Flags.Has(http2.EndHeaders) {
		return nil
	}
	b := x.block
	x.block, x.begun = headerBlock{}, 0
	bad = x.decoder.End(b.h.Flags.Has(http2.EndStream))
	if x.decoder.Inflated() {
		if err := x.flood(http2.OfBlocks); err != nil {
			return err
		}
	}
	switch {
	case bad != nil && bad.Stream == 0:
		return bad
	case b.bad != nil:
		return b.bad
	case b.to == nil, b.to.lost != nil: // it was reset meanwhile
		return x.flood(http2.OfOthers)
	case bad != nil:
		return bad.On(b.h.Stream)
	case b.tail != nil:
		b.to.in.Body.trailers = &b.tail.Head
		return b.to.ends(b.h)
	}
	x.request(t, b.to)
	return nil
}

// request begins a stream.
func (x *http2Conn) request(t *act.Task, s *stream) {
	if x.idle = 0; len(x.streams) == 0 {
		x.enter(StateActive)
	}
	x.streams = append(x.streams, s)
	if e := x.early(s.id); e.id == s.id {
		s.head.Urgency = e.urgency
	}
	s.serve(t)
}

// beginData is the beginning of DATA (RFC 9113 6.1). p has the length of the padding, if there is any.
func (x *http2Conn) beginData(h http2.Header, p []byte) error {
	s, state := x.of(h.Stream)
	_, bad := state.Receive(h)
	n, padding := int(h.Length), 0
	switch {
	case bad != nil && bad.Stream == 0:
		return bad
	case len(p) > 0 && int(p[0]) >= n:
		return http2.ErrPadding
	case !x.inflow.Receive(h.Length):
		return http2.ErrFlow
	case len(p) > 0:
		padding = int(p[0])
		n -= 1 + padding
	}
	if bad == nil && s != nil && s.lost == nil {
		bad = s.admit(h, n)
	}
	x.data = incoming{h: h, left: n, padding: padding}
	if bad == nil && s != nil && s.lost == nil {
		x.data.to = s
	}
	x.thrown(len(p))
	switch {
	case bad != nil:
		return bad
	case n == 0 && (x.data.to == nil || !h.Flags.Has(http2.EndStream)):
		if err := x.flood(http2.OfEmptyData); err != nil {
			return err
		}
	}
	if n+padding == 0 {
		return x.endData()
	}
	return nil
}

// thrown notes that n bytes of DATA were thrown away. They count for the window of the stream that they came on, too.
func (x *http2Conn) thrown(n int) {
	x.inflow.Take(uint32(n))
	if s := x.data.to; s != nil {
		s.inflow.Take(uint32(n))
	}
}

// more is a further part of DATA.
func (x *http2Conn) more() error {
	in, err := x.conn.Peek(1)
	if err != nil {
		return err
	}
	d := &x.data
	if d.to != nil && d.to.lost != nil { // it was reset meanwhile
		d.to = nil
	}
	n := min(len(in), d.left)
	padding := min(len(in)-n, d.padding)
	switch {
	case d.to == nil:
		x.thrown(n)
	case n > 0:
		x.inflow.Take(uint32(n)) // now they are the stream's, whose window says how much that may be
		d.to.take(in[:n])
		x.taken += n
	}
	x.thrown(padding)
	d.left, d.padding = d.left-n, d.padding-padding
	x.conn.Discard(n + padding)
	if d.left+d.padding == 0 {
		return x.endData()
	}
	return nil
}

func (x *http2Conn) endData() error {
	d := x.data
	x.data = incoming{}
	if d.to != nil && d.to.lost == nil && d.h.Flags.Has(http2.EndStream) {
		return d.to.ends(d.h)
	}
	return nil
}

// credit gives back the window for bytes that were taken.
func (x *http2Conn) credit() {
	if n := x.inflow.Give(); n > 0 {
		x.out = http2.AppendWindowUpdate(x.buffer(), 0, n)
	}
}

// resetBy is RST_STREAM of the client (RFC 9113 6.4).
func (x *http2Conn) resetBy(h http2.Header, p []byte) error {
	s, state := x.of(h.Stream)
	if _, bad := state.Receive(h); bad != nil {
		return bad
	}
	if s == nil || s.lost != nil {
		return x.flood(http2.OfResets)
	}
	answered := s.state == http2.HalfLocal // clients of gRPC do so with what they have not sent
	s.reset(http2.Closed, &resetError{http2.ReadRST(p)})
	if answered {
		return nil
	}
	return x.flood(http2.OfResets)
}

// settings is SETTINGS of the client, or its answer to the one of the server (RFC 9113 6.5).
func (x *http2Conn) settings(h http2.Header, p []byte) error {
	if h.Flags.Has(http2.Ack) {
		return x.flood(http2.OfSettings)
	}
	if x.phase == opening {
		x.phase = serving
	}
	peer, bad := http2.ReadSettings(p, http2.Peer{Window: x.initial})
	if bad != nil {
		return bad
	}
	by := int64(peer.Window) - int64(x.initial)
	if x.initial = peer.Window; by != 0 {
		for _, s := range x.streams {
			if s.lost == nil && !s.outflow.Add(by) {
				return http2.ErrOutflow
			}
			x.schedule(s)
		}
	}
	x.out = http2.AppendSettingsAck(x.buffer())
	return x.flood(http2.OfSettings)
}

// window is WINDOW_UPDATE (RFC 9113 6.9).
func (x *http2Conn) window(h http2.Header, p []byte) error {
	n, bad := http2.ReadWindowUpdate(h, p)
	if h.Stream == 0 {
		switch {
		case bad != nil:
			return bad
		case !x.outflow.Add(int64(n)):
			return http2.ErrOutflow
		}
		x.feed()
		return x.flood(http2.OfWindows)
	}
	s, state := x.of(h.Stream)
	if _, err := state.Receive(h); err != nil {
		return err
	}
	switch {
	case s == nil || s.lost != nil:
	case bad != nil:
		return bad
	case !s.outflow.Add(int64(n)):
		return &http2.Error{Code: http2.ErrOutflow.Code, Stream: h.Stream, Why: http2.ErrOutflow.Why}
	default:
		x.schedule(s)
	}
	return x.flood(http2.OfWindows)
}

// reprioritize is PRIORITY_UPDATE (RFC 9218 7.1). One that comes before its request waits for it.
func (x *http2Conn) reprioritize(p []byte) error {
	id, urgency, bad := http2.ReadPriorityUpdate(p)
	if bad != nil {
		return bad
	}
	if s := x.find(id); s != nil {
		s.head.Urgency = urgency
	} else {
		*x.early(id) = earlyUpdate{id, urgency}
	}
	return x.flood(http2.OfOthers)
}

// ping is PING, which wants an answer, or an answer (RFC 9113 6.7).
func (x *http2Conn) ping(h http2.Header, p []byte) error {
	if !h.Flags.Has(http2.Ack) {
		x.out = http2.AppendPing(x.buffer(), true, [8]byte(p))
	} else if x.phase == warning && [8]byte(p) == warned { // what the client sent before it knew of the end has come
		x.goAway(http2.NoError, "")
	}
	return x.flood(http2.OfPings)
}

// fault is a mistake of the client: its stream or its connection ends.
func (x *http2Conn) fault(t *act.Task, bad *http2.Error) {
	s, state := x.of(bad.Stream)
	if s != nil && s.until != 0 { // curl cuts a body so when it has the answer
		s.resetHere(bad.Code, bad)
		return
	}
	x.note(t, "a client of HTTP/2 is refused", bad)
	switch {
	case bad.Stream == 0 || state == http2.Idle: // which cannot be reset (RFC 9113 6.4)
		x.end(bad)
		return
	case s == nil && state == http2.Reset: // it has been
	case s == nil:
		x.sendReset(bad.Stream, bad.Code)
	default:
		s.resetHere(bad.Code, bad)
	}
	if flood := x.flood(http2.OfFaults); flood != nil {
		x.end(flood.(*http2.Error))
	}
}
