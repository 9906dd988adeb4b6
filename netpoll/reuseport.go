//go:build linux || darwin || netbsd || openbsd

package netpoll

import "golang.org/x/sys/unix"

// firstOrSibling binds and listens. The first sets SO_REUSEPORT once it listens. Set before bind, it would let in every
// instance of the program. Set between bind and listen, it would let in two that start together: a socket that is bound
// but does not listen does not exclude another with SO_REUSEADDR. Set late, the second to listen is refused. On Linux
// the siblings find the first and make it a member of their group (reuseport_add_sock). Sockets of UDP do not listen:
// they receive as soon as they are bound.
func firstOrSibling(fd, domain, kind int, sa unix.Sockaddr, first bool, setting int) error {
	if !first {
		if err := sharePort(fd); err != nil {
			return err
		}
	}
	err := bind(fd, domain, kind, sa)
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, limit(setting))
	}
	if err != nil || !first {
		return err
	}
	return sharePort(fd)
}

// portShared is the option that sockets of one port have.
const portShared = unix.SO_REUSEPORT

func sharePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, portShared, 1) }
