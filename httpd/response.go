package httpd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
)

// Response is the answer to a request. Up to 4 KiB of content are gathered first: an answer that is complete by then
// gets a Content-Length automatically. The length of a longer one is set by SetLength; otherwise it is sent in chunks,
// or to a client of HTTP/1.0 until the end of the connection.
//
// The server itself sets Date, Content-Length, Transfer-Encoding and Connection. There is no Content-Type unless the
// handler adds one.
type Response struct {
	x        exchange
	fields   []byte // of the handler, each as CRLF name: value
	trailers []byte // likewise
	body     []byte // gathered
	answer
}

// answer is the part of a Response that is new each time.
type answer struct {
	status    int
	whole     []byte // by SetBody, sent without a copy
	written   int64
	announced int64 // by SetLength, -1: not
	left      int64 // of the length that the head has said, -1: it has said none
	progress  progress
	mute      bool                            // it answers HEAD: everything as with GET, but no content
	upgrade   bool                            // there is an Upgrade field
	last      bool                            // the connection is closed after it; once the head is out, the client knows
	timeout   time.Duration                   // in place of Timeouts.Write; 0: none
	err       error                           // why the answer is none
	lent      *Sender                         // by Lend
	next      func(*listener.Conn) act.Action // by SwitchProtocols or Hijack
}

// progress is how far an answer is. It only goes on, but for short, which may become sent again.
type progress uint8

const (
	gathering progress = iota // the head can be changed
	sent                      // the head is out
	short                     // likewise, and the latest Write did not take all
	enough                    // likewise, and content was written that HEAD does not send
	hijacked                  // there is no answer, or no more of it
	over                      // Server.OnResponse has been called
)

// gathered is how much is kept back to find out the Content-Length, and to make chunks larger.
const gathered = 4 << 10

var (
	errNoContent = errors.New("httpd: a response with this status has no content") // 101, 204, 205 and 304
	errLength    = errors.New("httpd: the content is not as long as was announced")
	// ErrLate is the error of an answer whose status or fields were changed after its head had been sent: Write returns it.
	ErrLate = errors.New("httpd: the head of the response has been sent")
	// ErrSlow is returned when the client takes the response too slowly. It is an os.ErrDeadlineExceeded, and a net.Error whose
	// Timeout returns true. So is the error of a Body that comes too slowly.
	ErrSlow error = slowClient{}
	// ErrAbort is for an action that fails in order to abort its connection: t.Fail(httpd.ErrAbort). The client gets no
	// answer, even if nothing of it was sent yet, and sees that something is missing. ErrAbort itself is logged at level
	// debug and does not fail the task. An error that wraps both ErrAbort and another error aborts the connection and
	// fails the task.
	ErrAbort = errors.New("httpd: the handler aborts the connection")
	// ErrNoUpgrade is returned by Response.SwitchProtocols if the client has not asked for that protocol.
	ErrNoUpgrade = errors.New("httpd: the client has not asked for an upgrade to this protocol")
)

type slowClient struct{}

func (slowClient) Error() string { return "httpd: the client takes the response too slowly" }
func (slowClient) Unwrap() error { return os.ErrDeadlineExceeded }

// Timeout and Temporary implement net.Error.
func (slowClient) Timeout() bool   { return true }
func (slowClient) Temporary() bool { return true }

func (w *Response) reset() {
	if max(cap(w.body), cap(w.fields), cap(w.trailers)) > gathered {
		w.body, w.fields, w.trailers = nil, nil, nil
	}
	w.fields, w.trailers, w.body = w.fields[:0], w.trailers[:0], w.body[:0]
	w.answer = answer{}
	w.status, w.announced, w.left = 200, -1, -1
}

// early reports whether the head can be changed. After the head the answer fails; for a hijacked connection it does
// not matter.
func (w *Response) early() bool {
	if w.progress > gathering && w.progress < hijacked {
		w.fail(ErrLate)
	}
	return w.progress == gathering
}

