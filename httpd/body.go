package httpd

import (
	"iter"
	"time"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Body is the content of a request, in the pieces in which it arrives. It is read like a listener.Conn: Peek lends bytes,
// Discard consumes them, and a body that is not read holds up the client. What the handler leaves unread is thrown away, up to
// 256 KiB. If there is more, or the head of the answer is sent before the end of a body in chunks has arrived, the answer says
// that the connection closes after it (RFC 9112 9.3, 9.6). An answer that is complete waits for that end, for up to 500 ms.
type Body struct {
	x        exchange
	length   int64        // -1: not known before its end
	trailers *syntax.Head // which follow the content; nil: there are none
}

// Length returns the length of the whole body in bytes, as the client has announced it, or -1 if only its end will tell. It
// is 0 for a request without a body.
func (b *Body) Length() int64 { return b.length }

// Peek lends the bytes of the body that have arrived, at least one, until the turn ends. Otherwise the error is an
// act.Blocked, which wakes the task when more has arrived; io.EOF after the last byte; or an error that says what is wrong
// with the body: a handler that fails with it makes the server tell the client. For a body that arrives too slowly, the error
// is an os.ErrDeadlineExceeded and a net.Error. The first Peek sends 100 (Continue) to a client that waits for it.
func (b *Body) Peek() ([]byte, error) { return b.x.peek() }

// Discard consumes the first n of the bytes that Peek has lent, so that Peek returns the ones after them. It panics if there
// are fewer.
func (b *Body) Discard(n int) { b.x.discard(n) }

// Read is Peek, copy and Discard in one, for callers with memory of their own. Unlike an io.Reader it returns an act.Blocked
// error instead of waiting. With a large p most bodies are received into it, without a copy.
func (b *Body) Read(p []byte) (int, error) { return b.x.read(p) }

// SetTimeout replaces Timeouts.Body by d for this body, from now on. 0 restores the Server's time-out, and a negative d means no
// limit. The rest that a handler leaves unread has the Server's time-out again.
func (b *Body) SetTimeout(d time.Duration) { b.x.setTimeout(d) }

// Trailer returns the value of the first trailer field with this name (RFC 9110 6.5), without regard to case. It returns
// nil if there is none, and until Peek has returned io.EOF. The value is lent until the turn ends.
func (b *Body) Trailer(name string) []byte {
	if b.trailers == nil {
		return nil
	}
	return syntax.Get(b.trailers.Fields, b.trailers.Text, name)
}

// Trailers returns the names and values of all trailer fields, in order, lent until the turn ends. There are none until Peek
// has returned io.EOF.
func (b *Body) Trailers() iter.Seq2[[]byte, []byte] {
	if b.trailers == nil {
		return syntax.Each(nil, nil)
	}
	return syntax.Each(b.trailers.Fields, b.trailers.Text)
}
