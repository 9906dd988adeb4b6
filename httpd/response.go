package httpd

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Response is the answer to a request. What is written is gathered, up to 4 KiB: an answer that is whole by then gets a
// Content-Length by itself. A longer one is announced by SetLength, or it is sent in chunks; to a client of HTTP/1.0
// its end is the connection's.
//
// Date, Content-Length, Transfer-Encoding and Connection are the server's. There is no Content-Type unless the handler
// adds one, and no guess.
type Response struct {
	e         *exchange
	status    int
	fields    []byte // of the handler, each behind a CRLF
	trailers  []byte
	body      []byte // gathered
	whole     []byte // sent as it is, without a copy
	pending   []byte // what the connection had no room for
	written   int64
	announced int64 // by SetLength, -1: not
	left      int64 // sized: what is still to be written
	coding    coding
	mute      bool  // it answers HEAD: everything as with GET, but no content
	sent      bool  // the head is out
	finished  bool  // the handler has answered
	last      bool  // the connection is closed behind it
	roomy     bool  // the handler has not returned: it cannot wait
	short     bool  // the latest Write did not take all
	err       error // why the answer is none
	lost      error // err, if it is the connection's
	cause     listener.Blocked
}

// coding is how the client finds the end of a response.
type coding uint8

const (
	byLength coding = iota
	byChunks
	byEnd     // of the connection
	byNothing // there is no content
)

// gathered is how much is kept back for the sake of a Content-Length, and of larger chunks.
const gathered = 4 << 10

var (
	// ErrNoContent is returned for content where the status has none: 204, 205 and 304.
	ErrNoContent = errors.New("httpd: a response with this status has no content")
	// ErrLength is returned for more content than SetLength has announced, and is the failure of an answer with less.
	ErrLength = errors.New("httpd: the content is not as long as was announced")
	// ErrLate is returned for what comes too late: the head has been sent.
	ErrLate = errors.New("httpd: the head of the response has been sent")
	// ErrSlow is returned when the client takes what is sent too slowly; it is an os.ErrDeadlineExceeded.
	ErrSlow = fmt.Errorf("httpd: the client takes the response too slowly: %w", os.ErrDeadlineExceeded)

	errShort = errors.New("httpd: the handler has answered although its last Write did not take everything")
)

func (w *Response) reset() {
	if cap(w.body) > gathered || cap(w.fields) > gathered || cap(w.pending) > gathered {
		w.body, w.fields, w.pending = nil, nil, nil
	}
	w.fields, w.trailers, w.body, w.pending = w.fields[:0], w.trailers[:0], w.body[:0], w.pending[:0]
	w.whole, w.err, w.lost, w.cause = nil, nil, nil, nil
	w.status, w.announced, w.left, w.coding, w.written = 200, -1, 0, byLength, 0
	w.mute, w.sent, w.finished, w.last, w.roomy, w.short = false, false, false, false, false, false
}

// SetStatus sets the status code, from 200 to 599; it is 200 otherwise. It panics on any other. One that comes when the
// head is out makes the answer fail.
func (w *Response) SetStatus(code int) {
	switch {
	case code < minStatus || code > maxStatus:
		panic(fmt.Sprintf("httpd: %d is no status that a request can be answered with", code))
	case w.sent:
		w.fail(ErrLate)
	default:
		w.status = code
	}
}

// Status is the status code, as it was sent or is going to be.
func (w *Response) Status() int { return w.status }

// Written is how many bytes of content were given to the connection so far; with HEAD, how many would have been.
func (w *Response) Written() int64 { return w.written }

// Add adds a field. A name that is no token, a value with a control character (RFC 9110 5.5), a field that is the
// server's, and one that comes when the head is out, make the answer fail: see Handler.
func (w *Response) Add(name, value string) {
	switch {
	case w.sent:
		w.fail(ErrLate)
	case !addable(name, value):
		w.fail(fmt.Errorf("httpd: not a field of a response: %q: %q", name, value))
	default:
		w.fields = appendField(w.fields, name, value)
	}
}

// Field is a field of responses that was checked once, for those that always say the same.
type Field struct{ line string }

