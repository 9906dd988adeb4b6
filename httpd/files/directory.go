package files

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
)

// Directory is the directory at Path as an FS for a [Server]. No symbolic link leads out of it, as with os.Root; Path itself may
// be one. It stays the directory that was there when it was opened, even if that is renamed, or Path becomes a link to
// another one. Reload opens it again, for deployments that do so. Its methods block, and are for any goroutine.
type Directory struct {
	// Path is the path of the directory, which Reload opens. Do not change it while other goroutines use the Directory.
	Path string

	opening sync.Mutex // one Reload at a time, so that an earlier one cannot take the place of a later one
	root    atomic.Pointer[os.Root]
}

// Reload opens Path, at first and again. Requests from there on get the files of the new directory, and downloads that have
// begun go on with the old ones. After an error the directory that was opened before stays in force.
// Reload blocks. Any goroutine.
func (d *Directory) Reload() error {
	d.opening.Lock()
	defer d.opening.Unlock()
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return err
	}
	return replace(d.root.Swap(root))
}

// Close closes the directory: Open and Stat then fail with fs.ErrClosed. Files that are open stay open. Any goroutine.
func (d *Directory) Close() error { return replace(d.root.Swap(nil)) }

func replace(old *os.Root) error {
	if old == nil {
		return nil
	}
	return old.Close()
}

// Open opens a file in the directory, for reading: it implements [fs.FS]. Before the first Reload and after Close the error is
// fs.ErrClosed. It blocks. Any goroutine.
func (d *Directory) Open(name string) (fs.File, error) { return within(d, name, fs.FS.Open) }

// Stat returns what is known of a file in the directory: it implements [fs.StatFS]. The errors are as for Open. It blocks.
// Any goroutine.
func (d *Directory) Stat(name string) (fs.FileInfo, error) { return within(d, name, fs.Stat) }

// within calls f with the directory. If that is closed meanwhile, there is a new one.
func within[T any](d *Directory, name string, f func(fs.FS, string) (T, error)) (result T, err error) {
	for {
		root := d.root.Load()
		if root == nil {
			return result, &fs.PathError{Op: "open", Path: name, Err: fs.ErrClosed}
		}
		if result, err = f(root.FS(), name); !errors.Is(err, fs.ErrClosed) || d.root.Load() == root {
			return result, err
		}
	}
}
