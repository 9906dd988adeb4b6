package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// answer is the action of one request.
//
//	look, on another goroutine ──▶ reply ──▶ for a large file: send ◀──▶ fetch, on another goroutine; not for an *os.File
type answer struct {
	server *Server
	w      *httpd.Response
	r      *httpd.Request
	head   bool // the request is HEAD: without content
	stage  stage
	found

	body   []piece // still to be sent
	buffer []byte
	unsent []byte // of the buffer
}

type stage uint8

const (
	looking stage = iota
	replying
	sending
)

// Act takes the answer a turn further.
func (a *answer) Act(t *act.Task) act.Directive {
	switch a.stage {
	case looking:
		a.stage = replying
		return t.Offload(func() { a.look(a.server, !a.head) })
	case replying:
		a.stage = sending
		if d := a.reply(t); d != act.Yield {
			return d
		}
	}
	return a.send(t)
}

// reply answers, except for the content of a large file: then it returns Yield.
func (a *answer) reply(t *act.Task) act.Directive {
	code := 0
	if a.err != nil {
		code = status(a.err)
	}
	switch {
	case code == 500: // httpd answers with that, and reports the error
		return t.Fail(fmt.Errorf("files: %w", a.err))
	case code != 0:
		a.w.StatusOnly(code)
		return act.Done
	case a.slash:
		a.w.StatusOnly(301)
		a.w.Add("Location", withSlash(a.r.Path(), a.r.Query()))
		return act.Done
	}
	v := versionOf(a.modified, a.size, a.inode)
	switch v.status(a.r) {
	case 412:
		a.w.StatusOnly(412)
		return act.Done
	case 304: // with what a cache needs to find its own copy (RFC 9110 15.4.5)
		a.w.SetStatus(304)
		if v.tag != "" {
			a.w.Add("ETag", v.tag)
		}
		return act.Done
	}
	return a.represent(t, v)
}

// represent sends the file or parts of it.
func (a *answer) represent(t *act.Task, v version) act.Directive {
	var parts []span
	obeyed := false
	if !a.head && a.parted {
		parts, obeyed = ranges(v.rangeField(a.r), a.size)
	}
	if obeyed && len(parts) == 0 {
		a.w.StatusOnly(416)
		a.w.Add("Content-Range", fmt.Sprintf("bytes */%d", a.size))
		return act.Done
	}
	contentType, length := typeOf(a.name, a.server.Types), a.size
	switch len(parts) {
	case 0:
		a.body = []piece{{span: span{0, a.size}}}
	case 1: // never as a multipart (RFC 9110 15.3.7.2)
		a.body, length = []piece{{span: parts[0]}}, parts[0].size
		a.w.SetStatus(206)
		a.w.Add("Content-Range", contentRange(parts[0], a.size))
	default:
		a.body, length = multipart(parts, a.size, contentType, v.boundary())
		a.w.SetStatus(206)
		contentType = "multipart/byteranges; boundary=" + v.boundary()
	}
	a.w.Add("Content-Type", contentType)
	a.w.Add("X-Content-Type-Options", "nosniff") // the type counts, not a guess from the content
	if a.parted {
		a.w.Add("Accept-Ranges", "bytes")
	}
	if v.tag != "" {
		a.w.Add("ETag", v.tag)
		a.w.Add("Last-Modified", v.lastModified(t.Scheduler().Clock().Wall()))
	}
	return a.begin(length)
}

// begin sets the length, and finishes answers that need no file any more.
func (a *answer) begin(length int64) act.Directive {
	switch {
	case a.head:
		a.w.SetLength(length)
		return act.Done
	case a.file != nil:
		a.w.SetLength(length)
		return act.Yield
	case len(a.body) == 1:
		a.w.SetBody(a.content[a.body[0].from:][:a.body[0].size])
		return act.Done
	}
	whole := make([]byte, 0, length)
	for _, p := range a.body {
		whole = append(append(whole, p.text...), a.content[p.from:][:p.size]...)
	}
	a.w.SetBody(whole)
	return act.Done
}

// send sends the rest of the body. A failure here aborts the connection: the client was told the length, and must not
// take a part for the whole.
func (a *answer) send(t *act.Task) act.Directive {
	for len(a.body) > 0 {
		p := &a.body[0]
		n, err := a.w.WriteString(p.text)
		if p.text = p.text[n:]; err != nil {
			return listener.Next(t, err)
		}
		if d := a.copy(t, &p.span); d != act.Done {
			return d
		}
		a.body = a.body[1:]
	}
	return act.Done
}

// copy sends bytes of the file, and removes them from s.
func (a *answer) copy(t *act.Task, s *span) act.Directive {
	f, system := a.file.(*os.File)
	for s.size > 0 {
		n, err := int64(0), error(nil)
		switch {
		case system:
			if n, err = a.w.SendFile(f, s.from, s.size); err == io.ErrUnexpectedEOF { // it has become shorter
				err = fmt.Errorf("files: %w", &fs.PathError{Op: "send", Path: a.name, Err: err})
			}
		case a.err != nil:
			return t.Fail(fmt.Errorf("files: %w", a.err))
		case len(a.unsent) == 0:
			return t.Offload(func() { a.fetch(*s) })
		default:
			var written int
			written, err = a.w.Write(a.unsent)
			n, a.unsent = int64(written), a.unsent[written:]
		}
		s.from, s.size = s.from+n, s.size-n
		if err != nil || system && s.size > 0 {
			return listener.Next(t, err) // without an error SendFile has sent enough for a turn
		}
	}
	return act.Done
}

// fetch reads the next bytes, off the scheduler's thread.
func (a *answer) fetch(s span) {
	if a.buffer == nil {
		a.buffer = make([]byte, small)
	}
	a.unsent = a.buffer[:min(s.size, small)]
	a.err = a.read(a.unsent, s.from)
}