// NewField makes a Field. It panics where Add would make the answer fail.
func NewField(name, value string) Field {
	if !addable(name, value) {
		panic(fmt.Sprintf("httpd: not a field of a response: %q: %q", name, value))
	}
	return Field{string(appendField(nil, name, value))}
}

// AddField is Add. The zero Field adds nothing.
func (w *Response) AddField(f Field) {
	if w.sent {
		w.fail(ErrLate)
		return
	}
	w.fields = append(w.fields, f.line...)
}

// AddTrailer adds a field behind the content. It is sent only in chunks, which it asks for: a client of HTTP/1.0, and
// one that is told the length, does not get it.
func (w *Response) AddTrailer(name, value string) {
	if !validField(name, value) || specialOf(bytesOf(name)) != ordinary {
		w.fail(fmt.Errorf("httpd: not a trailer: %q: %q", name, value))
		return
	}
	w.trailers = appendField(w.trailers, name, value)
}

// addable tells whether a handler may add a field.
func addable(name, value string) bool {
	return validField(name, value) && specialOf(bytesOf(name)) == ordinary && !equalFold(bytesOf(name), "date")
}

func validField(name, value string) bool {
	return len(name) > 0 && only(bytesOf(name), token) && plain(bytesOf(value)) == len(value)
}

func appendField(to []byte, name, value string) []byte {
	to = append(append(append(to, "\r\n"...), name...), ": "...)
	return append(to, value...)
}

// bytesOf lends the octets of s to somebody who only reads them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// SetLength announces how many bytes are going to be written, exactly.
func (w *Response) SetLength(n int64) {
	switch {
	case n < 0:
		panic("httpd: SetLength of a negative length")
	case w.sent:
		w.fail(ErrLate)
	default:
		w.announced = n
	}
}

// Close has the connection closed behind this response, and the client told so.
func (w *Response) Close() { w.last = true }

// Error makes the response one that says nothing but its status, in place of whatever was written so far.
func (w *Response) Error(code int) {
	if w.sent {
		w.fail(ErrLate)
		return
	}
	w.SetStatus(code)
	w.announced, w.whole, w.trailers = -1, nil, w.trailers[:0]
	w.fields, w.body, w.short = w.fields[:0], w.body[:0], false
	if empty(code) {
		return
	}
	w.fields = appendField(w.fields, "Content-Type", "text/plain; charset=utf-8")
	w.body = append(append(strconv.AppendInt(w.body, int64(code), 10), ' '), StatusText(code)...)
	w.body = append(w.body, '\n')
}

// fail notes why the response cannot be what it should be. The first reason counts.
func (w *Response) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// lose notes that the client cannot be told anything any more.
func (w *Response) lose(err error) error {
	w.fail(err)
	w.lost = w.err
	return w.err
}

// SetBody sets all of the content at once, whatever its length, and takes no copy of it: p must not be changed any more.
func (w *Response) SetBody(p []byte) {
	if w.sent || len(w.body) > 0 {
		w.fail(ErrLate)
		return
	}
	w.whole = p
}

// Write takes p, or as much of it as there is room for, and returns how much. With less than all of p the error is a
// listener.Blocked, woken when there is room again, or says why nothing can be written any more: ErrLength,
// ErrNoContent, ErrSlow, or what became of the connection. An action that ignores it has not answered: see Handler.
//
// Before the Handler has returned there is always room: what is written then is kept, however much it is. For what is
// large and at hand SetBody is better, and for what is larger than that an action.
func (w *Response) Write(p []byte) (int, error) {
	if err := w.writable(len(p)); err != nil {
		return 0, err
	}
	if w.roomy || len(w.body)+len(p) <= gathered && (!w.sent || w.e.x.conn.Room() > 0) {
		w.body = append(w.body, p...)
		w.short = false
		return len(p), nil
	}
	for taken := 0; taken < len(p); {
		err := w.Flush()
		if err == nil && w.mute { // its head is out: who goes on writing is told to wait, and is not asked again
			w.cause = nothing{}
			err = (*blockedResponse)(w)
		}
		if err != nil {
			w.short = !w.mute
			return taken, err
		}
		n := min(len(p)-taken, w.e.x.conn.Room())
		w.send(p[taken : taken+n])
		taken += n
	}
	w.short = false
	return len(p), w.err
}

