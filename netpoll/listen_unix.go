//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A path is a name in a file system, which outlives the program that has bound it. So listening there has a policy: a
// live server is left alone, a stale file is replaced, and a lock orders programs that start at the same time.

func listenUnix(path string, setting int, prepare func(string) error) (int, error) {
	if !fits(path) {
		return -1, unix.ENAMETOOLONG
	}
	if path == "" {
		return -1, unix.EINVAL // Linux would choose a name that no client knows
	}
	if abstract(path) {
		return bindUnix(path, setting, prepare)
	}
	defer lockFolder(path)()
	fd, err := bindUnix(path, setting, prepare)
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
	return bindUnix(path, setting, prepare)
}

func bindUnix(path string, setting int, prepare func(string) error) (int, error) {
	fd, err := newSocket(unix.AF_UNIX)
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
			err = unix.Listen(fd, backlog(setting))
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
		if fd, _, err := dialUnix(path); err != unix.ECONNREFUSED {
			_ = closeFD(fd)
			return err == unix.ENOENT
		}
	}
	return true
}

func unlinkUnix(path string) error {
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
