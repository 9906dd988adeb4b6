package httpd

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
)

// content reads the content of a request of HTTP/1 from its connection.
type content struct {
	kind  contentKind
	asks  bool  // the client waits for 100 (Continue)
	left  int64 // sized: not yet discarded
	piece int   // chunked: data at the front of what is unread
	err   error // why no more can be read
	taken int64 // bytes
	most  int64 // of them, while what is left is thrown away
	cause act.Blocked
	patience
}

type contentKind uint8

const (
	ended contentKind = iota // there is none, or no more
	sized
	chunked
)

var (
	errSlowHead = &syntax.Refusal{Status: 408, Why: "a head that takes too long"} // 9110 15.5.9
	errSlowBody = &syntax.Refusal{Status: 408, Why: "a body that comes too slowly",
		Err: os.ErrDeadlineExceeded} // 9110 15.5.9
	errCut = &syntax.Refusal{Status: 400, Why: "the connection has ended in the middle of a body",
		Err: io.ErrUnexpectedEOF} // 9112 8
	errLarge    = &syntax.Refusal{Status: 413, Why: "a body that is longer than the handler wants"}      // 9110 15.5.14
	errTooLarge = &syntax.Refusal{Status: 413, Why: "a body that is longer than Server.MaxBody"}         // 9110 15.5.14
	errCrowded  = &syntax.Refusal{Status: 503, Why: "more unfinished heads than Server.MaxHeads allows"} // 9110 15.6.4
	errHandler  = &syntax.Refusal{Status: 500, Why: "the handler has failed"}                            // 9110 15.6.1
)

// expect is called with the head of a request that has a body.
func (e *http1Exchange) expect() {
	f, c := &e.framing, &e.content
	c.asks = f.Continue
	if f.Chunked {
		c.kind, e.in.Body.length = chunked, -1
		if e.chunks == nil {
			e.chunks = &http1.Chunks{}
		}
		e.chunks.Reset()
	} else {
		c.kind, c.left, e.in.Body.length = sized, f.Length, f.Length
	}
	e.setTimeout(0)
}

func (e *http1Exchange) setTimeout(d time.Duration) {
	e.content.grant(timeout.Or(cmp.Or(d, e.session.server.Timeouts.Body), standardBody))
}

// leave is called when the handler has left the rest, which nobody has patience for.
func (c *content) leave(v *Server) {
	c.most = c.taken + drainable
	c.grant(v.restTime())
}

// restTime is how long the rest of a body may take that its handler has left.
func (v *Server) restTime() time.Duration {
	if d := timeout.Or(v.Timeouts.Body, standardRest); d < timeout.Never {
		return min(d, standardRest)
	}
	return timeout.Never
}

func (e *http1Exchange) peek() ([]byte, error) {
	c := &e.content
	if c.err != nil {
		return nil, c.err
	}
	if c.kind == ended {
		return nil, io.EOF
	}
	in, err := e.more()
	if err == nil && e.session.server.tooLarge(c.taken+int64(len(in))) {
		err = errTooLarge
	}
	if err != nil {
		return nil, e.noMore(err)
	}
	c.asks = false // a client that sends does not wait (RFC 9110 10.1.1)
	return in, nil
}

func (e *http1Exchange) read(p []byte) (int, error) {
	if c, conn := &e.content, e.session.conn; c.err != nil || c.kind != sized || conn.Buffered() > 0 || len(p) == 0 {
		in, err := e.peek()
		n := copy(p, in)
		e.discard(n)
		return n, err
	} else if n, err := conn.Read(p[:min(int64(len(p)), c.left)]); err != nil {
		return n, e.noMore(err)
	} else {
		c.asks = false // as in peek
		e.took(n)
		return n, nil
	}
}

// more returns the next piece.
func (e *http1Exchange) more() ([]byte, error) {
	c, conn := &e.content, e.session.conn
	if c.kind == sized {
		in, err := conn.Peek(1)
		n := min(int64(len(in)), c.left)
		return in[:n:n], err // what is appended must not overwrite the next request
	}
	for want := 1; ; {
		in, err := conn.Peek(want)
		if c.piece > 0 || err != nil {
			n := min(len(in), c.piece)
			return in[:n:n], err
		}
		taken, data, over, err := e.chunks.Next(in)
		if err != nil {
			return nil, err
		}
		if over {
			if trailers := e.chunks.Trailers; len(trailers.Fields) > 0 {
				trailers.Text = bytes.Clone(in[taken-trailers.Length : taken]) // for any turn
				e.in.Body.trailers = &trailers.Head
			}
			conn.Discard(taken)
			c.kind = ended
			return nil, io.EOF
		}
		conn.Discard(taken - len(data))
		c.piece = len(data)
		want = len(in) - taken + 1 // more than the incomplete trailers that may be there
		if c.piece > 0 {
			want = 1
		}
	}
}

// noMore returns what an error means for the content.
func (e *http1Exchange) noMore(err error) error {
	c := &e.content
	switch cause := err.(type) {
	case act.Blocked:
		if c.asks && e.out.progress == gathering { // after a final status it would be taken for content
			e.inform(100, nil)
		}
		c.asks = false
		if c.patience.left <= 0 {
			c.err = errSlowBody
			return c.err
		}
		c.cause = cause
		return (*blockedContent)(e)
	case *syntax.Refusal:
		c.err = err
		return err
	}
	switch {
	case err == listener.ErrTooLong: // nothing else has to be there as a whole
		err = http1.ErrTrailers
	case err == io.EOF && c.kind == ended:
		c.asks = false // it has come, and was empty
		return err
	case err == io.EOF:
		err = errCut
	}
	c.err = err
	return err
}

func (e *http1Exchange) discard(n int) {
	c := &e.content
	if n < 0 || c.kind == sized && int64(n) > c.left || c.kind == chunked && n > c.piece || c.kind == ended && n > 0 {
		panic("httpd: Discard of more than there is")
	}
	e.session.conn.Discard(n)
	e.took(n)
}

// took counts n more bytes that were taken.
func (e *http1Exchange) took(n int) {
	c := &e.content
	c.taken += int64(n)
	c.took(n, c.kind == chunked)
	if c.kind == chunked {
		c.piece -= n
	} else if c.left -= int64(n); c.left == 0 {
		c.kind = ended
	}
}

// blockedContent is an exchange as the error that more of the content has to be waited for.
type blockedContent http1Exchange

func (*blockedContent) Error() string { return "httpd: no more of the body is there yet" }

// Arm has the task woken when more has come, and when the client has been too slow.
func (b *blockedContent) Arm(t *act.Task) {
	e := (*http1Exchange)(b)
	e.content.cause.Arm(t)
	e.session.timer.WakeAt(t, e.content.begin(t.Scheduler().Now()))
}
