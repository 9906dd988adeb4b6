//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"net"

	"golang.org/x/sys/unix"
)

func adopt(fd int) (addr net.Addr, spread bool, err error) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, false, err
	} else if kind != unix.SOCK_STREAM {
		return nil, false, unix.EPROTONOSUPPORT
	}
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil {
		return nil, false, err
	} else if listens == 0 {
		return nil, false, unix.EINVAL
	}
	if addr = localAddr(fd); addr == nil {
		return nil, false, unix.EAFNOSUPPORT
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, false, err
	}
	unix.CloseOnExec(fd)
	if _, tcp := addr.(*net.TCPAddr); !tcp || !spreadsTCP {
		return addr, false, nil
	}
	shared, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, portShared)
	return addr, shared != 0, err
}

func duplicate(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