// WriteString is Write.
func (w *Response) WriteString(s string) (int, error) { return w.Write(bytesOf(s)) }

// writable tells why n more bytes could not be written, whatever room there is.
func (w *Response) writable(n int) error {
	switch {
	case w.err != nil:
	case empty(w.status) && n > 0:
		return ErrNoContent
	case w.whole != nil:
		w.fail(ErrLate)
	case w.sent && w.coding == byLength && int64(n+len(w.body)) > w.left,
		!w.sent && w.announced >= 0 && int64(n+len(w.body)) > w.announced:
		w.fail(ErrLength)
	}
	return w.err
}

// Flush sends what was written so far, and the head even if nothing was. It is not needed: what is gathered when a
// handler waits is sent then. The error is as Write's.
func (w *Response) Flush() error {
	if w.err != nil {
		return w.err
	}
	w.flush()
	return w.ready()
}

// flush gives all that was written to the connection.
func (w *Response) flush() {
	if !w.sent {
		w.begin(false)
	}
	if len(w.body) > 0 && w.err == nil {
		body := w.body
		w.body = w.body[:0]
		w.send(body)
	}
}

// SendFile sends up to n bytes of f from offset, behind all that was written, and returns how many. The length must
// have been announced. Fewer than n without an error are as many as are sent in one turn: come again in the next.
// Otherwise the error is as Write's, and io.ErrUnexpectedEOF if f has become shorter. See listener.Conn.SendFile.
func (w *Response) SendFile(f *os.File, offset, n int64) (int64, error) {
	if w.announced < 0 {
		w.fail(errors.New("httpd: SendFile without SetLength"))
	}
	if err := w.writable(0); err != nil {
		return 0, err
	}
	w.flush()
	if n > w.left {
		w.fail(ErrLength)
	}
	if err := w.push(); err != nil {
		return 0, err
	}
	if w.mute {
		w.left -= n
		w.written += n
		return n, nil
	}
	sent, err := w.e.x.conn.SendFile(f, offset, n)
	w.left -= sent
	w.written += sent
	w.e.x.given(sent)
	if err != nil {
		return sent, w.blocked(err)
	}
	w.e.x.pace = nil
	return sent, nil
}

// begin sends the head, unless it would not be true. All of the content is there if it is final, or given by SetBody.
func (w *Response) begin(final bool) {
	total := int64(len(w.body) + len(w.whole))
	final = final || w.whole != nil
	switch sized := w.announced >= 0; {
	case empty(w.status) && total > 0:
		w.fail(ErrNoContent)
	case bodiless(w.status):
		w.coding = byNothing
	case sized && (total > w.announced || final && total < w.announced && !w.mute):
		w.fail(ErrLength)
	case sized:
		w.coding, w.left = byLength, w.announced
	case final && (len(w.trailers) == 0 || w.whole != nil || w.e.in.head.minor == 0):
		w.coding, w.left = byLength, total
	case w.e.in.head.minor > 0:
		w.coding = byChunks
	default:
		w.coding, w.last = byEnd, true
	}
	if w.err == nil {
		w.sendHead(final)
	}
}

// sendHead sends the head, and small content with it.
func (w *Response) sendHead(final bool) {
	w.sent = true
	w.last = w.last || w.e.lasts(final)
	x := w.e.x
	head := w.head(x.home.scratch[:0], w.left)
	if w.coding == byLength && !w.mute && len(head)+len(w.body) <= gathered { // nearly always: one call
		head = append(head, w.body...)
		w.left -= int64(len(w.body))
		w.written += int64(len(w.body))
		w.body = w.body[:0]
	}
	x.home.scratch = head
	w.emit(head)
}

// head appends everything up to the empty line. Fields begin with the end of the line before, so that one copy fewer is
// needed.
func (w *Response) head(to []byte, length int64) []byte {
	h := w.e.x.home
	to = h.date.begin(h.s, to, w.status, w.coding == byLength)
	switch w.coding {
	case byLength:
		to = strconv.AppendInt(to, length, 10)
	case byChunks:
		to = append(to, "\r\nTransfer-Encoding: chunked"...)
	}
	switch {
	case w.last:
		to = append(to, "\r\nConnection: close"...)
	case w.e.in.head.minor == 0:
		to = append(to, "\r\nConnection: keep-alive"...)
	}
	to = append(to, w.fields...)
	return append(to, headEnd...)
}

