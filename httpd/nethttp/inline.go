package nethttp

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
)

// inline answers a request on the scheduler's thread.
func (a *Adapter) inline(w *httpd.Response, r *httpd.Request) act.Action {
	if r.Body.Length() == 0 {
		return a.answer(w, r, nil)
	}
	return httpd.WithBody(0, a.answer)(w, r)
}

func (a *Adapter) answer(w *httpd.Response, r *httpd.Request, content []byte) act.Action {
	x := &struct { // one allocation
		req    http.Request // as in an exchange
		ctx    values
		writer writer
		out    inlineOutlet
		body   lentBody
	}{}
	req := &x.req
	cancel, err := a.request(req, r, &x.ctx)
	if err != nil {
		return refusal(err)
	}
	defer cancel()
	if r.Body.Length() != 0 {
		takeTrailers(&req.Trailer, headerOf(r.Body.Trailers()))
		x.body.rest.Reset(content)
		req.Body = &x.body
	}
	to, out := &x.writer, &x.out
	out.w = w
	*to = writerFor(r, req, out)
	defer x.body.Close() // even after a panic: content is lent for this turn
	defer removeFiles(req)
	defer func() {
		if out.conn == nil { // nothing is to be sent
			_ = out.Close()
		}
	}()
	if !completes(a.handler(), to, req) {
		return aborted
	}
	to.finish(nil)
	h := to.head
	if len(out.parts) == 0 {
		if _, full := to.conclude(w, h).(act.Blocked); !full { // another error comes again
			return nil
		}
		return act.Func(func(t *act.Task) act.Directive { // because of trailers the head is sent first, and it took the room
			if err := to.conclude(w, nil); err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})
	}
	trailers := to.trailers()
	if h.chunks = h.chunks || len(trailers) > 0; h.length < 0 && !h.chunks {
		h.length = to.written
	}
	h.last(w, false)
	if to.written < h.length {
		return nil // the client gets 500, since the content is missing
	}
	_, _ = out.write(to.body)
	to.free()
	out.conn, out.trailers = r.Conn(), trailers
	out.held.Set(out.conn, out.kept*blockSize)
	return out
}

// completes calls the handler, and reports whether it has answered. A panic goes on, unless it is http.ErrAbortHandler.
func completes(h http.Handler, w *writer, r *http.Request) (completed bool) {
	defer func() {
		if completed {
			return
		}
		w.finish(http.ErrAbortHandler)
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

// inlineOutlet is the outlet of a writer whose handler runs on the scheduler's thread: it keeps everything until the handler has
// returned. From then on it is the action that sends it.
type inlineOutlet struct {
	w        *httpd.Response
	parts    []part // of the content, unless the writer has gathered all of it
	files    int    // among them, including the ones that were sent
	conn     *listener.Conn
	kept     int // blocks among them
	held     listener.Meter
	trailers []field
}

// part is a part of the content: n bytes of a block, or of a file, from an offset on.
type part struct {
	block   *[blockSize]byte
	file    *os.File
	from, n int64
}

// blockSize is how much memory is taken at a time for content. Blocks of 64 KiB cost half as much again to send.
const blockSize = 32 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }} // and no Local: a handler may have goroutines that write

// mostFiles bounds the descriptors of an answer. Further parts of files are read.
const mostFiles = 8

func (*inlineOutlet) keeps() bool { return true }
func (*inlineOutlet) start(*head) {}

func (o *inlineOutlet) write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if n := len(o.parts); n == 0 || o.parts[n-1].block == nil || o.parts[n-1].n == blockSize {
			o.kept++
			o.parts = append(o.parts, part{block: blocks.Get().(*[blockSize]byte)})
		}
		last := &o.parts[len(o.parts)-1]
		n := copy(last.block[last.n:], rest)
		last.n, rest = last.n+int64(n), rest[n:]
	}
	return len(p), nil
}

// sendFile duplicates f, since the handler closes it before it is sent.
func (o *inlineOutlet) sendFile(f *os.File, offset, n int64) (int64, error) {
	if o.files == mostFiles {
		return 0, errors.ErrUnsupported
	}
	fd, err := netpoll.System{}.Duplicate(int(f.Fd()))
	if err != nil {
		return 0, errors.ErrUnsupported // it is read instead
	}
	o.files++
	o.parts = append(o.parts, part{file: os.NewFile(uintptr(fd), f.Name()), from: offset, n: n})
	return n, nil
}

func (o *inlineOutlet) Act(t *act.Task) act.Directive {
	for range piecesPerTurn {
		if len(o.parts) == 0 {
			addTrailers(o.w, o.trailers)
			return act.Done
		}
		p := &o.parts[0]
		n, err := p.send(o.w)
		if p.from, p.n = p.from+n, p.n-n; err != nil || p.n > 0 {
			return listener.Next(t, err) // without an error SendFile has sent enough for a turn
		}
		o.drop()
	}
	return act.Yield
}

func (p *part) send(w *httpd.Response) (int64, error) {
	if p.file != nil {
		return w.SendFile(p.file, p.from, p.n)
	}
	n, err := w.Write(p.block[p.from:][:p.n])
	return int64(n), err
}

// drop drops the first part.
func (o *inlineOutlet) drop() {
	p := o.parts[0]
	o.parts = o.parts[1:]
	if p.file != nil {
		_ = p.file.Close() // it was only read
		return
	}
	blocks.Put(p.block)
	if o.kept--; o.conn != nil && o.conn.Scheduler().Internals().Here() {
		o.held.Set(o.conn, o.kept*blockSize)
	}
}

// Close drops content that was not sent.
func (o *inlineOutlet) Close() error {
	for len(o.parts) > 0 {
		o.drop()
	}
	return nil
}

// inform loses what there is no room for: it cannot wait.
func (o *inlineOutlet) inform(h *head) error { return h.inform(o.w) }

func (*inlineOutlet) hijack() (conn net.Conn, unread []byte, err error) {
	return nil, nil, http.ErrNotSupported
}

func (*inlineOutlet) readDeadline(time.Time) error  { return http.ErrNotSupported }
func (*inlineOutlet) writeDeadline(time.Time) error { return http.ErrNotSupported }

// lentBody is a body that is there for one turn.
type lentBody struct {
	mu   sync.Mutex // goroutines that a handler has left behind may still read
	rest bytes.Reader
	over bool
}

func (b *lentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.rest.Read(p)
}

func (b *lentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return nil
}
