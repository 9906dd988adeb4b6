package client

import (
	"cmp"

	"github.com/daimon-go/daimon/httpd/internal/http2"
)

var (
	errUnbegun = &http2.Error{Code: http2.ProtocolError, Why: "a frame of a stream that has not begun"} // 9113 5.1
	errPushes  = &http2.Error{Code: http2.ProtocolError, Why: "a server that allows push"}              // 9113 6.5.2
	errRaised  = &http2.Error{Code: http2.ProtocolError, Why: "a GOAWAY that takes back another"}       // 9113 6.8
	errUpdate  = &http2.Error{Code: http2.ProtocolError, Why: "PRIORITY_UPDATE from a server"}          // 9218 7.1
)

// read reads a frame, and returns its size. An invalid frame ends the connection, even where it could be that of its stream alone
// (RFC 9113 5.4.2).
func (x *http2Conn) read() (size int, err error) {
	in, err := x.conn.Peek(http2.HeaderLen)
	if err != nil {
		return 0, err
	}
	h := http2.ParseHeader(in)
	if bad := h.Expected(!x.known, x.block.h.Stream); bad != nil {
		return 0, bad.On(0)
	}
	size = http2.HeaderLen + int(h.Length)
	if in, err = x.conn.Peek(size); err != nil {
		return 0, err
	}
	x.conn.Discard(size) // the bytes are lent until the turn ends
	p, bad := http2.Payload(h, in[http2.HeaderLen:size])
	switch {
	case bad != nil:
		return size, bad.On(0)
	case h.Stream >= x.next && h.Type <= http2.Continuation && h.Type != http2.Priority:
		return size, errUnbegun
	case h.Type != http2.Ping:
		x.silence = silentTime
	}
	return size, x.frame(h, p)
}

func (x *http2Conn) frame(h http2.Header, p []byte) error {
	switch h.Type {
	case http2.Data:
		return x.data(h, p)
	case http2.Headers:
		return x.headers(h, p)
	case http2.Continuation:
		return x.fragment(h, p)
	case http2.RSTStream:
		return x.reset(h, http2.ReadRST(p))
	case http2.Settings:
		return x.settings(h, p)
	case http2.Ping:
		if !h.Flags.Has(http2.Ack) {
			x.out = http2.AppendPing(x.buffer(), true, [8]byte(p))
		}
		return x.flood(http2.OfPings)
	case http2.GoAway:
		return x.goAway(http2.ReadGoAway(p))
	case http2.WindowUpdate:
		return x.window(h, p)
	case http2.PriorityUpdate:
		return errUpdate
	}
	return x.flood(http2.OfOthers) // PRIORITY, and types that are not known
}

// flood notes one more, and returns why the connection ends if that is too much.
func (x *http2Conn) flood(of http2.Flood) error {
	if bad := x.floods.Note(of, x.pool.s.Now()); bad != nil {
		return bad
	}
	return nil
}

// dead is a frame without content of a stream that has ended. Some come for each one that was reset here.
func (x *http2Conn) dead() error {
	if x.late > 0 {
		x.late--
		return nil
	}
	return x.flood(http2.OfOthers)
}

// of returns the stream of HEADERS or DATA, or nil if nobody wants them any more.
func (x *http2Conn) of(h http2.Header) (*stream, error) {
	s := x.find(h.Stream)
	if s == nil || s.lost != nil {
		return nil, nil
	}
	if _, bad := s.state.Receive(h); bad != nil {
		return nil, bad.On(0)
	}
	return s, nil
}

// headers is HEADERS: a head, or trailers (RFC 9113 8.1). A block that is not wanted is decoded all the same, since it changes
// the decoder's table.
func (x *http2Conn) headers(h http2.Header, p []byte) error {
	s, err := x.of(h)
	if err != nil {
		return err
	}
	x.block = headerBlock{h, s, new(http2.Head)}
	x.decoder.Begin(x.block.head, http2.Limits{}, s != nil && s.answered)
	return x.fragment(h, p)
}