// SetStatus sets the status code, from 200 to 599; without it the status is 200. It panics on any other code. The answer
// fails if the head has been sent.
func (w *Response) SetStatus(code int) {
	switch {
	case code < 200 || code > 599: // 1xx are not answers; other first digits have no meaning (RFC 9110 15)
		panic(fmt.Sprintf("httpd: %d is not a status that a request can be answered with", code))
	case w.early():
		w.status, w.next = code, nil
	}
}

// Status returns the status code that was sent or is going to be, or 0 if Hijack was called before the head was sent. In
// Server.OnResponse it is 0 if no answer was sent.
func (w *Response) Status() int { return w.status }

// Written returns how many bytes of content were given to the connection so far; the bytes of a Sender count when its loan
// ends. For HEAD it returns how many there would have been.
func (w *Response) Written() int64 { return w.written }

// Add adds a field, after fields of the same name. The answer fails (see Handler) if the name is not a token (RFC 9110 5.6.2), if
// the value has a control character (RFC 9110 5.5), if the server itself sets the field, or if the head has been sent. The field
// Upgrade is only for status 426, and names the protocols that the client should switch to.
func (w *Response) Add(name, value string) {
	kind, ok := addable(name, value)
	switch {
	case !w.early():
	case !ok:
		w.fail(fmt.Errorf("httpd: not a field of a response: %q: %q", name, value))
	default:
		w.fields = appendField(w.fields, name, value)
		w.upgrade = w.upgrade || kind == syntax.Upgrade
	}
}

// Set replaces the fields of this name that were added before, and is otherwise like Add. Case does not matter.
func (w *Response) Set(name, value string) {
	if !w.early() {
		return
	}
	kept := w.fields[:0]
	for rest := w.fields; len(rest) > 0; {
		n := len(rest)
		if i := bytes.Index(rest[2:], crlf); i >= 0 {
			n = 2 + i
		}
		if old, _, _ := bytes.Cut(rest[2:n], colon); !syntax.EqualFold(old, name) {
			kept = append(kept, rest[:n]...)
		}
		rest = rest[n:]
	}
	w.fields = kept
	w.Add(name, value)
}

var crlf, colon = []byte("\r\n"), []byte(":")

// Field is a header field that was checked when it was made. It saves the check for a field that many responses have: see
// [NewField] and [Response.AddField]. Any goroutine may use it.
type Field struct{ line string }

// NewField makes a Field, usually for a package variable. It panics if name or value is not valid, if the server sets the
// field itself, such as Date or Content-Length, and for Upgrade. Any goroutine.
func NewField(name, value string) Field {
	if kind, ok := addable(name, value); !ok || kind != syntax.Ordinary {
		panic(fmt.Sprintf("httpd: not a field of a response: %q: %q", name, value))
	}
	return Field{string(appendField(nil, name, value))}
}

// AddField is [Response.Add] for a [Field], without the checks. The zero Field adds nothing.
func (w *Response) AddField(f Field) {
	if w.early() {
		w.fields = append(w.fields, f.line...)
	}
}

// AddTrailer adds a field that is sent after the content. HTTP/1.1 has trailers only after chunks: a response with
// trailers is sent in chunks, unless its length is set. Clients of HTTP/1.0, and responses with a length, get none.
func (w *Response) AddTrailer(name, value string) {
	if !syntax.ValidField(name, value) || syntax.KindOf(syntax.Bytes(name)) != syntax.Ordinary {
		w.fail(fmt.Errorf("httpd: not a trailer: %q: %q", name, value))
		return
	}
	w.trailers = appendField(w.trailers, name, value)
}

// addable returns the kind of a field, and whether a handler may add it.
func addable(name, value string) (kind syntax.Kind, ok bool) {
	kind = syntax.KindOf(syntax.Bytes(name))
	return kind, (kind == syntax.Ordinary || kind == syntax.Upgrade) && syntax.ValidField(name, value) &&
		!syntax.EqualFold(syntax.Bytes(name), "date")
}

