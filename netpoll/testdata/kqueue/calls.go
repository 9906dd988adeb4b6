package unix

import (
	"math"

	linux "golang.org/x/sys/unix"
)

// Accept does not hand on SO_KEEPALIVE, as macOS does not.
func Accept(fd int) (int, linux.Sockaddr, error) {
	n, sa, err := linux.Accept(fd)
	if err == nil {
		_ = linux.SetsockoptInt(n, linux.SOL_SOCKET, linux.SO_KEEPALIVE, 0)
	}
	return n, sa, err
}

// SendmsgN refuses what Darwin refuses, and a packet to a Unix socket without room as the BSDs do.
func SendmsgN(fd int, p, oob []byte, to linux.Sockaddr, flags int) (int, error) {
	if len(p) > math.MaxInt32 {
		return -1, linux.EINVAL
	}
	n, err := linux.SendmsgN(fd, p, oob, to, flags)
	if _, unix := to.(*linux.SockaddrUnix); unix && err == linux.EAGAIN {
		err = linux.ENOBUFS
	}
	return n, err
}

// SendmsgBuffers refuses what Darwin refuses.
func SendmsgBuffers(fd int, parts [][]byte, oob []byte, to linux.Sockaddr, flags int) (int, error) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > math.MaxInt32 {
		return -1, linux.EINVAL
	}
	return linux.SendmsgBuffers(fd, parts, oob, to, flags)
}

// What the systems have alike.

type (
	IPMreq        = linux.IPMreq
	Sockaddr      = linux.Sockaddr
	SockaddrInet4 = linux.SockaddrInet4
	SockaddrInet6 = linux.SockaddrInet6
	SockaddrUnix  = linux.SockaddrUnix
	Timespec      = linux.Timespec
)

const (
	EBADF        = linux.EBADF
	EEXIST       = linux.EEXIST
	EINTR        = linux.EINTR
	EINVAL       = linux.EINVAL
	ENAMETOOLONG = linux.ENAMETOOLONG
	ENODEV       = linux.ENODEV
	ENOPROTOOPT  = linux.ENOPROTOOPT
	ENOTCONN     = linux.ENOTCONN
	ENOENT       = linux.ENOENT
	ETIMEDOUT    = linux.ETIMEDOUT

	O_CLOEXEC     = linux.O_CLOEXEC
	O_NONBLOCK    = linux.O_NONBLOCK
	SHUT_WR       = linux.SHUT_WR
	SOCK_CLOEXEC  = linux.SOCK_CLOEXEC
	SOCK_NONBLOCK = linux.SOCK_NONBLOCK
	SOCK_STREAM   = linux.SOCK_STREAM

	AF_INET             = linux.AF_INET
	AF_INET6            = linux.AF_INET6
	IPPROTO_IP          = linux.IPPROTO_IP
	IPPROTO_IPV6        = linux.IPPROTO_IPV6
	IPV6_DONTFRAG       = linux.IPV6_DONTFRAG
	IPV6_MULTICAST_HOPS = linux.IPV6_MULTICAST_HOPS
	IPV6_TCLASS         = linux.IPV6_TCLASS
	IP_ADD_MEMBERSHIP   = linux.IP_ADD_MEMBERSHIP
	IP_DONTFRAG         = linux.IP_MTU_DISCOVER
	IP_DROP_MEMBERSHIP  = linux.IP_DROP_MEMBERSHIP
	IP_MULTICAST_TTL    = linux.IP_MULTICAST_TTL
	IP_TOS              = linux.IP_TOS
	MSG_TRUNC           = linux.MSG_TRUNC

	MSG_NOSIGNAL  = linux.MSG_NOSIGNAL
	TCP_KEEPALIVE = linux.TCP_KEEPIDLE
	TCP_KEEPIDLE  = linux.TCP_KEEPIDLE
	TCP_KEEPINTVL = linux.TCP_KEEPINTVL
)

var (
	CloseOnExec      = linux.CloseOnExec
	Getpeername      = linux.Getpeername
	Getsockname      = linux.Getsockname
	NsecToTimespec   = linux.NsecToTimespec
	Pipe2            = linux.Pipe2
	Read             = linux.Read
	Recvmsg          = linux.Recvmsg
	SetNonblock      = linux.SetNonblock
	SetsockoptIPMreq = linux.SetsockoptIPMreq
	Shutdown         = linux.Shutdown
	Socket           = linux.Socket
	Write            = linux.Write
)
