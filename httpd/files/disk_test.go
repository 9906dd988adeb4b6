package files_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// onDisk writes a tree to a directory, as an os.Root. It leaves out what is neither a file nor a directory.
func onDisk(t *testing.T, tree fstest.MapFS) fs.FS {
	t.Helper()
	fsys, _ := rooted(t, tree)
	return fsys
}

func rooted(t *testing.T, tree fstest.MapFS) (fs.FS, string) {
	t.Helper()
	dir := t.TempDir()
	for name, f := range tree {
		if path := filepath.Join(dir, name); f.Mode.IsRegular() {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, f.Data, 0o644))
			require.NoError(t, os.Chtimes(path, f.ModTime, f.ModTime))
		}
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root.FS(), dir
}

func TestADirectory(t *testing.T) {
	servertest.CheckDescriptors(t)
	fsys, dir := rooted(t, tree)
	outside := filepath.Join(t.TempDir(), "outside.txt")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o644))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "inside.txt")))
	require.NoError(t, os.Symlink("docs", filepath.Join(dir, "inside")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "outside.txt")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "outside")))
	require.NoError(t, os.Symlink("../../../../../../../etc/passwd", filepath.Join(dir, "up.txt")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "nowhere.txt")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	door, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer func() { _ = door.Close() }()

	s := serve(t, fsys)
	for _, x := range []struct {
		path string
		want int
	}{
		{"a.txt", 200}, {"", 200}, {"docs/", 200}, {"docs", 301}, {"inside.txt", 200}, {"inside/", 200}, {"inside", 301},
		{"none", 404}, {"a.txt/", 404}, {"a.txt/b", 404}, {"nowhere.txt", 404}, {"pipe", 404}, {"s", 404},
		{strings.Repeat("a", 300), 404}, {strings.Repeat("aaaaaaaaa/", 500), 404},
		{"outside.txt", 404}, {"outside/outside.txt", 404}, {"outside/", 404}, {"up.txt", 404}, {"loop", 404},
	} {
		r := s.get("/f/" + x.path)
		require.Equal(t, x.want, r.StatusCode, x.path)
	}
	s.quiet()
}

// Tools that copy files keep their times: a client must not keep the old file for that.
func TestAFileReplacedByOneOfTheSameTimeAndSizeHasAnotherTag(t *testing.T) {
	fsys, dir := rooted(t, fstest.MapFS{"a": file("old"), "b": file("new")})
	s := serve(t, fsys)
	old := s.get("/f/a")
	require.Equal(t, old.Header.Get("ETag"), s.get("/f/a").Header.Get("ETag"))
	require.NoError(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")))
	replaced := s.get("/f/a")
	require.Equal(t, old.Header.Get("Last-Modified"), replaced.Header.Get("Last-Modified"))
	require.NotEqual(t, old.Header.Get("ETag"), replaced.Header.Get("ETag"))
}

// What was broken: after a deployment by a link the old files were served until the end.
func TestADirectoryIsOpenedAgain(t *testing.T) {
	servertest.CheckDescriptors(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	deploy := func(version string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "a"), []byte(version), 0o644))
		require.NoError(t, os.Symlink(version, link+"+"))
		require.NoError(t, os.Rename(link+"+", link))
	}
	d := &files.Directory{Path: link}
	_, err := d.Open("a")
	require.ErrorIs(t, err, fs.ErrClosed)
	deploy("1")
	require.NoError(t, d.Reload())
	defer func() { require.NoError(t, d.Close()) }()
	s := serve(t, d)
	serves := func(version string) { require.Equal(t, version, s.get("/f/a").body) }
	deploy("2")
	serves("1")
	require.NoError(t, d.Reload())
	serves("2")
	require.NoError(t, os.Remove(link))
	require.ErrorIs(t, d.Reload(), fs.ErrNotExist)
	serves("2")
}

// A directory is closed while others look into it.
func TestADirectoryThatIsReplacedFailsNoCall(t *testing.T) {
	d := &files.Directory{Path: t.TempDir()}
	require.NoError(t, d.Reload())
	defer func() { require.NoError(t, d.Close()) }()
	over := make(chan error)
	go func() {
		for range 2000 {
			if err := d.Reload(); err != nil {
				over <- err
			}
		}
		close(over)
	}()
	for {
		select {
		case err := <-over:
			require.NoError(t, err)
			return
		default:
			_, err := d.Stat(".")
			require.NoError(t, err)
		}
	}
}

// faulty is an fs.FS whose files fail, and which counts its open files.
type faulty struct {
	fs.FS
	stat, open error
	short      int64 // files end there; 0: they do not
	opened     atomic.Int32
	hold       chan struct{} // nil: nothing is held up
	held       atomic.Int32  // how many calls of Open were
}

func (x *faulty) Stat(name string) (fs.FileInfo, error) {
	if x.stat != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: x.stat}
	}
	return fs.Stat(x.FS, name)
}

func (x *faulty) Open(name string) (fs.File, error) {
	if x.hold != nil {
		x.held.Add(1)
		<-x.hold
	}
	if x.open != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: x.open}
	}
	f, err := x.FS.Open(name)
	if err == nil {
		x.opened.Add(1)
	}
	return &shortened{f, x}, err
}

type shortened struct {
	fs.File
	of *faulty
}