func appendField(to []byte, name, value string) []byte {
	to = append(append(append(to, "\r\n"...), name...), ": "...)
	return append(to, value...)
}

// SetLength sets the Content-Length: how many bytes are going to be written. An answer with more or fewer bytes fails, and so
// does one whose head has been sent. It panics if n is negative.
func (w *Response) SetLength(n int64) {
	switch {
	case n < 0:
		panic("httpd: SetLength of a negative length")
	case w.early():
		w.announced = n
	}
}

// SetTimeout replaces Timeouts.Write by d for this response, from now on. 0 restores the Server's time-out, and a negative d
// means no limit.
func (w *Response) SetTimeout(d time.Duration) { w.timeout = d }

// writeTimeout is that of this response, or the server's.
func (w *Response) writeTimeout(v *Server) time.Duration {
	return timeout.Or(cmp.Or(w.timeout, v.Timeouts.Write), time.Minute)
}

// CloseAfter closes the connection after this response, and tells the client so. It does nothing if the head has been sent.
func (w *Response) CloseAfter() { w.last = w.last || w.progress == gathering }

// StatusOnly makes the response consist of its status alone, and a line of text that names it, in place of everything written or
// added so far. The handler may add fields after that.
func (w *Response) StatusOnly(code int) {
	if !w.early() {
		return
	}
	w.SetStatus(code)
	w.announced, w.whole, w.upgrade = -1, nil, false
	w.fields, w.trailers, w.body = w.fields[:0], w.trailers[:0], w.body[:0]
	if syntax.Empty(code) {
		return
	}
	w.fields = appendField(w.fields, "Content-Type", "text/plain; charset=utf-8")
	w.body = append(append(strconv.AppendInt(w.body, int64(code), 10), ' '), syntax.StatusText(code)...)
	w.body = append(w.body, '\n')
}

// fail notes why the response cannot be what it should be. The first reason counts.
func (w *Response) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// SetBody sets all of the content at once, whatever its length. It takes no copy: p must not be changed afterwards.
func (w *Response) SetBody(p []byte) {
	if !w.early() {
		return
	}
	if len(w.body) > 0 {
		w.fail(ErrLate)
		return
	}
	w.whole = p
}

// Write takes p, or as much of it as there is room for, and returns how much. If that is not all of p, the error is an
// act.Blocked, which wakes when there is room again, or says why nothing more can be written: the status has no content,
// SetLength has announced less, ErrSlow, or the error of the connection. An action that ignores the error has not answered: see
// Handler.
//
// Until the Handler returns there is always room: everything written is kept, however much it is. For large content that
// is at hand SetBody is better, and for content that is produced bit by bit an action.
func (w *Response) Write(p []byte) (int, error) {
	if err := w.writable(len(p)); err != nil {
		return 0, err
	}
	if w.keeps(len(p)) {
		w.body = append(w.body, p...)
		w.tookAll()
		return len(p), nil
	}
	for taken := 0; taken < len(p); {
		err := w.Flush()
		if err == nil && w.mute { // its head is out: a handler that goes on writing is told to wait, and is not asked again
			w.progress, err = enough, nothing{}
		}
		if err != nil {
			if w.progress == sent && !w.mute {
				w.progress = short
			}
			return taken, err
		}
		n := w.x.offer(p[taken:])
		w.count(int64(n))
		taken += n
	}
	w.tookAll()
	return len(p), w.err
}

// keeps reports whether n more bytes are gathered.
func (w *Response) keeps(n int) bool {
	small := len(w.body)+n <= gathered
	if small && w.progress == gathering {
		return true
	}
	room := w.x.room()
	return small && room > 0 || room == unlimited
}

// tookAll notes that a Write did.
func (w *Response) tookAll() {
	if w.progress == short {
		w.progress = sent
	}
}

// WriteString is [Response.Write] for a string. It does not copy it.
func (w *Response) WriteString(s string) (int, error) { return w.Write(syntax.Bytes(s)) }

