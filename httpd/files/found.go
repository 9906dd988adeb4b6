package files

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// small is the size up to which a file is read when it is found: then the request leaves the thread only once. It is also
// how much of a large file is read at a time.
const small = 64 << 10

// found is the result of a search in the file system. It is filled off the scheduler's thread.
type found struct {
	name     string
	dir      bool    // a directory was requested
	slash    bool    // it is a directory, and a file was requested
	file     fs.File // nil: not open, or not needed any more
	size     int64
	modified time.Time
	parted   bool   // ranges of the file can be served
	content  []byte // of a small file
	err      error
}

// look finds the file, opens it, and reads it if it is small and its content is wanted.
func (x *found) look(s *Server, wanted bool) {
	if x.err = x.stat(s); x.err == nil && !x.slash {
		x.err = x.open(s.FS, wanted)
	}
}

// stat comes before open, because opening a pipe would wait for a writer.
func (x *found) stat(s *Server) error {
	info, err := fs.Stat(s.FS, x.name)
	if err != nil {
		return err
	}
	if info.IsDir() != x.dir {
		x.slash = info.IsDir()
		return notExist(!x.slash)
	}
	if x.dir {
		x.name = s.index(x.name)
		if info, err = fs.Stat(s.FS, x.name); err != nil {
			return err
		}
	}
	return notExist(!info.Mode().IsRegular())
}

// notExist returns fs.ErrNotExist for what exists and is not served.
func notExist(is bool) error {
	if is {
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
	x.size, x.modified = info.Size(), info.ModTime()
	x.parted = x.size <= small || divisible(x.file)
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

// divisible reports whether a file can be read from any offset.
func divisible(f fs.File) bool {
	switch f.(type) {
	case io.ReaderAt, io.Seeker:
		return true
	}
	return false
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
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return 404
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG): // "a.txt/b", and names that are too long
		return 404
	case errors.Is(err, syscall.ELOOP), escapes(err): // links in a circle, or out of the root
		return 404
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return 503
	case errors.Is(err, fs.ErrPermission):
		return 403
	}
	return 500
}

// escapes reports whether a link leads out of an os.Root. Package os has no variable for that error, only this text.
func escapes(err error) bool {
	p := (*fs.PathError)(nil)
	return errors.As(err, &p) && p.Err.Error() == "path escapes from parent"
}