func (x *shortened) ReadAt(p []byte, from int64) (int, error) {
	if most := x.of.short; most > 0 && from+int64(len(p)) > most {
		n, _ := x.File.(io.ReaderAt).ReadAt(p[:max(0, most-from)], from)
		return n, io.EOF
	}
	return x.File.(io.ReaderAt).ReadAt(p, from)
}

func (x *shortened) Close() error {
	x.of.opened.Add(-1)
	return x.File.Close()
}

func TestErrorsOfTheFileSystem(t *testing.T) {
	for _, x := range []struct {
		err  error
		want int
	}{
		{fs.ErrNotExist, 404}, {fs.ErrInvalid, 404}, {fs.ErrPermission, 403}, {syscall.ENOENT, 404}, {syscall.ENOTDIR, 404},
		{syscall.ENAMETOOLONG, 404}, {syscall.EACCES, 403}, {syscall.EPERM, 403}, {syscall.EIO, 500}, {syscall.EMFILE, 503},
		{syscall.ENFILE, 503}, {errors.New("the secret cause"), 500},
	} {
		for _, fsys := range []*faulty{{FS: tree, stat: x.err}, {FS: tree, open: x.err}} {
			s := serve(t, fsys)
			r := s.get("/f/a.txt")
			require.Equal(t, x.want, r.StatusCode, x.err)
			require.Equal(t, fmt.Sprintf("%d %s\n", x.want, http.StatusText(x.want)), r.body)
			if x.want != 500 {
				s.quiet()
			} else {
				require.Contains(t, s.complains(), "a.txt: "+x.err.Error())
			}
		}
	}
}

func TestFilesAreClosedAfterEachOutcome(t *testing.T) {
	fsys := &faulty{FS: tree}
	s := serve(t, fsys)
	for _, path := range []string{"a.txt", "large.bin", "edge.bin", "docs/"} {
		for _, with := range []string{"X: y", "If-None-Match: *", "If-Match: x", "Range: bytes=1-2", "Range: bytes=999999-"} {
			s.get("/f/"+path, with)
			s.ask("HEAD /f/"+path, with)
		}
	}
	require.Zero(t, fsys.opened.Load())
	c := s.dial()
	c.say("GET /f/large.bin")
	_, err := c.in.Peek(1)
	require.NoError(t, err)
	require.NoError(t, c.conn.Close())
	require.Eventually(t, func() bool { return fsys.opened.Load() == 0 }, servertest.Timeout, time.Millisecond, "the client has gone")
}

// A file that becomes shorter is a 500 if nothing has been sent, otherwise a reset, so that no client takes it for complete.
func TestAFileInMemoryThatBecomesShorter(t *testing.T) {
	for _, row := range []struct {
		name  string
		short int64
		reset bool
	}{{"a.txt", 5, false}, {"large.bin", 1, false}, {"large.bin", 64 << 10, true}, {"large.bin", 100_000, true}} {
		fsys := &faulty{FS: tree, short: row.short}
		s := serve(t, fsys)
		c := s.dial()
		c.say("GET /f/"+row.name, "Connection: close")
		got, err := io.ReadAll(c.in)
		require.Equal(t, row.reset, err != nil)
		require.Less(t, len(got), 300_000)
		require.Equal(t, row.reset, !strings.HasPrefix(string(got), "HTTP/1.1 500 "))
		require.Equal(t, "files: read "+row.name+": unexpected EOF", s.complains())
		require.Eventually(t, func() bool { return fsys.opened.Load() == 0 }, servertest.Timeout, time.Millisecond)
	}
}

// The server ends without the goroutine that opens a file, which then closes the file.
func TestAServerEndsWhileAFileIsBeingOpened(t *testing.T) {
	fsys := &faulty{FS: tree, hold: make(chan struct{})}
	s := serve(t, fsys)
	c := s.dial()
	c.say("GET /f/large.bin")
	c.say("GET /f/a.txt")
	require.Eventually(t, func() bool { return fsys.held.Load() == 1 }, servertest.Timeout, time.Millisecond)
	require.Error(t, s.stop(), "it was cut off")
	close(fsys.hold)
	require.Eventually(t, func() bool { return fsys.opened.Load() == 0 }, servertest.Timeout, time.Millisecond)
}

// seeking hides io.ReaderAt, forward also io.Seeker. Both run on any system.
type (
	seeking struct{ fs.FS }
	forward struct{ fs.FS }
)

func (x seeking) Open(name string) (fs.File, error) {
	f, err := x.FS.Open(name)
	if seeker, is := f.(io.Seeker); is {
		return struct {
			fs.File
			io.Seeker
		}{f, seeker}, err
	}
	return f, err
}

func (x forward) Open(name string) (fs.File, error) {
	f, err := x.FS.Open(name)
	return struct{ fs.File }{f}, err
}

// While the thread of the scheduler waits for a file, nothing else is served.
func TestASlowFileSystemDelaysNoOtherRequest(t *testing.T) {
	fsys := &faulty{FS: tree, hold: make(chan struct{})}
	s := serve(t, fsys)
	c := s.dial()
	c.say("GET /f/a.txt")
	require.Equal(t, 404, s.get("/elsewhere").StatusCode)
	close(fsys.hold)
	require.Equal(t, "0123456789", c.hear("GET").body)
}
