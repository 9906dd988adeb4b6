package files

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"
)

// small is the size up to which a file is read when it is found: then the request needs another goroutine only once. It is also
// how much of a large file is read at a time.
const small = 64 << 10

// found is the result of a search in the file system, which is made on another goroutine.
type found struct {
	name     string
	dir      bool    // a directory was requested
	slash    bool    // it is a directory, and a file was requested
	file     fs.File // nil: not open, or not needed any more
	size     int64
	modified time.Time
	inode    uint64 // 0: unknown
	parted   bool   // ranges of the file can be served
	content  []byte // of a small file
	err      error
}

// find finds the file, opens it, and reads it if it is small and its content is wanted.
func (x *found) find(s *Server, wanted bool) {
	if x.err = x.stat(s); x.err == nil && !x.slash {
		x.err = x.open(s.FS, wanted)
	}
}

// stat comes before open, because opening a pipe would wait for a writer.
func (x *found) stat(s *Server) error {
	if x.dir {
		x.name = strings.TrimPrefix(x.name+"/"+cmp.Or(s.Index, "index.html"), "./")
	}
	info, err := fs.Stat(s.FS, x.name)
	switch {
	case err != nil:
		return err
	case info.IsDir() && !x.dir:
		x.slash = true
	case !info.Mode().IsRegular():
		return fs.ErrNotExist
	}
	return nil
}

// open calls Stat again on the open file: that file is sent, whatever is renamed meanwhile.
func (x *found) open(fsys fs.FS, wanted bool) (err error) {
	if x.file, err = fsys.Open(x.name); err != nil {
		x.file = nil
		return err
	}
	info, err := x.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() < 0 { // the archive of a stranger may have negative sizes
		return fs.ErrNotExist
	}
	x.size, x.modified, x.inode = info.Size(), info.ModTime(), inode(info)
	_, reads := x.file.(io.ReaderAt)
	_, seeks := x.file.(io.Seeker)
	x.parted = reads || seeks || x.size <= small
	if wanted && x.size > small {
		return nil
	}
	if wanted {
		x.content = make([]byte, x.size)
		if err := x.read(x.content, 0); err != nil {
			return err
		}
	}
	return x.Close()
}

// read fills p with the bytes at from. A file that can only be read from front to back is read in that order, so its
// offset is from. If the file has become shorter the error is io.ErrUnexpectedEOF.
func (x *found) read(p []byte, from int64) error {
	var in io.Reader = x.file
	switch f := x.file.(type) {
	case io.ReaderAt:
		in = io.NewSectionReader(f, from, int64(len(p)))
	case io.Seeker:
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(in, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return &fs.PathError{Op: "read", Path: x.name, Err: err}
	}
	return nil
}

// Close closes the file. It was only read, so this does not wait.
func (x *found) Close() error {
	f := x.file
	if x.file = nil; f == nil {
		return nil
	}
	return f.Close()
}

// status returns the status that answers an error. Errors that are not the client's are 500.
func status(err error) int {
	is := func(one error) bool { return errors.Is(err, one) }
	switch {
	case slices.ContainsFunc(absent, is) || escapes(err):
		return 404
	case is(syscall.EMFILE) || is(syscall.ENFILE):
		return 503
	case is(fs.ErrPermission):
		return 403
	}
	return 500
}

// absent are the errors for names of nothing: also "a.txt/b", names that are too long, and links in a circle.
var absent = []error{fs.ErrNotExist, fs.ErrInvalid, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP}

// escapes reports whether a link leads out of an os.Root. Package os has no variable for that error, only this text.
func escapes(err error) bool {
	p := (*fs.PathError)(nil)
	return errors.As(err, &p) && p.Err.Error() == "path escapes from parent"
}
