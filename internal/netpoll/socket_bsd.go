//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"io"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// OpenBSD and DragonFly have no sockets for both versions and refuse the option.
	mapsIPv4 = runtime.GOOS != "openbsd" && runtime.GOOS != "dragonfly"
	// A full backlog is ECONNREFUSED, as if nothing listened, so after a refusal it tries again.
	staleProbes = 10
)

// abstract names are Linux's.
func abstract(string) bool { return false }

// newSocket sets what Linux takes along in socket(2). The lock keeps a child from being started in
// between, with a copy of the descriptor.
func newSocket(domain int) (int, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
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

func receive(fd int, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // the kernel would return 0, as at the end
	}
	for {
		switch n, err := unix.Read(fd, p); {
		case err == nil && n == 0:
			return 0, io.EOF
		case err != unix.EINTR:
			return max(0, n), err
		}
	}
}

// send is sendmsg for one part too, because write takes no MSG_NOSIGNAL and x/sys/unix's sendto
// does not say how much was sent.
func send(fd int, head, p []byte) (int, error) {
	if len(head) == 0 && len(p) == 0 {
		return 0, nil
	}
	parts := [][]byte{head, p}
	for {
		if n, err := unix.SendmsgBuffers(fd, parts, nil, nil, noSignal); err != unix.EINTR {
			return max(0, n), err
		}
	}
}

func closeWrite(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) }

func closeFD(fd int) error {
	if err := unix.Close(fd); err != unix.EINTR {
		return err
	}
	return nil // closed: see System.Close
}
