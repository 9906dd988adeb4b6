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
//	find, on another goroutine ──▶ reply ──▶ for a large file: send ◀──▶ fetch, on another goroutine; not for an *os.File
type answer struct {
	server *Server
	w      *httpd.Response
	r      *httpd.Request
	head   bool // the request is HEAD: without content
	stage  stage
	found

	rest   span // of the file, still to be sent
	buffer []byte
	unsent []byte // of the buffer
}

type stage uint8

const (
	searching stage = iota
	replying
	sending
)

// Act takes the answer a turn further.
func (a *answer) Act(t *act.Task) act.Directive {
	switch a.stage {
	case searching:
		a.stage = replying
		return t.Offload(func() { a.find(a.server, !a.head) })
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

// represent sends the file or a part of it.
func (a *answer) represent(t *act.Task, v version) act.Directive {
	a.rest = span{0, a.size}
	if !a.head && a.parted {
		switch part, obeyed := rangeOf(v.rangeField(a.r), a.size); {
		case obeyed && part.size == 0:
			a.w.StatusOnly(416)
			a.w.Add("Content-Range", fmt.Sprintf("bytes */%d", a.size))
			return act.Done
		case obeyed:
			a.rest = part
			a.w.SetStatus(206)
			a.w.Add("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, part.from+part.size-1, a.size))
		}
	}
	a.w.Add("Content-Type", typeOf(a.name, a.server.Types))
	a.w.Add("X-Content-Type-Options", "nosniff") // the type counts, not a guess from the content
	if a.parted {
		a.w.Add("Accept-Ranges", "bytes")
	}
	if v.tag != "" {
		a.w.Add("ETag", v.tag)
		a.w.Add("Last-Modified", v.lastModified(t.Scheduler().Clock().Wall()))
	}
	if !a.head && a.file == nil {
		a.w.SetBody(a.content[a.rest.from:][:a.rest.size])
		return act.Done
	}
	a.w.SetLength(a.rest.size)
	if a.head {
		return act.Done
	}
	return act.Yield
}

// send sends the rest of a large file. A failure here aborts the connection: the client was told the length, and must not take
// a part for the whole.
func (a *answer) send(t *act.Task) act.Directive {
	f, system := a.file.(*os.File)
	for s := &a.rest; s.size > 0; {
		n, err := int64(0), error(nil)
		switch {
		case system:
			if n, err = a.w.SendFile(f, s.from, s.size); err == io.ErrUnexpectedEOF { // it has become shorter
				err = fmt.Errorf("files: %w", &fs.PathError{Op: "send", Path: a.name, Err: err})
			}
		case a.err != nil:
			return t.Fail(fmt.Errorf("files: %w", a.err))
		case len(a.unsent) == 0:
			return t.Offload(a.fetch)
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

// fetch reads the next bytes, on another goroutine.
func (a *answer) fetch() {
	if a.buffer == nil {
		a.buffer = make([]byte, small)
	}
	a.unsent = a.buffer[:min(a.rest.size, small)]
	a.err = a.read(a.unsent, a.rest.from)
}
