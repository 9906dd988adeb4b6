package httpd

import (
	"iter"
	"time"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Body is the content of a request, in the pieces in which it comes. It is read as a listener.Conn is: Peek lends bytes,
// Discard takes them, and a body that is not read holds up the client. What the handler leaves unread is thrown away, up
// to 256 KiB. If there is more, or the head of the answer is sent before the end of a body in chunks has come, the answer says
// that the connection is closed behind it (RFC 9112 9.3, 9.6). An answer that is complete waits for that end, for up to 500 ms.
type Body struct {
	x        exchange
	length   int64          // -1: not known before its end
	fields   []syntax.Field // that came behind it, in trailers
	trailers []byte
}

// Length returns the length of the whole body, or -1 if it is known only at its end.
func (b *Body) Length() int64 { return b.length }

// Peek lends the bytes of the body that are there, at least one, until the turn ends. Otherwise the error says why: an
// act.Blocked; io.EOF after the last byte; or what is wrong with the body, which the client is told if the handler fails with
// that error. Of a body that comes too slowly it is an os.ErrDeadlineExceeded, and a net.Error. The first Peek sends 100
// (Continue) to a client that waits for it.
func (b *Body) Peek() ([]byte, error) { return b.x.peek() }

// Discard takes the first n bytes of what Peek lent. It panics if there are fewer.
func (b *Body) Discard(n int) { b.x.discard(n) }

// Read is Peek, copy and Discard in one, for callers with memory of their own. Unlike an io.Reader it returns an act.Blocked
// error instead of waiting. With a large p most bodies are received into it, without a copy.
func (b *Body) Read(p []byte) (int, error) { return b.x.read(p) }

// SetTimeout has d take the place of Timeouts.Body for this body, from now on. 0 means that of the Server, and a negative d means
// no limit. For the rest that the handler leaves unread it is that of the Server again.
func (b *Body) SetTimeout(d time.Duration) { b.x.setTimeout(d) }

// Trailer returns the value of the first trailer field with this name (RFC 9110 6.5), without regard to case. It returns
// nil if there is none, and until Peek has returned io.EOF.
func (b *Body) Trailer(name string) []byte { return syntax.Get(b.fields, b.trailers, name) }

// Trailers returns the names and values of all trailer fields, in order, and none until Peek has returned io.EOF.
func (b *Body) Trailers() iter.Seq2[[]byte, []byte] { return syntax.Each(b.fields, b.trailers) }
