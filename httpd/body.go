package httpd

import (
	"bytes"
	"io"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Body is the content of a request, in whatever pieces it comes. It is read as a listener.Conn is: Peek lends, Discard
// takes, and what is not read holds up the client. What the handler leaves unread is thrown away, up to 256 KiB of it;
// of more the connection is closed instead.
type Body struct {
	e       *exchange
	kind    bodyKind
	asks    bool  // the client waits for a 100 (Continue)
	left    int64 // sized: not yet discarded
	length  int64 // -1: not known before its end
	piece   int   // chunked: data at the front of what is unread
	chunks  chunks
	octets  []byte // of the trailers
	err     error  // why no more can be read
	taken   int64  // octets, for the rate
	most    int64  // of them, when nobody wants the rest
	waiting time.Duration
	since   time.Duration // since when the handler waits for more, 0 if it does not
	cause   listener.Blocked
}

type bodyKind uint8

const (
	ended bodyKind = iota // there is none, or no more
	sized
	chunked
)

var (
	errExpectation = &refusal{417, "an expectation other than 100-continue"}           // 9110 10.1.1
	errSlowHead    = &refusal{408, "a head that takes too long"}                       // 9110 15.5.9
	errSlowBody    = &refusal{408, "a body that comes too slowly"}                     // 9110 15.5.9
	errCut         = &refusal{400, "the connection has ended in the middle of a body"} // 9112 8
	errLarge       = &refusal{413, "a body that is longer than the handler wants"}     // 9110 15.5.14
	errHandler     = &refusal{500, "the handler has failed"}                           // 9110 15.6.1
)

func (b *Body) reset() {
	if b.kind == chunked || b.chunks.state != inSize {
		b.chunks = chunks{trailers: head{fields: b.chunks.trailers.fields[:0]}}
	}
	b.kind, b.asks, b.left, b.length, b.piece, b.octets, b.err = ended, false, 0, 0, 0, nil, nil
	b.taken, b.waiting, b.since, b.cause = 0, 0, 0, nil
}

// begin is called with the head.
func (b *Body) begin(h *head, octets []byte, f framing) error {
	switch {
	case f.chunked:
		b.kind, b.length = chunked, -1
		b.chunks = chunks{trailers: head{fields: b.chunks.trailers.fields[:0]}}
	case f.length > 0:
		b.kind, b.left, b.length = sized, f.length, f.length
	}
	if h.special[expect] > 0 {
		return b.expectation(h, octets)
	}
	return nil
}

// expectation knows only 100-continue, which counts from HTTP/1.1 on and with a body to come (RFC 9110 10.1.1).
func (b *Body) expectation(h *head, octets []byte) (err error) {
	h.each(octets, expect, func(value []byte) bool {
		if !equalFold(value, "100-continue") {
			err = errExpectation
		}
		return err == nil
	})
	b.asks = h.minor > 0 && b.kind != ended
	return err
}

// Length is how long the whole body is; -1 when only its end will tell.
func (b *Body) Length() int64 { return b.length }

// Peek lends what there is of the body, at least a byte, until the turn ends. Otherwise the error says why: a
// listener.Blocked, io.EOF behind the last byte, or what is wrong with the body; a handler that fails with that has
// the client told so. The first Peek is what sends 100 (Continue) to a client that waits for it.
func (b *Body) Peek() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.kind == ended {
		return nil, io.EOF
	}
	in, err := b.more()
	if err != nil {
		return nil, b.stop(err)
	}
	b.asks = false // whoever sends waits for nothing (RFC 9110 10.1.1)
	return in, nil
}

// more returns the next piece.
func (b *Body) more() ([]byte, error) {
	if b.kind == sized {
		in, err := b.e.x.conn.Peek(1)
		n := min(int64(len(in)), b.left)
		return in[:n:n], err // who appends to it must not write over the next request
	}
	for want := 1; ; {
		in, err := b.e.x.conn.Peek(want)
		if b.piece > 0 || err != nil {
			n := min(len(in), b.piece)
			return in[:n:n], err
		}
		taken, data, over, err := b.chunks.next(in)
		if err != nil {
			return nil, err
		}
		if over {
			b.trail(in[:taken])
			b.e.x.conn.Discard(taken)
			b.kind = ended
			return nil, io.EOF
		}
		b.e.x.conn.Discard(taken - len(data))
		b.piece = len(data)
		want = len(in) - taken + 1 // more than the incomplete trailers that may be there
		if b.piece > 0 {
			want = 1
		}
	}
}

// trail keeps the trailers: they may be asked for in any turn.
func (b *Body) trail(octets []byte) {
	if t := &b.chunks.trailers; len(t.fields) > 0 {
		b.octets = bytes.Clone(octets[len(octets)-t.length:])
	}
}

// stop says what an error means for the body.
func (b *Body) stop(err error) error {
	switch cause := err.(type) {
	case listener.Blocked:
		if b.asks && !b.e.out.sent { // behind a final status it would be taken for content
			b.e.out.emit(goOn)
		}
		b.asks = false
		if b.patience() <= 0 {
			b.err = errSlowBody
			return b.err
		}
		b.cause = cause
		return (*blockedBody)(b)
	case *refusal:
		b.err = err
		return err
	}
	switch {
	case err == listener.ErrTooLong: // nothing else has to be there as a whole
		err = errTrailers
	case err == io.EOF && b.kind == ended:
		b.asks = false // it has come, and was empty
		return err
	case err == io.EOF:
		err = errCut
	}
	b.err = err
	return err
}

var goOn = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// patience is how long the server is going to wait for more.
func (b *Body) patience() time.Duration {
	grace := or(b.e.x.server.Timeouts.Body, 5*time.Second)
	return grace + time.Duration(min(b.taken, 1<<40))*(time.Second/slowest) - b.waiting // 1<<40 would be a century
}

// woken ends a wait for more, with the turn: the handler may not want it any longer.
func (b *Body) woken() {
	if b.since != 0 {
		b.waiting += b.e.x.home.s.Now() - b.since
		b.since = 0
	}
}

// Discard takes the first n bytes of what Peek lent. It panics if there are not so many.
func (b *Body) Discard(n int) {
	if n == 0 {
		return
	}
	if n < 0 || b.kind == sized && int64(n) > b.left || b.kind == chunked && n > b.piece || b.kind == ended {
		panic("httpd: Discard of more than there is")
	}
	b.e.x.conn.Discard(n)
	b.taken += int64(n)
	if b.kind == chunked {
		b.piece -= n
	} else if b.left -= int64(n); b.left == 0 {
		b.kind = ended
	}
}

// Trailer is the value of the first trailer field with this name (RFC 9110 6.5); nil if there is none, and until Peek
// has returned io.EOF.
func (b *Body) Trailer(name string) []byte {
	if b.octets == nil {
		return nil
	}
	for _, f := range b.chunks.trailers.fields {
		if equalFold(f.name.of(b.octets), name) {
			return f.value.of(b.octets)
		}
	}
	return nil
}

// blockedBody is a Body as the error that says that it would have to wait.
type blockedBody Body

func (*blockedBody) Error() string { return "httpd: no more of the body is there yet" }

// Arm has the task woken when more has come, and when the client was too slow.
func (b *blockedBody) Arm(t *act.Task) {
	b.cause.Arm(t)
	b.since = max(1, t.Scheduler().Now())
	b.e.x.wakeAt(t, b.since+(*Body)(b).patience())
}
