package files

import (
	"bytes"
	"io/fs"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

// Server answers GET and HEAD with the files of FS: its Serve is a httpd.Handler. It may be used on any number of
// schedulers at a time, and is not changed meanwhile.
type Server struct {
	// FS has the files. Its methods are called on goroutines of the executor, several at a time, so they may block.
	//
	// Of a directory take os.OpenRoot and its FS: then no symbolic link leads out of it. os.DirFS follows them
	// wherever they go.
	FS fs.FS

	// Index is the name of the file that is sent for a directory; "" means "index.html". Who asks for a directory
	// that has none is told 404: there are no listings.
	Index string

	// Hidden has files and directories served whose names begin with a dot, too. Of those the public does have
	// business with there is one, .well-known (RFC 8615): better give it a Server and a pattern of its own.
	Hidden bool

	// Types are content types by extension, with its dot and in lower case: ".gpx": "application/gpx+xml". They come
	// before those that are built in, about 70 of the web. "" is for the files that nobody knows; without it they are
	// application/octet-stream, which browsers save instead of showing it. The mime types of the system are not
	// looked at.
	Types map[string]string
}

// Serve answers r with the file that the wildcard {path...} of the pattern names, or else the whole path of the
// request.
func (s *Server) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	if s.FS == nil {
		panic("files: Server without an FS")
	}
	head := string(r.Method()) == "HEAD"
	if !head && string(r.Method()) != "GET" {
		w.Error(405)
		w.Add("Allow", "GET, HEAD")
		return nil
	}
	name, dir, ok := s.name(r)
	if !ok {
		w.Error(404)
		return nil
	}
	return &answer{server: s, w: w, r: r, head: head, found: found{name: name, dir: dir}}
}

// name is what r wants.
func (s *Server) name(r *httpd.Request) (name string, dir, ok bool) {
	path, ok := decode(bytes.TrimPrefix(r.Path(), []byte{'/'}))
	if !ok {
		return "", false, false
	}
	if v := r.Value("path"); v != nil {
		path = string(v)
	}
	return nameOf(path, s.Hidden)
}

// index is the name of a directory's file.
func (s *Server) index(dir string) string {
	index := s.Index
	if index == "" {
		index = "index.html"
	}
	if dir == "." {
		return index
	}
	return dir + "/" + index
}

// withSlash is where a directory is that was asked for without the slash at its end: a relative reference, so nothing
// needs to know under what prefix, name and port this is. Its dot keeps "//host" from being another host, and "a:b"
// from being a scheme (RFC 3986 4.2).
func withSlash(path, query []byte) string {
	var b strings.Builder
	b.WriteString("./")
	b.Write(path[bytes.LastIndexByte(path, '/')+1:])
	b.WriteByte('/')
	if len(query) > 0 {
		b.WriteByte('?')
		b.Write(query)
	}
	return b.String()
}
