//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errClosed is the error that a system call on a closed Poller would return.
const errClosed = unix.EBADF

// DialTCP begins to connect to addr. If done is false, the connect is in progress: add fd to a [Poller], wait for Out
// or Error, and call SocketError for the outcome. After an error there is no descriptor.
func (System) DialTCP(addr netip.AddrPort) (fd int, done bool, err error) {
	domain, sa, err := sockaddr(addr)
	if err != nil {
		return -1, false, err
	}
	return connect(domain, sa)
}

// DialUnix connects to the socket at path, as DialTCP does. EAGAIN is an error: the backlog of the
// listener is full, and no event reports when it no longer is.
func (System) DialUnix(path string) (fd int, done bool, err error) {
	if !fits(path) {
		return -1, false, unix.ENAMETOOLONG
	}
	return connect(unix.AF_UNIX, &unix.SockaddrUnix{Name: path})
}

func connect(domain int, sa unix.Sockaddr) (int, bool, error) {
	fd, err := newSocket(domain, unix.SOCK_STREAM)
	if err != nil {
		return -1, false, err
	}
	switch err = unix.Connect(fd, sa); err {
	case nil:
		return fd, true, nil
	case unix.EINPROGRESS, unix.EINTR: // interrupted, it goes on by itself (connect(2))
		return fd, false, nil
	}
	_ = closeFD(fd)
	return -1, false, err
}

// SocketError takes the pending error of a socket (SO_ERROR), nil if there is none. The next call no longer sees it.
func (System) SocketError(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || n == 0 {
		return err
	}
	return unix.Errno(n)
}

// Waiting reports whether a connection waits to be accepted, without accepting it: a full server calls it before it
// evicts an idle connection.
func (System) Waiting(fd int) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0
}

// Reset closes fd and discards bytes that were not yet sent: a TCP peer sees ECONNRESET, on some systems after the
// bytes that had arrived. A Unix peer sees the end of the stream, or ECONNRESET if fd had unread data.
func (System) Reset(fd int) error {
	linger := unix.Linger{Onoff: 1, Linger: 0}
	err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &linger)
	if e := closeFD(fd); err == nil {
		err = e
	}
	return err
}

// SetNoDelay makes the kernel send small segments at once (true), or gather them while earlier ones are not
// acknowledged (TCP_NODELAY). The default, which Accept and DialTCP leave, is to gather.
func (System) SetNoDelay(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, v)
}

// SetKeepAlive makes the kernel probe a TCP connection after idle without a sign of life, and again each idle, until
// the kernel's number of probes is reached. idle is rounded up to seconds; 0 or less switches probing off. OpenBSD has
// no times per connection: there it only switches probing on and off.
func (System) SetKeepAlive(fd int, idle time.Duration) error {
	if idle <= 0 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	}
	for _, option := range keepAliveTimes {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, int((idle-1)/time.Second)+1); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}

// SetBuffers sets the sizes of fd's buffers in bytes (SO_RCVBUF, SO_SNDBUF); 0 leaves one to the kernel, which adapts
// it (TCP). Unread bytes in either direction take that much of the kernel's memory for each connection. The kernel may
// reduce the sizes (net.core.rmem_max and wmem_max) and adds room for itself: Linux doubles them. TCP connections
// inherit the sizes of the listening socket, Unix connections not on all systems.
func (System) SetBuffers(fd, receiving, sending int) error {
	if receiving > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiving); err != nil {
			return err
		}
	}
	if sending > 0 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sending)
	}
	return nil
}

// fits reports whether the path fits into an address, with the NUL that ends it.
func fits(path string) bool { return len(path) < len(unix.RawSockaddrUnix{}.Path) }

func sockaddr(addr netip.AddrPort) (domain int, sa unix.Sockaddr, err error) {
	ip, port := addr.Addr().Unmap(), int(addr.Port())
	switch {
	case ip.Is4():
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}, nil
	case ip.Is6():
		zone, err := zoneID(ip.Zone())
		return unix.AF_INET6, &unix.SockaddrInet6{Port: port, ZoneId: zone, Addr: ip.As16()}, err
	}
	return 0, nil, unix.EINVAL
}

// zoneID takes the number of an interface or its name.
func zoneID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, unix.ENODEV
	}
	return uint32(i.Index), nil
}

func zoneName(id uint32) string {
	if id == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(id), 10)
}

func netAddr(sa unix.Sockaddr, err error) net.Addr {
	if err != nil {
		return nil
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port}
	case *unix.SockaddrInet6:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port, Zone: zoneName(a.ZoneId)}
	case *unix.SockaddrUnix:
		if a.Name == "@" { // x/sys/unix reports a socket without a name as one with an empty abstract name
			a.Name = ""
		}
		return &net.UnixAddr{Name: a.Name, Net: "unix"}
	}
	return nil
}
