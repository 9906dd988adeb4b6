package client

import (
	"crypto/tls"
	"errors"
	"io"
	"iter"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// Response is the answer to a Call. The bytes that its methods return are lent until the turn ends: copy what is needed later, or call
// the method again. A Response belongs to the task of its Call.
type Response struct {
	call     *Call
	head     syntax.Head
	status   int
	length   int64        // -1: not known before the end
	trailers *syntax.Head // once the content has ended, if it has any
	heard    bool         // a byte of an answer has come
	err      error        // why nothing more comes, io.EOF at the end
}

// Status returns the status code, from 100 to 599.
func (r *Response) Status() int { return r.status }

// Proto returns "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0". It is for the turn in which the Call is Done.
func (r *Response) Proto() string {
	if x, is := r.call.exchange.(*http1Conn); is && x.reading.old {
		return "HTTP/1.0"
	} else if is {
		return "HTTP/1.1"
	}
	return "HTTP/2.0"
}

// TLS returns what the connection has negotiated; false means plain text. It is for the turn in which the Call is Done.
func (r *Response) TLS() (tls.ConnectionState, bool) {
	switch x := r.call.exchange.(type) {
	case *http1Conn:
		return secure.State(x.Conn)
	case *stream:
		return secure.State(x.x.conn)
	}
	return tls.ConnectionState{}, false
}

// Length returns the length of the content in bytes, or -1 if only its end will tell. The answer to HEAD has the length that the
// server has announced, and no content.
func (r *Response) Length() int64 { return r.length }

// Header returns the value of the first header field with this name, without regard to case, or nil if there is none.
func (r *Response) Header(name string) []byte { return syntax.Get(r.head.Fields, r.head.Text, name) }

// Fields returns the names and values of all header fields, in the order in which they came.
func (r *Response) Fields() iter.Seq2[[]byte, []byte] { return syntax.Each(r.head.Fields, r.head.Text) }

// Trailer returns the value of the first trailer field with this name, or nil: there are none until Peek has returned io.EOF.
func (r *Response) Trailer(name string) []byte {
	if r.trailers == nil {
		return nil
	}
	return syntax.Get(r.trailers.Fields, r.trailers.Text, name)
}

// Trailers returns the names and values of all trailer fields, in order.
func (r *Response) Trailers() iter.Seq2[[]byte, []byte] {
	if r.trailers == nil {
		return syntax.Each(nil, nil)
	}
	return syntax.Each(r.trailers.Fields, r.trailers.Text)
}

// DropHead frees the memory of the fields, of the request and of the answer: some hundred bytes, for an answer that is going to last.
// There are no fields after that.
func (r *Response) DropHead() { r.call.lines, r.head = nil, syntax.Head{} }

// Peek lends the bytes of the content that have come, at least one. Otherwise the error is an act.Blocked, io.EOF after the last byte,
// or an *Error: an answer that is cut short does not end with io.EOF.
func (r *Response) Peek() ([]byte, error) {
	c := r.call
	if r.err != nil {
		return nil, c.over()
	}
	in, err := c.exchange.peek(r)
	if err == nil {
		c.progress()
		return in, nil
	}
	if blocked, is := err.(act.Blocked); is {
		if err = c.late(c.pool.s.Now()); err == nil {
			c.in = blocked
			return nil, (*blockedInput)(c)
		}
	}
	if r.err = err; err != io.EOF {
		r.err = c.failure(err, true)
		c.stop()
	}
	return nil, r.err
}

// Discard consumes the first n of the bytes that Peek has lent. It panics if there are fewer.
func (r *Response) Discard(n int) {
	if r.call.exchange != nil {
		r.call.exchange.discard(n)
	}
}

// Read is Peek, copy and Discard in one. Unlike an io.Reader it returns an act.Blocked instead of waiting.
func (r *Response) Read(p []byte) (int, error) {
	in, err := r.Peek()
	n := copy(p, in)
	r.Discard(n)
	return n, err
}

var (
	errUnasked = errors.New("the server has switched protocols without being asked")
	errOver    = errors.New("the answer was closed")
)

// Conn takes the connection of an answer of 101 (Switching Protocols) to a Call with Upgrade. The caller then owns it and closes it. It
// no longer counts for MaxConns. Without such an answer Conn returns nil.
func (r *Response) Conn() *listener.Conn {
	c := r.call
	if c.exchange == nil || c.Upgrade == "" || r.status != 101 {
		return nil
	}
	conn := c.exchange.conn()
	c.exchange, r.err = nil, c.failure(errOver, true)
	c.stop()
	return conn
}

// Close ends the answer. If all of it and of the request has gone over the connection, the next Call uses that. Otherwise the server
// is told at once that nobody wants the rest: a connection of HTTP/1 is closed, a stream of HTTP/2 is reset. A second Close does
// nothing. It returns nil.
func (r *Response) Close() error {
	c := r.call
	if c.exchange != nil {
		_, _ = c.exchange.peek(r) // the end may be all that was not read
	}
	if c.stop(); r.err == nil {
		r.err = errOver
	}
	return nil
}
