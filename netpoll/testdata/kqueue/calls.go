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

// SendmsgN refuses what Darwin refuses.
func SendmsgN(fd int, p, oob []byte, to linux.Sockaddr, flags int) (int, error) {
	if len(p) > math.MaxInt32 {
		return -1, linux.EINVAL
	}
	return linux.SendmsgN(fd, p, oob, to, flags)
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
	Sockaddr = linux.Sockaddr
	Timespec = linux.Timespec
)

const (
	EBADF     = linux.EBADF
	EEXIST    = linux.EEXIST
	EINTR     = linux.EINTR
	EINVAL    = linux.EINVAL
	ENOTCONN  = linux.ENOTCONN
	ENOENT    = linux.ENOENT
	ETIMEDOUT = linux.ETIMEDOUT

	O_CLOEXEC     = linux.O_CLOEXEC
	O_NONBLOCK    = linux.O_NONBLOCK
	SHUT_WR       = linux.SHUT_WR
	SOCK_CLOEXEC  = linux.SOCK_CLOEXEC
	SOCK_NONBLOCK = linux.SOCK_NONBLOCK
	SOCK_STREAM   = linux.SOCK_STREAM

	MSG_NOSIGNAL  = linux.MSG_NOSIGNAL
	TCP_KEEPALIVE = linux.TCP_KEEPIDLE
	TCP_KEEPIDLE  = linux.TCP_KEEPIDLE
	TCP_KEEPINTVL = linux.TCP_KEEPINTVL
)

var (
	CloseOnExec    = linux.CloseOnExec
	Getpeername    = linux.Getpeername
	Getsockname    = linux.Getsockname
	NsecToTimespec = linux.NsecToTimespec
	Pipe2          = linux.Pipe2
	Read           = linux.Read
	SetNonblock    = linux.SetNonblock
	Shutdown       = linux.Shutdown
	Socket         = linux.Socket
	Write          = linux.Write
)