// writable returns why n more bytes could not be written, whatever room there is.
func (w *Response) writable(n int) error {
	w.recall()
	switch {
	case w.progress >= hijacked:
		return cmp.Or(w.err, errHijacked)
	case w.err != nil:
	case syntax.Empty(w.status) && n > 0:
		return errNoContent
	case w.whole != nil:
		w.fail(ErrLate)
	case w.left >= 0 && int64(n+len(w.body)) > w.left,
		w.progress == gathering && w.announced >= 0 && int64(n+len(w.body)) > w.announced:
		w.fail(errLength)
	}
	return w.err
}

// nothing is a Blocked that never wakes.
type nothing struct{}

func (nothing) Error() string { return "httpd: nothing more is wanted" }
func (nothing) Arm(*act.Task) {}

// Flush sends what was written so far, and the head even if nothing was. It is rarely needed: gathered output is sent
// whenever a handler waits. The error is that of Write.
func (w *Response) Flush() error {
	if w.progress >= hijacked || w.err != nil {
		return cmp.Or(w.err, errHijacked)
	}
	w.flush()
	return w.x.ready()
}

// flush gives all that was written to the exchange.
func (w *Response) flush() {
	if w.progress == gathering {
		w.begin(false)
	}
	if len(w.body) > 0 && w.err == nil {
		w.send(w.take())
	}
}

// SendFile sends up to n bytes of f from offset, after all that was written, and returns how many. The length must have
// been set. If it sends fewer than n without an error, that is as much as one turn allows: call it again in the next
// turn. Otherwise the error is that of Write, or io.ErrUnexpectedEOF if f has become shorter. See
// listener.Conn.SendFile.
func (w *Response) SendFile(f *os.File, offset, n int64) (int64, error) {
	if w.announced < 0 {
		w.fail(errors.New("httpd: SendFile without SetLength"))
	}
	if err := w.writable(0); err != nil {
		return 0, err
	}
	w.flush()
	if n > w.left {
		w.fail(errLength)
	}
	if w.err != nil {
		return 0, w.err
	}
	var err error
	if !w.mute {
		n, err = w.x.sendFile(f, offset, n)
	}
	w.count(n)
	return n, err
}

// SwitchProtocols has the handler answer with 101 (Switching Protocols), or over HTTP/2 with 200 if the request is an extended
// CONNECT (RFC 8441), which handlers see as a GET. Then the connection, or the stream, is no longer HTTP: next
// makes the action that has its turns from there on, with whatever has come after the request still unread. It is
// called like the handler of a service, shutdown requests reach its action, and the time-outs of the Server no
// longer apply. A service at MaxConns asks its IdleSince, if it has one, before it evicts the connection for another
// client. Fields that the handshake needs are added with Add. next may look at the request and the response; when it
// has returned they are used for other requests.
//
// The error is ErrNoUpgrade if the client has not asked for this protocol, which HTTP/1.0 cannot; another one if the body
// has not been read to its end, or the head has been sent. Then nothing is switched, and the handler answers as usual,
// for instance with 426 and an Upgrade field that names the protocol.
func (w *Response) SwitchProtocols(protocol string, next func(*listener.Conn) act.Action) error {
	switch {
	case protocol == "" || next == nil:
		panic("httpd: SwitchProtocols without a protocol or an action")
	case w.progress >= hijacked:
		return errHijacked
	case w.progress != gathering:
		return ErrLate
	}
	status, err := w.x.leave(protocol)
	if err != nil {
		return err
	}
	w.status, w.next = status, next
	if w.upgrade = status == 101; w.upgrade {
		w.fields = appendField(w.fields, "Upgrade", protocol)
	}
	return nil
}

