//go:build linux || darwin || dragonfly || netbsd || openbsd

package netpoll

import "golang.org/x/sys/unix"

// firstOrSibling binds and listens. The first sets SO_REUSEPORT when it listens already: set before
// bind, it would let in every instance of the program; set between bind and listen, two instances that
// start together both get through, because a socket that is bound but does not listen hinders no other
// with SO_REUSEADDR, and at listen both have SO_REUSEPORT. Set late, the second to listen is refused.
// On Linux the siblings find the first and make it a member of their group (reuseport_add_sock).
func firstOrSibling(fd, domain int, sa unix.Sockaddr, o ListenOptions) error {
	if !o.First {
		if err := sharePort(fd); err != nil {
			return err
		}
	}
	if err := bindTCP(fd, domain, sa); err != nil {
		return err
	}
	if err := unix.Listen(fd, o.backlog()); err != nil || !o.First {
		return err
	}
	return sharePort(fd)
}

func sharePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }
