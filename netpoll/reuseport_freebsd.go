package netpoll

import "golang.org/x/sys/unix"

// portShared is the option that sockets of one port have.
const portShared = unix.SO_REUSEPORT_LB

// firstOrSibling binds and listens. A socket becomes a member of the group that connections are spread over when it
// binds with SO_REUSEPORT_LB set, not when the option is set later. So another socket finds out whether the first is
// alone, and chooses the port if that is 0.
func firstOrSibling(fd, domain, kind int, sa unix.Sockaddr, first bool, setting int) (err error) {
	if first {
		if sa, err = alone(domain, kind, sa); err != nil {
			return err
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, portShared, 1); err != nil {
		return err
	}
	if err := bind(fd, domain, kind, sa); err != nil || kind != unix.SOCK_STREAM {
		return err
	}
	return unix.Listen(fd, limit(setting))
}

// alone returns the address as bound, or EADDRINUSE.
func alone(domain, kind int, sa unix.Sockaddr) (unix.Sockaddr, error) {
	fd, err := newSocket(domain, kind)
	if err != nil {
		return nil, err
	}
	defer closeFD(fd)
	if err = bind(fd, domain, kind, sa); err != nil {
		return nil, err
	}
	return unix.Getsockname(fd)
}
