package netpoll

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/race"
)

const (
	spreadsTCP        = true
	inheritsKeepAlive = true
	mapsIPv4          = true
	staleProbes       = 1 // a full backlog is EAGAIN, so a refusal is final
)

func abstract(path string) bool { return path[0] == '@' || path[0] == 0 }

func newSocket(domain, kind int) (int, error) {
	return unix.Socket(domain, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// The calls below go to the kernel directly: on a non-blocking descriptor they return at once. MSG_DONTWAIT makes sure
// of it, since a blocking descriptor would hold up the processor of this thread, and with it the garbage collector.

func accept(fd int) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}

func receive(fd int, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // the kernel would return 0, as at the end
	}
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])),
			uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			if race.Enabled {
				_, _ = syscall.Read(fd, nil) // see release; without room it leaves the socket alone (net/socket.c, sock_read_iter)
			}
			return int(n), nil
		case errno != unix.EINTR:
			return 0, errno
		}
	}
}

const sendFlags = unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT

func send(fd int, head, p []byte) (int, error) {
	if len(head) > 0 {
		if len(p) > 0 {
			return sendTwo(fd, head, p)
		}
		p = head
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])),
			uintptr(len(p)), sendFlags, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// sendTwo calls sendmsg, not writev, which takes no MSG_NOSIGNAL.
func sendTwo(fd int, head, p []byte) (int, error) {
	iov := [2]unix.Iovec{{Base: &head[0]}, {Base: &p[0]}}
	iov[0].SetLen(len(head))
	iov[1].SetLen(len(p))
	msg := unix.Msghdr{Iov: &iov[0]}
	msg.SetIovlen(len(iov))
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), sendFlags)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

func closeWrite(fd int) error {
	return bare(syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0))
}

func closeFD(fd int) error {
	_, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	if errno == unix.EINTR {
		return nil // closed: see System.Close
	}
	return bare(0, 0, errno)
}

// bare returns nil for an Errno of 0, which would not be nil as an error.
func bare(_, _ uintptr, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

var keepAliveTimes = []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL}

func localAddr(fd int) net.Addr {
	if a := name(fd, unix.SYS_GETSOCKNAME); a != nil {
		return a
	}
	return netAddr(unix.Getsockname(fd))
}

func peerAddr(fd int) net.Addr {
	if a := name(fd, unix.SYS_GETPEERNAME); a != nil {
		return a
	}
	if a := netAddr(unix.Getpeername(fd)); a != nil {
		return a
	}
	if a := peerAfterReset(fd); a != nil {
		return a
	}
	return nil
}

// name returns one of the two addresses of a TCP socket, or nil. x/sys/unix would ask for the protocol, too: one more
// system call for each request of a server that logs them.
func name(fd int, call uintptr) *net.TCPAddr {
	var a unix.RawSockaddrInet6
	if rawName(fd, call, &a) != 0 {
		return nil
	}
	return tcpAddr(&a)
}

func rawName(fd int, call uintptr, a *unix.RawSockaddrInet6) syscall.Errno {
	n := uint32(unix.SizeofSockaddrInet6)
	_, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(&n)))
	return errno
}

func peerAddrPort(fd int) netip.AddrPort {
	var a unix.RawSockaddrInet6
	if rawName(fd, unix.SYS_GETPEERNAME, &a) != 0 {
		return netip.AddrPort{}
	}
	var ip netip.Addr
	switch a.Family {
	case unix.AF_INET:
		ip = netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&a)).Addr)
	case unix.AF_INET6:
		ip = netip.AddrFrom16(a.Addr).Unmap().WithZone(zoneName(a.Scope_id))
	default:
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip, port(&a))
}

// port returns the port, which is at the same place in addresses of both families.
func port(a *unix.RawSockaddrInet6) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&a.Port)) // as on the wire
	return uint16(b[0])<<8 | uint16(b[1])
}

// peerAfterReset returns the peer of a TCP socket even after a reset, when getpeername(2) returns ENOTCONN. The length
// has to be the length of the address (net/core/sock.c, SO_PEERNAME).
func peerAfterReset(fd int) *net.TCPAddr {
	for _, n := range [...]uint32{unix.SizeofSockaddrInet6, unix.SizeofSockaddrInet4} {
		var a unix.RawSockaddrInet6
		_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERNAME,
			uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&n)), 0)
		if errno == 0 {
			return tcpAddr(&a)
		}
	}
	return nil
}

// tcpAddr returns an address of either IP family, or nil for another family.
func tcpAddr(a *unix.RawSockaddrInet6) *net.TCPAddr {
	own := &struct { // one allocation
		net.TCPAddr
		ip [16]byte
	}{TCPAddr: net.TCPAddr{Port: int(port(a))}}
	switch a.Family {
	case unix.AF_INET:
		own.IP = append(own.ip[:0], (*unix.RawSockaddrInet4)(unsafe.Pointer(a)).Addr[:]...)
	case unix.AF_INET6:
		own.IP, own.Zone = append(own.ip[:0], a.Addr[:]...), zoneName(a.Scope_id)
	default:
		return nil
	}
	return &own.TCPAddr
}