// Hijack ends HTTP on the connection without an answer. If a part of the answer was written, that is sent first. When the
// handler has finished, next makes the action that has the connection from there on, as with SwitchProtocols. The unread
// part of the request's body stays unread. The handler's action is closed after next was called. If the connection is lost
// before, next is not called. The request and the response are not used again.
//
// The error is that of Write, or ErrLate after SetBody and SwitchProtocols, or an errors.ErrUnsupported over HTTP/2. Then the
// handler answers as usual. After Hijack nothing can be written, and an action that fails has the connection aborted.
func (w *Response) Hijack(next func(*listener.Conn) act.Action) error {
	w.recall()
	switch {
	case next == nil:
		panic("httpd: Hijack without an action")
	case w.progress >= hijacked || w.err != nil:
		return cmp.Or(w.err, errHijacked)
	case w.next != nil, w.whole != nil:
		return ErrLate
	}
	if _, err := w.x.leave(""); err != nil {
		return err
	}
	switch {
	case w.progress != gathering || len(w.body) > 0:
		if w.flush(); w.err != nil {
			return w.err
		}
	default:
		w.status = 0
	}
	w.progress, w.next = hijacked, next
	return nil
}

var errHijacked = errors.New("httpd: the connection was hijacked")

// leaves reports whether the connection is no longer HTTP after this response.
func (w *Response) leaves() bool { return w.next != nil }

// complete reports whether a HEAD has its answer, and the handler has begun with the content: nothing would hold it up.
func (w *Response) complete() bool { return w.progress == enough }

// Inform sends an interim response (RFC 9110 15.2), such as 103 (Early Hints). It may be called several times before the
// head is sent. Clients of HTTP/1.0 get none. It panics if code is 101, or not from 100 to 199. After 100 (Continue)
// Body.Peek sends no second one.
//
// The error is ErrLate after the head, or that of Write. An act.Blocked means that the client has not taken enough of what
// was sent before, and that nothing was sent now.
func (w *Response) Inform(code int, fields ...Field) error {
	switch {
	case code < 100 || code > 199 || code == 101:
		panic(fmt.Sprintf("httpd: %d is not a status of an interim response", code))
	case w.progress >= hijacked || w.err != nil:
		return cmp.Or(w.err, errHijacked)
	case w.progress != gathering:
		return ErrLate
	}
	if w.x.room() != unlimited {
		if err := w.x.ready(); err != nil {
			return err
		}
	}
	w.x.inform(code, fields)
	return w.err
}

// begin sends the head, unless it would not be true. If final, all of the content has been written.
func (w *Response) begin(final bool) {
	total := int64(len(w.body) + len(w.whole))
	final = final || w.whole != nil
	length := w.announced
	if length < 0 && final {
		length = total
	}
	switch {
	case syntax.Empty(w.status) && total > 0:
		w.fail(errNoContent)
	case syntax.Bodiless(w.status), w.leaves():
		length = -1
	case w.announced >= 0 && (total > w.announced || final && total < w.announced && !w.mute):
		w.fail(errLength)
	}
	if w.err == nil {
		w.progress, w.left = sent, length
		w.x.begin(length)
	}
}

// take takes the gathered content.
func (w *Response) take() []byte {
	p := w.body
	w.body = w.body[:0]
	return p
}

// send sends content, which there should be room for.
func (w *Response) send(p []byte) {
	w.count(int64(len(p)))
	switch {
	case len(p) == 0:
	case w.mute:
		w.progress = enough
	case w.err == nil:
		w.x.send(p)
	}
}

func (w *Response) count(n int64) {
	w.written += n
	if w.left >= 0 {
		w.left -= n
	}
}

// finish is called when the handler has answered.
func (w *Response) finish() error {
	w.recall()
	if w.progress >= hijacked {
		return w.err
	}
	if w.progress == short {
		w.fail(errors.New("httpd: the handler has answered although its last Write did not take everything"))
	}
	if w.err == nil && w.progress == gathering {
		w.begin(true)
	}
	if w.err != nil {
		return w.err
	}
	if len(w.body) > 0 {
		w.send(w.take())
	}
	w.count(int64(len(w.whole)))
	if w.left > 0 && !w.mute {
		w.fail(errLength)
	} else {
		w.x.end()
	}
	return w.err
}
