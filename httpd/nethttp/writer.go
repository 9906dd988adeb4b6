package nethttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// writer is the http.ResponseWriter of a handler. It gathers the content of small answers, and hands the others on piece by
// piece.
type writer struct {
	to     outlet
	ctx    context.Context // of the request
	log    *zap.Logger
	header http.Header
	mute   bool // it answers HEAD

	mu       sync.Mutex // goroutines that a handler has left behind may still call methods
	over     error      // why nothing can be written any more
	upgrade  []byte     // what Hijack sends first: the head of a 101
	head     *head      // settled by WriteHeader or the first Write: the own
	own      head
	sent     bool // it was handed on
	written  int64
	exceeded bool   // more was to be written than the head says
	body     []byte // gathered
	given    int    // how much of it conclude has given on
}

func writerFor(r *httpd.Request, req *http.Request, to outlet) writer {
	return writer{to: to, ctx: req.Context(), log: r.Scheduler().Logger(), header: http.Header{},
		mute: req.Method == http.MethodHead}
}

// outlet is where a writer hands its answer to, before the handler returns.
type outlet interface {
	keeps() bool // nothing is sent before
	start(h *head)
	write(p []byte) (int, error)
	inform(h *head) error
	hijack() (conn net.Conn, unread []byte, err error) // unread comes before what conn reads
	sendFile(f *os.File, offset, n int64) (int64, error)
	readDeadline(at time.Time) error
	writeDeadline(at time.Time) error
}

// gathered is how much of an answer is kept back to find out its length, and to make pieces larger.
const gathered = 4 << 10

var buffers = sync.Pool{New: func() any { return new([gathered]byte) }}

func (w *writer) Header() http.Header { return w.header }

// WriteHeader settles the status and the header, or sends an interim response.
func (w *writer) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over == http.ErrHijacked:
		w.log.Warn("nethttp: WriteHeader on hijacked connection", zap.Int("status", code), zap.StackSkip("stack", 1))
	case w.over != nil || w.head != nil || w.upgrade != nil:
		w.log.Warn("nethttp: superfluous WriteHeader", zap.Int("status", code), zap.StackSkip("stack", 1))
	case code < 100 || code > 599:
		panic(fmt.Sprintf("nethttp: invalid WriteHeader code %v", code))
	case code == http.StatusSwitchingProtocols:
		w.upgrade = switching(w.header)
	case code < 200:
		h := newHead(w.header, code)
		_ = w.to.inform(&h) // the answer will meet the same error
	default:
		w.settle(code)
	}
}

// settle makes the head: later changes of the header have no effect.
func (w *writer) settle(code int) {
	w.own = newHead(w.header, code)
	w.head = &w.own
	if text := w.header.Get("Content-Length"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			w.log.Warn("nethttp: invalid Content-Length", zap.String("value", text))
		} else if coding := w.header.Get("Transfer-Encoding"); coding == "" || coding == "identity" {
			w.head.length = int64(n)
		}
	}
}

func (w *writer) Write(p []byte) (int, error)       { return w.write(p) }
func (w *writer) WriteString(s string) (int, error) { return w.write(syntax.Bytes(s)) }

