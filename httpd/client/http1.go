package client

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
)

// http1Conn is a connection of HTTP/1, and the exchange on it. It has no task: the task of a Call reads and writes it. At rest it has
// no parser.
type http1Conn struct {
	*listener.Conn
	pool    *pool
	until   time.Duration // how long it is kept, while it is idle
	used    bool          // it has carried a request
	private bool          // it is for one Call alone
	reading *reading      // nil at rest
}

// reading is what an exchange needs.
type reading struct {
	parser  *http1.Parser // nil once the head has come
	chunks  http1.Chunks
	pending []byte // of the request: what there was no room for
	coded   bool   // the request is sent in chunks
	mute    bool   // the answer has no content, whatever its fields say
	asked   string // the protocol to switch to
	last    bool   // no other request follows
	old     bool   // the answer is of HTTP/1.0
	keeps   bool   // the connection goes on after the answer
	chunked bool
	byEnd   bool  // of the connection
	left    int64 // of content with a length
	lent    int   // bytes of a chunk, which are the next on the connection
	state   answerState
	written int64 // content of the request
	length  int64 // likewise, in all; -1: unknown
	sent    bool  // all of the request was written
}

type answerState uint8

const (
	inHead answerState = iota
	inBody
	complete
)

var (
	errEnd       = errors.New("the connection has ended before the answer")
	errCoded     = errors.New("an answer with status 1xx or 204 that has a Transfer-Encoding") // RFC 9112 6.1
	errProtocol  = errors.New("the server has switched to another protocol than the one that was asked for")
	errStatus    = errors.New("a status code that is not from 100 to 599") // RFC 9110 15
	errFewerRead = errors.New("client: Discard of more than Peek has lent")
)

// begin sends the head, with the rules of RFC 9112 3 and 6.
func (x *http1Conn) begin(c *Call) (reused bool) {
	r := x.pool.desk.reading()
	x.reading = r
	r.mute, r.asked, r.length = c.Method == "HEAD", c.Upgrade, c.Length
	r.coded, r.sent = c.Length < 0, c.Length == 0
	to := append(x.pool.desk.scratch[:0], c.Method...)
	to = append(append(to, ' '), c.Target...)
	to = append(append(to, " HTTP/1.1\r\nHost: "...), c.Host...)
	to = append(to, c.lines...)
	switch {
	case r.coded:
		to = append(to, "\r\nTransfer-Encoding: chunked"...)
	case c.Length > 0 || wantsLength(c.Method):
		to = appendLength(to, c.Length)
	}
	if c.Expect {
		to = append(to, "\r\nExpect: 100-continue"...)
	}
	switch r.last = c.CloseAfter; {
	case c.Upgrade != "":
		to = append(append(to, "\r\nConnection: upgrade\r\nUpgrade: "...), c.Upgrade...)
	case r.last:
		to = append(to, "\r\nConnection: close"...)
	}
	to = append(to, "\r\n\r\n"...)
	x.pool.desk.scratch = to
	x.emit(to)
	reused, x.used = x.used, true
	return reused
}

// wantsLength reports whether a request without content says so (RFC 9110 8.6).
func wantsLength(method string) bool { return method == "POST" || method == "PUT" || method == "PATCH" }

// emit gives bytes to the connection, and keeps those for which it has no room. An error comes again when the answer is read.
func (x *http1Conn) emit(p []byte) {
	r := x.reading
	if len(r.pending) == 0 {
		n, _ := x.Conn.Write(p)
		p = p[n:]
	}
	r.pending = append(r.pending, p...)
}

// push sends what is kept, and returns why not all of it was sent.
func (x *http1Conn) push() (err error) {
	r := x.reading
	if len(r.pending) > 0 {
		n, err := x.Conn.Write(r.pending)
		if r.pending = r.pending[n:]; err != nil {
			return err
		}
		r.pending = nil
	}
	return nil
}

func (x *http1Conn) write(p []byte) (n int, err error) {
	r := x.reading
	if err := x.push(); err != nil {
		return 0, err
	}
	if !r.coded || len(p) == 0 {
		n, err = x.Conn.Write(p)
	}
	for r.coded && n < len(p) && err == nil {
		if room := x.Conn.Room(); room > 0 {
			n += x.chunkOf(p[n:][:min(len(p)-n, room)])
		} else if _, err = x.Conn.Write(nil); err == nil {
			err = x.Conn.Flush() // what was gathered is all that was in the way
		}
	}
	r.written += int64(n)
	r.sent = !r.coded && r.written == r.length
	return n, err
}

// chunkOf sends content as a chunk. What there is no room for is kept.
func (x *http1Conn) chunkOf(p []byte) int {
	to := append(strconv.AppendInt(x.pool.desk.scratch[:0], int64(len(p)), 16), "\r\n"...)
	x.pool.desk.scratch = to
	x.emit(to)
	x.emit(p)
	x.emit(syntax.Bytes("\r\n"))
	return len(p)
}

func (x *http1Conn) end(trailers []byte) {
	r := x.reading
	if r.coded {
		x.emit(syntax.Bytes("0"))
		x.emit(trailers)
		x.emit(syntax.Bytes("\r\n\r\n"))
	}
	r.sent = true
}

