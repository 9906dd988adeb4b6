//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A path is a name in a file system, which outlives the program that has bound it. So listening there has a policy: a
// live server is left alone, a stale file is replaced, and a lock orders programs that start at the same time.

// ListenUnix listens at a path, with a backlog as in ListenTCP, and returns the descriptor. A socket file at which nothing
// listens is replaced. prepare, if not nil, is called with the path of the new socket file, before anyone can connect; if
// it fails, the file is removed and ListenUnix returns its error. EADDRINUSE means that a program listens there, ENOTSOCK
// that the path is another file, ENAMETOOLONG that it does not fit (107 bytes on Linux, 103 elsewhere). On Linux a path
// that begins with @ or NUL is an abstract name, without a file. Close does not remove the file.
//
// ListenUnix finds out whether a program listens by connecting, so a live server accepts a connection that ends at once.
// A lock (flock) of the directory orders two programs that start at the same time; ListenUnix waits for it for a second at
// most. Without it (the directory is not readable, or another OS process holds the lock) the last to start could take the
// path from another that has bound and does not listen yet. On kqueue a live server with a full backlog refuses as a dead
// one does, so ListenUnix tries ten times within a tenth of a second.
func (System) ListenUnix(path string, backlog int, prepare func(path string) error) (fd int, err error) {
	return takePath(path, func() (int, error) {
		return bindUnix(path, unix.SOCK_STREAM, prepare, func(fd int) error { return unix.Listen(fd, limit(backlog)) })
	})
}

// takePath binds a socket to a path, which it may have to free first. It connects with a stream socket whatever kind of
// socket is bound there: a live socket of another kind is EPROTOTYPE.
func takePath(path string, bind func() (int, error)) (fd int, err error) {
	if !fits(path) {
		return -1, unix.ENAMETOOLONG
	}
	if path == "" {
		return -1, unix.EINVAL // Linux would choose a name that no client knows
	}
	if abstract(path) {
		return bind()
	}
	defer lockFolder(path)()
	fd, err = bind()
	switch {
	case err != unix.EADDRINUSE:
		return fd, err
	case otherFile(path):
		return -1, unix.ENOTSOCK
	case !stale(path):
		return -1, err
	}
	if err = unix.Unlink(path); err != nil && err != unix.ENOENT {
		return -1, err
	}
	return bind()
}

// bindUnix opens a socket and binds it. open makes it ready, after prepare.
func bindUnix(path string, kind int, prepare func(string) error, open func(fd int) error) (int, error) {
	fd, err := newSocket(unix.AF_UNIX, kind)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		if prepare != nil && !abstract(path) {
			if err = prepare(path); err != nil {
				_ = unix.Unlink(path) // the error that matters is the other one
			}
		}
		if err == nil {
			err = open(fd)
		}
	}
	if err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// otherFile reports whether the path is a file other than a socket; a symbolic link counts as one.
func otherFile(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && uint32(st.Mode)&unix.S_IFMT != unix.S_IFSOCK
}

// stale reports whether the path is a socket at which nothing listens; a symbolic link is not followed. Only a refusal
// proves it: EAGAIN is a live server that is busy. A file that has just been removed counts as stale.
func stale(path string) bool {
	if otherFile(path) {
		return false
	}
	for try := range staleProbes {
		if try > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if fd, _, err := (System{}).DialUnix(path); err != unix.ECONNREFUSED {
			_ = closeFD(fd)
			return err == unix.ENOENT
		}
	}
	return true
}

// Unlink removes the file of a Unix socket at which no process listens, and leaves any other file alone.
func (System) Unlink(path string) error {
	if path == "" || abstract(path) {
		return nil
	}
	defer lockFolder(path)()
	if !stale(path) {
		return nil
	}
	return unix.Unlink(path)
}

// lockFolder keeps out other programs that start at the same path, between finding a stale socket and listening at its
// successor. It locks the directory, so that no file is left over; the lock ends with the descriptor, so that no crash
// leaves it locked. Without the lock we go on: other programs lock directories too, some for as long as they live.
func lockFolder(path string) (unlock func()) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	for range 200 { // a program like this one holds it for microseconds; a second is for an overloaded machine
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return func() { _ = closeFD(fd) }
}