func (w *writer) write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		if w.over == http.ErrHijacked && len(p) > 0 {
			w.log.Warn("nethttp: Write on hijacked connection", zap.StackSkip("stack", 2))
		}
		return 0, w.over
	}
	if w.upgrade != nil {
		return 0, http.ErrBodyNotAllowed
	}
	if w.head == nil {
		w.settle(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if syntax.Empty(w.head.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if n := w.head.length; n >= 0 && (w.exceeded || w.written+int64(len(p)) > n) {
		w.exceeded = true
		return 0, http.ErrContentLength
	}
	w.written += int64(len(p))
	if w.mute { // only what the content begins with matters
		w.body = append(w.body, p[:min(len(p), gathered-len(w.body))]...)
		return len(p), nil
	}
	if len(w.body)+len(p) <= gathered {
		w.gather(p)
		return len(p), nil
	}
	if err := w.hand(p); err != nil {
		return 0, err
	}
	if len(p) < gathered { // there is room for it now
		w.gather(p)
		return len(p), nil
	}
	n, err := w.to.write(p)
	w.fail(err)
	return n, err
}

func (w *writer) gather(p []byte) {
	if w.body == nil {
		w.body = buffers.Get().(*[gathered]byte)[:0]
	}
	w.body = append(w.body, p...)
}

// hand hands on the head and the gathered content, since p does not fit any more.
func (w *writer) hand(p []byte) error {
	if w.head == nil {
		w.settle(http.StatusOK)
	}
	if !w.sent {
		if _, err := w.to.write(nil); err != nil { // a deadline has passed
			w.fail(err)
			return err
		}
		w.sent = true
		w.head.sniff(w.body, p)
		w.to.start(w.head)
	}
	if len(w.body) == 0 || w.mute {
		return nil
	}
	_, err := w.to.write(w.body)
	w.body = w.body[:0]
	w.fail(err)
	return err
}

func (w *writer) fail(err error) {
	if err != nil && w.over == nil {
		w.over = err
	}
}

// ReadFrom makes io.Copy use large pieces, and has the kernel send a part of a file.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	sent, err := w.sendFile(src)
	if err != errors.ErrUnsupported {
		return sent, err
	}
	p := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(p)
	n, err := io.CopyBuffer(onlyWriter{w}, src, p[:])
	return sent + n, err
}

type onlyWriter struct{ io.Writer }

const pieceSize = 48 << 10 // TLS makes three records of it

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// fewestOfFile is from how many bytes on a file is sent by the kernel.
const fewestOfFile = 16 << 10

// sendFile sends what src reads if that is a file, or a part of one, and the head says the length. The error is
// errors.ErrUnsupported if the rest has to be read.
func (w *writer) sendFile(src io.Reader) (sent int64, err error) {
	part, limited := src.(*io.LimitedReader)
	if limited {
		src = part.R
	}
	f := fileOf(src)
	if f == nil {
		return 0, errors.ErrUnsupported
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, errors.ErrUnsupported
	}
	at, err := f.Seek(0, io.SeekCurrent)
	n := info.Size() - at
	if limited {
		n = min(n, part.N)
	}
	if err != nil || n < fewestOfFile {
		return 0, errors.ErrUnsupported
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil || w.upgrade != nil || w.mute {
		return 0, errors.ErrUnsupported // Write knows what to do
	}
	if w.head == nil {
		w.settle(http.StatusOK)
	}
	if syntax.Empty(w.head.status) || w.written+n > w.head.length {
		return 0, errors.ErrUnsupported
	}
	if w.head.untyped {
		var first [sniffed]byte
		n, _ := f.ReadAt(first[:], at) // an error comes again
		w.head.sniff(w.body, first[:n])
	}
	if err := w.hand(nil); err != nil {
		return 0, err
	}
	sent, err = w.to.sendFile(f, at, n)
	w.written += sent
	if limited {
		part.N -= sent
	}
	if _, wrong := f.Seek(at+sent, io.SeekStart); wrong != nil {
		err = cmp.Or(err, wrong)
	}
	if err != errors.ErrUnsupported {
		w.fail(err)
	}
	return sent, err
}

// fileOf returns the file that src reads, or nil. io.Copy of a file gives a struct around it, without the method WriteTo.
func fileOf(src io.Reader) *os.File {
	if f, ok := src.(*os.File); ok {
		return f
	}
	if v := reflect.ValueOf(src); v.Kind() == reflect.Struct && v.Type().PkgPath() == "os" {
		if v = v.FieldByName("File"); v.IsValid() && v.CanInterface() {
			f, _ := v.Interface().(*os.File)
			return f
		}
	}
	return nil
}

func (w *writer) Flush() { _ = w.FlushError() }

// FlushError hands on the gathered content, which is then sent at once.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil || w.upgrade != nil {
		return w.over
	}
	if w.to.keeps() { // only the head is settled
		if w.head == nil {
			w.settle(http.StatusOK)
		}
		w.head.sniff(w.body, nil)
		w.head.chunks = w.head.chunks || w.mute
		return nil
	}
	if err := w.hand(nil); err != nil {
		return err
	}
	_, err := w.to.write(nil) // also the end of a chunk
	w.fail(err)
	return err
}

