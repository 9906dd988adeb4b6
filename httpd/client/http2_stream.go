package client

import (
	"io"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/listener"
)

// stream is an exchange of HTTP/2: a request and its answer, on a stream of a connection (RFC 9113 5).
type stream struct {
	x        *http2Conn
	id       uint32
	state    http2.State
	mute     bool          // the answer has no content, whatever its fields say: the request is HEAD
	answered bool          // the head of the answer has come, which no interim one is
	whole    bool          // the answer has come to its end
	lost     error         // why nothing more comes
	heads    []*http2.Head // that have come and were not read
	trailers *syntax.Head
	body     []byte // what was received
	from     int    // how much of it was discarded
	received int64
	length   int64 // of the content of the answer; -1: unknown
	left     int64 // content of the request that is still to be sent; -1: unknown
	inflow   http2.Inflow
	outflow  http2.Outflow
	waker    act.Waker // of the task of the Call
	began    time.Duration
	meter    listener.Meter
}

// gathered is how much content a stream keeps in a small buffer of its own.
const gathered = 512

// begin sends the head (RFC 9113 8.3.1).
func (s *stream) begin(c *Call) (reused bool) {
	x := s.x
	s.id, x.next = x.next, x.next+2
	s.mute, s.left, s.length = c.Method == "HEAD", c.Length, -1
	s.inflow = http2.NewInflow(http2.DefaultWindow)
	s.outflow.Add(int64(x.peer.Window))
	s.began = x.pool.s.Now()
	x.streams = append(x.streams, s)
	scheme := "http"
	if x.pool.o.TLS != nil {
		scheme = "https"
	}
	block := x.pool.desk.scratch[:0]
	if s.id == 1 {
		block = http2.AppendNoTable(block)
	}
	block = http2.AppendLines(http2.AppendRequest(block, c.Method, scheme, c.Host, c.Target, ""), c.lines)
	if c.Length > 0 || c.Length == 0 && wantsLength(c.Method) {
		block = http2.AppendContentLength(block, c.Length)
	}
	if c.Expect {
		block = http2.AppendField(block, "expect", "100-continue")
	}
	x.pool.desk.scratch = block
	s.sendHead(block, c.Length == 0)
	return s.id > 1
}

func (s *stream) sendHead(block []byte, end bool) {
	s.x.out = http2.AppendHeaders(s.x.buffer(), s.id, block, end)
	s.x.floods.Useful()
	s.state = s.state.Send(http2.Headers, end)
}

// sends reports whether this side has not ended.
func (s *stream) sends() bool { return s.state == http2.Open || s.state == http2.HalfRemote }

// write adds DATA to out, and END_STREAM with the last byte of a known length. A stream that has filled out waits
// until the others have had their turns.
func (s *stream) write(p []byte) (n int, err error) {
	x := s.x
	for {
		room := min(s.outflow.Room(), x.outflow.Room(), fullOut-len(x.out))
		switch {
		case s.lost != nil:
			return n, s.lost
		case !s.sends() && len(p) > n:
			return n, ErrAnswered
		case n == len(p) && (n > 0 || room > 0):
			s.unlist()
			return n, nil
		case room <= 0:
			if n > 0 || !slices.Contains(x.writers, s) {
				s.unlist()
				x.writers = append(x.writers, s)
			}
			return n, (*blockedStream)(s)
		}
		k := min(len(p)-n, http2.MaxFrame, room)
		if s.left > 0 {
			s.left -= int64(k)
		}
		s.data(p[n:n+k], s.left == 0)
		n += k
	}
}

func (s *stream) unlist() {
	s.x.writers = slices.DeleteFunc(s.x.writers, func(other *stream) bool { return other == s })
}

// data adds a frame to out.
func (s *stream) data(p []byte, end bool) {
	x, n := s.x, len(p)
	h := http2.Header{Length: uint32(n), Type: http2.Data, Stream: s.id}
	if end {
		h.Flags = http2.EndStream
	}
	x.out = append(h.Append(x.buffer()), p...)
	s.outflow.Take(n)
	x.outflow.Take(n)
	s.state = s.state.Send(http2.Data, end)
	if n >= http2.Dribble || end {
		x.floods.Useful()
	}
}

func (s *stream) end(trailers []byte) {
	switch {
	case s.lost != nil || !s.sends():
	case len(trailers) > 0:
		s.sendHead(http2.AppendLines(s.x.pool.desk.scratch[:0], trailers), true)
	default:
		s.data(nil, true)
	}
}

// takeHead keeps the head that has come, or the trailers.
func (s *stream) takeHead(h *http2.Head, end bool) error {
	switch {
	case s.answered:
		s.trailers = &h.Head
		return s.ends()
	case h.Refused != nil:
		s.cancel(http2.Cancel)
		s.fail(h.Refused)
		return nil
	case len(s.heads) > mostInterims:
		return &http2.Error{Code: http2.EnhanceYourCalm, Stream: s.id, Why: errInterims.Error()}
	}
	s.heads = append(s.heads, h)
	s.waker.Wake()
	if h.Status < 200 {
		return nil
	}
	s.answered, s.length = true, h.Length
	if s.mute || syntax.Bodiless(int(h.Status)) || end && s.length < 0 {
		s.length = 0
	}
	if end {
		return s.ends()
	}
	return nil
}