// head reads the head of an answer (RFC 9112 4).
func (x *http1Conn) head(a *Response) error {
	r := x.reading
	pushed := x.push()
	if r.parser == nil {
		r.parser = x.pool.desk.parser()
	}
	in, err := x.arrived(a)
	if isBlocked(err) && isBlocked(pushed) {
		return both{err.(act.Blocked), pushed.(act.Blocked)}
	}
	if err != nil {
		return err
	}
	p := r.parser
	var f http1.Framing
	if err := p.Framing(in, &f); err != nil {
		return err
	}
	a.status, a.length = int(p.Status), f.Length
	text, fields := append(a.head.Text[:0], in[:p.Length]...), append(a.head.Fields[:0], p.Fields...)
	a.head = p.Head
	a.head.Text, a.head.Fields = text, fields // the parser's are for the next answer
	r.parser, r.old = nil, p.Minor == 0
	defer x.pool.desk.keepParser(p)
	switch {
	case p.Status > 599:
		return errStatus
	case p.Status == 101 && !p.Upgrades(in, r.asked):
		return errProtocol
	}
	x.Conn.Discard(p.Length)
	return x.frame(a, f)
}

// arrived returns what has come, once the parser has read a whole head.
func (x *http1Conn) arrived(a *Response) ([]byte, error) {
	for n := 1; ; {
		in, err := x.Conn.Peek(n)
		if err == io.EOF {
			return nil, errEnd
		}
		if err != nil {
			return nil, err
		}
		a.heard = true
		ended, err := x.reading.parser.Read(in)
		if ended || err != nil {
			return in, err
		}
		n = len(in) + 1
	}
}

// frame decides where the content of the answer ends (RFC 9112 6.3), and whether the connection goes on after it.
func (x *http1Conn) frame(a *Response, f http1.Framing) error {
	r := x.reading
	switches := a.status == 101
	r.keeps = f.Persistent && !switches && !r.last
	r.chunked, r.byEnd, r.left = f.Chunked, !f.Chunked && f.Length < 0, f.Length
	if bodiless := syntax.Bodiless(a.status); bodiless || r.mute {
		if bodiless && f.Chunked && a.status != 304 {
			return errCoded
		}
		r.chunked, r.byEnd, r.left = false, false, 0
		if bodiless {
			a.length = 0
		}
	}
	if f.Chunked && !syntax.Bodiless(a.status) {
		a.length = -1
	}
	if a.status >= 200 || switches {
		if r.state = inBody; r.chunked {
			r.chunks.Reset()
		} else if r.left == 0 && !r.byEnd {
			r.state = complete
		}
	}
	return nil
}

func (x *http1Conn) peek(a *Response) ([]byte, error) {
	r := x.reading
	if r.state == complete {
		return nil, io.EOF
	}
	pushed := x.push() // any other error comes with the answer
	in, err := x.content(a)
	if blocked, is := err.(act.Blocked); is && isBlocked(pushed) {
		err = both{blocked, pushed.(act.Blocked)}
	}
	return in, err
}

func (x *http1Conn) content(a *Response) ([]byte, error) {
	r := x.reading
	if r.chunked {
		return x.chunk(a)
	}
	in, err := x.Conn.Peek(1)
	switch {
	case err == io.EOF && r.byEnd:
		r.state, r.keeps = complete, false
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case err == nil && !r.byEnd:
		in = in[:min(int64(len(in)), r.left)]
	}
	return in, err
}

// chunk lends data of a body in chunks. What is between the data is consumed.
func (x *http1Conn) chunk(a *Response) ([]byte, error) {
	r := x.reading
	for n := 1; ; {
		in, err := x.Conn.Peek(n)
		switch {
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case r.lent > 0:
			return in[:min(len(in), r.lent)], nil
		}
		taken, data, ended, err := r.chunks.Next(in)
		if err != nil {
			return nil, err
		}
		if ended {
			t := r.chunks.Trailers
			if len(t.Fields) > 0 {
				a.trailers = &syntax.Head{Text: bytes.Clone(in[taken-t.Length : taken]), Fields: slices.Clone(t.Fields)}
			}
			r.state = complete
		}
		x.Conn.Discard(taken - len(data))
		switch {
		case ended:
			return nil, io.EOF
		case len(data) > 0:
			r.lent = len(data)
			return data, nil
		}
		n = len(in) - taken + 1
	}
}

func (x *http1Conn) discard(n int) {
	r := x.reading
	switch {
	case n == 0:
		return
	case r.chunked:
		if r.lent -= n; r.lent < 0 {
			panic(errFewerRead)
		}
	case !r.byEnd:
		if r.left -= int64(n); r.left < 0 {
			panic(errFewerRead)
		}
		if r.left == 0 {
			r.state = complete
		}
	}
	x.Conn.Discard(n)
}

func (x *http1Conn) conn() *listener.Conn {
	x.pool.desk.keepReading(x.reading)
	x.reading = nil
	x.pool.free()
	return x.Conn
}

// silent reports whether nothing has come that was not read. It costs no system call, since the engine knows what is there. One that
// has to begin to receive first has done so when the connection is given back, and knows it when it is taken.
func (x *http1Conn) silent() bool {
	_, err := x.Conn.Peek(1)
	return isBlocked(err)
}

// leave keeps the connection for the next Call, if nothing is left of this one on it.
func (x *http1Conn) leave() {
	r := x.reading
	x.reading = nil
	finished := r.state == complete && r.sent
	clean := finished && r.keeps && len(r.pending) == 0 && x.silent()
	x.pool.desk.keepReading(r)
	switch {
	case clean && !x.private:
		x.pool.give(x)
		return
	case finished:
		_ = x.Conn.Close() // an error means that it has gone
	default:
		x.Conn.Abort()
	}
	x.pool.free()
}