// send sends content, which there should be room for.
func (w *Response) send(p []byte) {
	w.written += int64(len(p))
	if w.coding == byLength {
		w.left -= int64(len(p))
	}
	switch {
	case w.mute, len(p) == 0:
	case w.coding == byChunks:
		h := w.e.x.home
		h.scratch = append(strconv.AppendInt(h.scratch[:0], int64(len(p)), 16), "\r\n"...)
		w.emit(h.scratch)
		w.emit(p)
		w.emit(lineEnd)
	default:
		w.emit(p)
	}
}

var (
	lineEnd   = []byte("\r\n")
	headEnd   = []byte("\r\n\r\n")
	lastChunk = []byte("0")
)

// emit gives octets to the connection, and keeps those for which it has no room.
func (w *Response) emit(p []byte) {
	if w.err != nil {
		return
	}
	if len(w.pending) == 0 {
		n, err := w.e.x.give(p)
		if p = p[n:]; err != nil && !isBlocked(err) {
			w.lose(err)
		}
	}
	w.pending = append(w.pending, p...)
}

func isBlocked(err error) bool {
	_, is := err.(listener.Blocked)
	return is
}

// push sends what is left, and tells why not all of it.
func (w *Response) push() error {
	for w.err == nil && (len(w.pending) > 0 || w.finished && len(w.whole) > 0) {
		rest := &w.pending
		if len(w.pending) == 0 {
			rest = &w.whole
		}
		n, err := w.e.x.give(*rest)
		if *rest = (*rest)[n:]; err != nil {
			return w.blocked(err)
		}
	}
	return w.err
}

// ready tells why there is no room for more.
func (w *Response) ready() error {
	if err := w.push(); err != nil {
		return err
	}
	for conn := w.e.x.conn; conn.Room() == 0; {
		if _, err := conn.Write(nil); err != nil {
			return w.blocked(err)
		}
		_ = conn.Flush() // what was gathered is all that was in the way; the next call says what was wrong
	}
	return nil
}

// blocked says what an error of the connection means for the response.
func (w *Response) blocked(err error) error {
	cause, is := err.(listener.Blocked)
	switch {
	case !is:
		return w.lose(err)
	case w.e.x.stalled():
		return w.lose(ErrSlow)
	}
	w.cause = cause
	return (*blockedResponse)(w)
}

// finish is called when the handler has answered. What is left then is sent by push.
func (w *Response) finish() error {
	if w.short {
		w.fail(errShort)
	}
	if w.err == nil && !w.sent {
		w.begin(true)
	}
	if w.err != nil {
		return w.err
	}
	body := w.body
	w.body, w.finished = w.body[:0], true
	w.send(body)
	w.written += int64(len(w.whole))
	switch w.coding {
	case byChunks:
		w.end()
	case byLength:
		if w.left -= int64(len(w.whole)); w.left != 0 && !w.mute {
			w.fail(ErrLength)
		}
	}
	if w.mute {
		w.whole = nil
	}
	return w.err
}

// end sends what comes behind the last chunk.
func (w *Response) end() {
	if w.mute {
		return
	}
	w.emit(lastChunk)
	w.emit(w.trailers)
	w.emit(headEnd)
}

// refuse answers with nothing but a status, and closes.
func (w *Response) refuse(status int) error {
	w.err = nil
	w.Error(status)
	w.last = true
	return w.finish()
}

// blockedResponse is a Response as the error that says that it would have to wait.
type blockedResponse Response

func (*blockedResponse) Error() string {
	return "httpd: the client has not taken enough of the response yet"
}

// nothing is a Blocked that nobody is woken from.
type nothing struct{}

func (nothing) Error() string { return "httpd: nothing more is wanted" }
func (nothing) Arm(*act.Task) {}

// Arm has the task woken when there is room, and when the client was too slow.
func (w *blockedResponse) Arm(t *act.Task) {
	w.cause.Arm(t)
	w.e.x.wakeAt(t, w.e.x.pace.until(w.e.x.server))
}
