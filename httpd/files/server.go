package files

import (
	"bytes"
	"io/fs"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

// Server answers GET and HEAD with the files of FS: its Serve is an httpd.Handler. It may be used on any number of
// schedulers at a time, and must not be changed meanwhile.
type Server struct {
	// FS has the files. Its methods are called on goroutines of the executor, several at a time, and may block. For a directory use
	// a Directory, so that no symbolic link leads out of it.
	FS fs.FS

	// Index is the name of the file that is sent for a directory; "" means "index.html". A directory without that file
	// is answered with 404: directories are not listed.
	Index string

	// Hidden also serves files and directories whose names begin with a dot. The only one that is public, .well-known
	// (RFC 8615), is better served by a Server and a pattern of its own.
	Hidden bool

	// Types are content types by extension, with its dot and in lower case: ".gpx": "application/gpx+xml". They go before
	// the built-in ones, about 70 that the web uses. "" is the type of all other files; without it that is
	// application/octet-stream, which browsers save instead of showing it. The MIME types of the operating system are not
	// used.
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
		w.StatusOnly(405)
		w.Add("Allow", "GET, HEAD")
		return nil
	}
	name, dir, ok := s.name(r)
	if !ok {
		w.StatusOnly(404)
		return nil
	}
	return &answer{server: s, w: w, r: r, head: head, found: found{name: name, dir: dir}}
}

// name returns the name of the file or directory that r is for.
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

// withSlash returns the location of a directory that was requested without the slash at its end. It is a relative
// reference, so prefix, host and port do not matter. Its dot keeps "//host" from being another host, and "a:b" from being
// a scheme (RFC 3986 4.2).
func withSlash(path, query []byte) string {
	to := "./" + string(path[bytes.LastIndexByte(path, '/')+1:]) + "/"
	if len(query) > 0 {
		to += "?" + string(query)
	}
	return to
}