// Hijack gives the connection to the handler. Content that was written is sent before.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return nil, nil, w.over
	}
	if w.head != nil {
		if err := w.hand(nil); err != nil {
			return nil, nil, err
		}
	}
	conn, unread, err := w.to.hijack()
	if err != nil {
		return nil, nil, err
	}
	w.over = http.ErrHijacked
	if w.upgrade != nil {
		if _, err := conn.Write(w.upgrade); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	in := bufio.NewReader(conn)
	if len(unread) > 0 {
		in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(unread), conn), max(4<<10, len(unread)))
		_, _ = in.Peek(len(unread)) // so that it is Buffered
	}
	return conn, bufio.NewReadWriter(in, bufio.NewWriter(conn)), nil
}

// CloseNotify is for handlers that are older than Request.Context.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// EnableFullDuplex has no effect: body and answer never exclude each other.
func (w *writer) EnableFullDuplex() error { return nil }

func (w *writer) SetReadDeadline(at time.Time) error  { return w.to.readDeadline(at) }
func (w *writer) SetWriteDeadline(at time.Time) error { return w.to.writeDeadline(at) }

// finish is called when the handler has returned, and returns the head unless it was handed on. The error is why nothing
// more can be written. The calls of goroutines that the handler has left behind fail from here on.
func (w *writer) finish(err error) *head {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
	w.fail(errReturned)
	switch {
	case w.over != errReturned:
		w.body = w.body[:0]
		return nil
	case w.sent:
		return nil
	case w.upgrade != nil: // without Hijack
		w.settle(http.StatusInternalServerError)
	case w.head == nil:
		w.settle(http.StatusOK)
	}
	w.head.sniff(w.body, nil)
	if w.mute && w.head.length < 0 && !w.head.chunks && 0 < w.written && (w.written <= gathered || w.to.keeps()) {
		w.head.length = w.written
	}
	return w.head
}

// cut reports whether the answer of a handler that has returned is not whole, and the client is to see that.
func (w *writer) cut() bool {
	if w.over != errReturned {
		return w.over != http.ErrHijacked
	}
	return w.sent && !w.mute && !syntax.Empty(w.head.status) && w.written < w.head.length
}

// conclude gives to what is left when the handler has returned: the head, unless it was given before, what was gathered, and the
// trailers. It is called again after an error.
func (w *writer) conclude(to *httpd.Response, h *head) error {
	if h != nil {
		h.last(to, w.mute)
	}
	if !w.mute {
		n, err := to.Write(w.body[w.given:])
		if w.given += n; err != nil {
			return err
		}
		w.free()
	}
	addTrailers(to, w.trailers())
	return nil
}

// trailers returns the trailers, when the handler has returned.
func (w *writer) trailers() []field {
	var names []string
	if w.head != nil {
		names = w.head.trailers
	}
	return trailersOf(w.header, names)
}

func addTrailers(to *httpd.Response, all []field) {
	for _, f := range all {
		to.AddTrailer(f.name, f.value)
	}
}

// free gives back the memory of the gathered content.
func (w *writer) free() {
	if cap(w.body) == gathered {
		buffers.Put((*[gathered]byte)(w.body[:gathered]))
	}
	w.body = nil
}

var errReturned = errors.New("nethttp: the handler has returned")
