package netpoll

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// newSocket sets the flags that other systems take in socket(2). The lock keeps a child from being started in between,
// with a copy of the descriptor.
func newSocket(domain, kind int) (int, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(domain, kind, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	return nonBlocking(fd, err)
}

func accept(fd int) (int, error) {
	syscall.ForkLock.RLock()
	n, _, err := unix.Accept(fd)
	for err == unix.EINTR {
		n, _, err = unix.Accept(fd)
	}
	if err == nil {
		unix.CloseOnExec(n)
	}
	syscall.ForkLock.RUnlock()
	return nonBlocking(n, err)
}

func nonBlocking(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	if err = unix.SetNonblock(fd, true); err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}
