//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"net"

	"golang.org/x/sys/unix"
)

// Adopt prepares fd, a listening socket that another OS process has made, for the other methods: it makes fd
// close-on-exec, and non-blocking together with all descriptors of that socket. It returns the address. spread reports
// whether further sockets may join its port by JoinTCP (see [SpreadsTCP]). The error is EINVAL if fd does not listen,
// EPROTONOSUPPORT if it is not a stream socket, EAFNOSUPPORT if it is neither TCP nor Unix, EBADF or ENOTSOCK if it is
// not a socket.
func (System) Adopt(fd int) (addr net.Addr, spread bool, err error) {
	if err := checkKind(fd, unix.SOCK_STREAM); err != nil {
		return nil, false, err
	}
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil {
		return nil, false, err
	} else if listens == 0 {
		return nil, false, unix.EINVAL
	}
	if addr = localAddr(fd); addr == nil {
		return nil, false, unix.EAFNOSUPPORT
	}
	_, tcp := addr.(*net.TCPAddr)
	spread, err = takeOver(fd, tcp)
	return addr, spread, err
}

func checkKind(fd, want int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && kind != want {
		err = unix.EPROTONOSUPPORT
	}
	return err
}

// takeOver prepares a socket, and reports whether others may join its port, if it has one.
func takeOver(fd int, hasPort bool) (spread bool, err error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return false, err
	}
	unix.CloseOnExec(fd)
	if !hasPort || !spreadsTCP {
		return false, nil
	}
	shared, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, portShared)
	return shared != 0, err
}

// Duplicate returns another descriptor for the socket of fd, as dup(2) does, that is close-on-exec. The caller closes it.
func (System) Duplicate(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