func (s *stream) head(a *Response) error {
	if len(s.heads) == 0 {
		if s.lost == nil {
			return (*blockedStream)(s)
		}
		_, sure := s.lost.(notDone)
		a.heard = a.heard || !sure && s.x.phase < ending // the server has ended the stream, not the connection
		return s.lost
	}
	h := s.heads[0]
	s.heads = s.heads[1:]
	a.heard, a.status, a.head = true, int(h.Status), h.Head
	if a.length = s.length; s.mute {
		a.length = max(0, h.Length)
	}
	return nil
}

// take keeps content that has come.
func (s *stream) take(h http2.Header, p []byte, end bool) error {
	if !s.inflow.Receive(h.Length) { // 9113 6.9.1
		return &http2.Error{Code: http2.FlowControlError, Stream: s.id, Why: "more DATA than the window of the stream has"}
	}
	s.inflow.Take(h.Length - uint32(len(p)))                                                // padding
	if s.received += int64(len(p)); !s.answered || s.length >= 0 && s.received > s.length { // 9113 8.1
		return &http2.Error{Code: http2.ProtocolError, Stream: s.id, Why: "DATA before the head, or more than was announced"}
	}
	if s.from > 0 && len(s.body)+len(p) > cap(s.body) { // nothing of it is lent in a turn of the connection
		s.body, s.from = append(s.body[:0], s.body[s.from:]...), 0
	}
	if s.body == nil && len(p) > gathered {
		s.body = s.x.pool.content.Get()
	}
	s.body = append(s.body, p...)
	s.meter.Set(s.x.conn, cap(s.body))
	s.waker.Wake()
	if end {
		return s.ends()
	}
	return nil
}

// ends is called when the answer has come to its end.
func (s *stream) ends() error {
	if s.received < s.length {
		return &http2.Error{Code: http2.ProtocolError, Stream: s.id, Why: "less DATA than Content-Length says"} // 9113 8.1.1
	}
	s.whole = true
	s.state, _ = s.state.Receive(http2.Header{Type: http2.Data, Flags: http2.EndStream})
	s.waker.Wake()
	return nil
}

// peek lends content. What has come before a cut is still lent.
func (s *stream) peek(a *Response) ([]byte, error) {
	switch {
	case s.from < len(s.body):
		return s.body[s.from:len(s.body):len(s.body)], nil
	case s.whole:
		a.trailers = s.trailers
		return nil, io.EOF
	case s.lost != nil:
		return nil, s.lost
	}
	return nil, (*blockedStream)(s)
}

// discard also gives the window back, and a larger one to a server of which the Call takes all that comes.
func (s *stream) discard(n int) {
	x := s.x
	if n > len(s.body)-s.from {
		panic(errFewerRead)
	}
	s.from += n
	s.inflow.Take(uint32(n))
	all := s.from == len(s.body)
	if all {
		s.free()
	}
	if s.whole || s.lost != nil {
		return
	}
	if n := s.inflow.Give(); n > 0 {
		if size := s.inflow.Size(); all && size < widestWindow && !budget.Of(x.pool.s).Paused() {
			s.inflow.Grow(min(size, widestWindow-size))
			n += s.inflow.Give()
		}
		x.out = http2.AppendWindowUpdate(x.buffer(), s.id, n)
	}
}

// free gives the buffer back. What is lent of it stays as it is in this turn: the next to use it is the turn of a connection.
func (s *stream) free() {
	if s.body, s.from = s.body[:0], 0; cap(s.body) > gathered {
		s.x.pool.content.Put(s.body)
		s.body = nil
	}
	s.meter.Set(s.x.conn, cap(s.body))
}

// fail ends the stream. An answer that is whole stays so.
func (s *stream) fail(err error) {
	if s.lost == nil && !s.whole {
		s.lost = err
	}
	if s.state != http2.Reset {
		s.state = http2.Closed
	}
	s.waker.Wake()
}

// cancel resets the stream, unless it has ended.
func (s *stream) cancel(code http2.Code) {
	if s.state != http2.Reset && s.state != http2.Closed && s.x.phase < ending {
		s.x.out = http2.AppendRST(s.x.buffer(), s.id, code)
		s.x.late += 3 // a head, trailers, and DATA without content
		s.state = s.state.Send(http2.RSTStream, false)
	}
}

func (*stream) conn() *listener.Conn { return nil }

// leave ends the exchange. If nothing has come for some time, not even for others, the server is asked whether it is there.
func (s *stream) leave() {
	x := s.x
	if s.whole {
		s.cancel(http2.NoError)
	} else if s.cancel(http2.Cancel); x.phase < ending && x.pinged == 0 {
		if now := x.pool.s.Now(); now > max(x.heard, s.began)+answerTime {
			x.ping(now)
		}
	}
	s.free()
	x.remove(s)
}

// blockedStream is a stream as the error that its Call has to wait: for a head, for content, or for room.
type blockedStream stream

func (*blockedStream) Error() string { return "client: the server has neither answered nor taken more" }

// Arm has the task woken when something has come, or when there is room.
func (b *blockedStream) Arm(t *act.Task) { b.waker = t.Waker() }
