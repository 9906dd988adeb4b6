//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"net/netip"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxBacklog is more than systems allow by default and is cut to what they do; Linux before 4.1 kept 16 bits of it.
const maxBacklog = 1<<16 - 1

func (o ListenOptions) backlog() int {
	if o.Backlog <= 0 {
		return maxBacklog
	}
	return o.Backlog
}

func listenTCP(addr netip.AddrPort, o ListenOptions) (int, error) {
	domain, sa, err := sockaddr(addr)
	if err != nil {
		return -1, err
	}
	fd, err := newSocket(domain)
	if err != nil {
		return -1, err
	}
	if err = firstOrSibling(fd, domain, sa, o); err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// bindTCP sets what every listening socket has before it is bound. SO_REUSEADDR lets it bind beside connections of an
// earlier server in TIME_WAIT, and beside a socket that is bound and does not listen yet.
func bindTCP(fd, domain int, sa unix.Sockaddr) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if domain == unix.AF_INET6 && mapsIPv4 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return err
		}
	}
	return unix.Bind(fd, sa)
}

func listenUnix(path string, o ListenOptions) (int, error) {
	if !fits(path) {
		return -1, unix.ENAMETOOLONG
	}
	if path == "" {
		return -1, unix.EINVAL // Linux would choose a name that no client knows
	}
	if abstract(path) {
		return bindUnix(path, o)
	}
	defer lockFolder(path)()
	fd, err := bindUnix(path, o)
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
	return bindUnix(path, o)
}

func bindUnix(path string, o ListenOptions) (int, error) {
	fd, err := newSocket(unix.AF_UNIX)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		if o.Prepare != nil && !abstract(path) {
			if err = o.Prepare(path); err != nil {
				_ = unix.Unlink(path) // the error that matters is the other one
			}
		}
		if err == nil {
			err = unix.Listen(fd, o.backlog())
		}
	}
	if err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// otherFile reports whether a file that is no socket lies there; a symbolic link is one.
func otherFile(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && uint32(st.Mode)&unix.S_IFMT != unix.S_IFSOCK
}

// stale reports whether the path is a socket at which nothing listens; a symbolic link is not followed. Only a refusal
// is a proof: EAGAIN is a live server that is busy. A file that has just gone is as good as stale.
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

// lockFolder keeps other programs that start here out of the time between finding a stale socket and listening at its
// successor. The lock is the directory's, so that no file is left behind; it goes with the descriptor, so that no crash
// leaves it locked. Without one we go on: other programs lock directories too, some for as long as they live.
func lockFolder(path string) (unlock func()) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	for range 200 { // a program like this one holds it for microseconds; a second is for a machine that stands still
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return func() { _ = closeFD(fd) }
}