// fragment is a part of a field block.
func (x *http2Conn) fragment(h http2.Header, p []byte) error {
	if bad := x.decoder.Write(p); bad != nil {
		return bad
	}
	if !h.Flags.Has(http2.EndHeaders) {
		return nil
	}
	b := x.block
	x.block = headerBlock{}
	end := b.h.Flags.Has(http2.EndStream)
	bad := x.decoder.End(end)
	if x.decoder.Inflated() {
		if err := x.flood(http2.OfBlocks); err != nil {
			return err
		}
	}
	switch {
	case bad != nil && (bad.Stream == 0 || b.to != nil):
		return bad.On(b.h.Stream)
	case b.to == nil || b.to.lost != nil: // it was reset meanwhile
		return x.dead()
	}
	return b.to.takeHead(b.head, end)
}

// data is DATA (RFC 9113 6.1).
func (x *http2Conn) data(h http2.Header, p []byte) error {
	if !x.inflow.Receive(h.Length) {
		return http2.ErrFlow
	}
	x.inflow.Take(h.Length) // now they are the stream's, whose window bounds them
	s, err := x.of(h)
	end := h.Flags.Has(http2.EndStream)
	switch {
	case err != nil:
		return err
	case s == nil && len(p) > 0:
		return nil
	case s == nil:
		return x.dead()
	case len(p) == 0 && !end:
		err = x.flood(http2.OfEmptyData)
	}
	return cmp.Or(err, s.take(h, p, end))
}

// reset is RST_STREAM (RFC 9113 6.4). After the whole answer it says that the rest of the request is not wanted (8.1).
func (x *http2Conn) reset(h http2.Header, code http2.Code) error {
	s := x.find(h.Stream)
	if s == nil || s.lost != nil {
		return x.dead()
	}
	var err error = &resetError{code}
	if code == http2.RefusedStream {
		err = notDone{err}
	}
	s.fail(err)
	return nil
}

// resetError is why a request has no answer that the server has refused or given up.
type resetError struct{ code http2.Code }

func (e *resetError) Error() string { return "the server has reset the stream: " + e.code.String() }

// settings is SETTINGS of the server, or its answer to the ones of this side (RFC 9113 6.5).
func (x *http2Conn) settings(h http2.Header, p []byte) error {
	if h.Flags.Has(http2.Ack) {
		return x.flood(http2.OfSettings)
	}
	peer, bad := http2.ReadSettings(p, x.peer)
	switch {
	case bad != nil:
		return bad
	case peer.Push:
		return errPushes
	}
	by := int64(peer.Window) - int64(x.peer.Window)
	x.peer, x.known, x.pool.streams = peer, true, peer.Streams
	for _, s := range x.streams {
		if !s.outflow.Add(by) {
			return http2.ErrOutflow
		}
		s.waker.Wake()
	}
	x.pool.wakeFirst()
	x.out = http2.AppendSettingsAck(x.buffer())
	return x.flood(http2.OfSettings)
}

// window is WINDOW_UPDATE (RFC 9113 6.9).
func (x *http2Conn) window(h http2.Header, p []byte) error {
	n, bad := http2.ReadWindowUpdate(h, p)
	s := x.find(h.Stream)
	switch {
	case bad != nil:
		return bad.On(0)
	case h.Stream == 0 && !x.outflow.Add(int64(n)), s != nil && !s.outflow.Add(int64(n)):
		return http2.ErrOutflow
	case h.Stream == 0:
		x.feed()
	case s != nil:
		s.waker.Wake()
	}
	return x.flood(http2.OfWindows)
}

// goAway is GOAWAY: there are no new requests, the ones above last were not looked at, and the others go on (RFC 9113 6.8).
func (x *http2Conn) goAway(last uint32, _ http2.Code) error {
	if last > x.last {
		return errRaised
	}
	x.last = last
	x.retire()
	for _, s := range x.streams {
		if s.id > last {
			s.fail(notDone{errGone})
		}
	}
	return x.flood(http2.OfOthers)
}

// fault is a mistake of the server: its stream or the connection ends.
func (x *http2Conn) fault(bad *http2.Error) {
	if s := x.find(bad.Stream); s != nil {
		s.cancel(bad.Code)
		s.fail(bad)
	}
	if flood := x.floods.Note(http2.OfFaults, x.pool.s.Now()); bad.Stream == 0 || flood != nil {
		x.end(cmp.Or(flood, bad))
	}
}
