//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// maxBacklog is more than kernels allow by default, and they reduce it to their limit; Linux before 4.1 kept 16 bits of
// it.
const maxBacklog = 1<<16 - 1

// limit returns what listen(2) takes for a backlog.
func limit(backlog int) int {
	if backlog <= 0 {
		return maxBacklog
	}
	return backlog
}

func listenTCP(addr netip.AddrPort, first bool, setting int) (int, error) {
	domain, sa, err := sockaddr(addr)
	if err != nil {
		return -1, err
	}
	fd, err := newSocket(domain, unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	if err = firstOrSibling(fd, domain, unix.SOCK_STREAM, sa, first, setting); err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// bind sets what every listening socket has before it is bound. SO_REUSEADDR lets one of TCP bind beside connections of
// an earlier server in TIME_WAIT, and beside a socket that is bound and does not listen yet. For UDP it would let another
// program take the packets (socket(7)).
func bind(fd, domain, kind int, sa unix.Sockaddr) error {
	if kind == unix.SOCK_STREAM {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
	}
	if domain == unix.AF_INET6 && mapsIPv4 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return err
		}
	}
	return unix.Bind(fd, sa)
}
