//go:build freebsd || netbsd || openbsd

package netpoll

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func newSocket(domain, kind int) (int, error) {
	return unix.Socket(domain, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// accept calls package syscall: x/sys/unix has no Accept4 for NetBSD and OpenBSD.
func accept(fd int) (int, error) {
	n, _, err := syscall.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	for err == unix.EINTR {
		n, _, err = syscall.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	}
	if err != nil {
		return -1, err
	}
	return n, nil
}
