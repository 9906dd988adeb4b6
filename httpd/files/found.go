package files

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// small is up to which size a file is read when it is looked for, and then needs nobody off the thread any more. It
// is also how much of a large one is read at a time.
const small = 64 << 10

// found is what became of a look into the file system. It is filled off the scheduler's thread.
type found struct {
	name     string
	dir      bool    // a directory is wanted
	slash    bool    // there is a directory, and none was wanted
	file     fs.File // nil: not open, or not needed any more
	size     int64
	modified time.Time
	parted   bool   // parts of the file can be had
	content  []byte // of a small file
	err      error
}

// look finds the file, opens it, and reads it if it is small and if it is wanted.
func (x *found) look(s *Server, wanted bool) {
	if x.err = x.stat(s); x.err == nil && !x.slash {
		x.err = x.open(s.FS, wanted)
	}
}

// stat comes before open for the sake of what is no file: opening a pipe would wait for somebody to write.
func (x *found) stat(s *Server) error {
	info, err := fs.Stat(s.FS, x.name)
	if err != nil {
		return err
	}
	if info.IsDir() != x.dir {
		x.slash = info.IsDir()
		return nobody(!x.slash)
	}
	if x.dir {
		x.name = s.index(x.name)
		if info, err = fs.Stat(s.FS, x.name); err != nil {
			return err
		}
	}
	return nobody(!info.Mode().IsRegular())
}

// nobody is the error of what is there and not to be had.
func nobody(is bool) error {
	if is {
		return fs.ErrNotExist
	}
	return nil
}

// open looks again at what it has opened: that is what is sent, whatever is renamed meanwhile.
func (x *found) open(fsys fs.FS, wanted bool) (err error) {
	if x.file, err = fsys.Open(x.name); err != nil {
		x.file = nil
		return err
	}
	info, err := x.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() < 0 { // as an archive may say that somebody else has made
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

// read fills p with what is at from, which for a file that can only be read in one go is where the last read ended.
// A file that has become shorter is io.ErrUnexpectedEOF.
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

// divisible tells whether a file can be read from anywhere.
func divisible(f fs.File) bool {
	switch f.(type) {
	case io.ReaderAt, io.Seeker:
		return true
	}
	return false
}

// Close closes the file. It was only read, so there is nothing that this could wait for.
func (x *found) Close() error {
	f := x.file
	if x.file = nil; f == nil {
		return nil
	}
	return f.Close()
}

// status is what a client is told of an error. What it could have known is not our trouble; everything else is 500.
func status(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return 404
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG): // "a.txt/b", and what nothing can be called
		return 404
	case errors.Is(err, syscall.ELOOP), escapes(err): // links that lead nowhere, or nowhere that is ours
		return 404
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return 503
	case errors.Is(err, fs.ErrPermission):
		return 403
	}
	return 500
}

// escapes tells of a link that leads out of an os.Root. Package os has no name for that error, only these words.
func escapes(err error) bool {
	p := (*fs.PathError)(nil)
	return errors.As(err, &p) && p.Err.Error() == "path escapes from parent"
}
