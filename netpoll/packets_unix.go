//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"cmp"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

func listenUDP(addr netip.AddrPort, first bool, o PacketOptions) (int, error) {
	domain, sa, err := sockaddr(addr)
	if err != nil {
		return -1, err
	}
	return openPackets(domain, o, func(fd int) error {
		return firstOrSibling(fd, domain, unix.SOCK_DGRAM, sa, first, 0)
	})
}

func dialUDP(addr netip.AddrPort, o PacketOptions) (int, error) {
	domain, sa, err := sockaddr(addr)
	if err != nil {
		return -1, err
	}
	return openPackets(domain, o, func(fd int) error { return unix.Connect(fd, sa) })
}

func listenUnixgram(path string, o PacketOptions, prepare func(string) error) (int, error) {
	return takePath(path, func() (int, error) {
		return bindUnix(path, unix.SOCK_DGRAM, prepare, func(fd int) error { return setPacketOptions(fd, unix.AF_UNIX, o) })
	})
}

func dialUnixgram(path string, o PacketOptions) (int, error) {
	if !fits(path) {
		return -1, unix.ENAMETOOLONG
	}
	return openPackets(unix.AF_UNIX, o, func(fd int) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) })
}

// openPackets opens a socket and sets its options before it gets an address, and with it packets.
func openPackets(domain int, o PacketOptions, name func(fd int) error) (int, error) {
	fd, err := newSocket(domain, unix.SOCK_DGRAM)
	if err != nil {
		return -1, err
	}
	if err = setPacketOptions(fd, domain, o); err == nil {
		err = name(fd)
	}
	if err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

func setPacketOptions(fd, domain int, o PacketOptions) error {
	err := (System{}).SetBuffers(fd, o.ReceiveBuffer, o.SendBuffer)
	if err == nil && o.Broadcast {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
	}
	if err == nil {
		err = reportMore(fd, domain, o.Times)
	}
	for _, v := range versions(domain) {
		if err == nil {
			err = v.set(fd, o)
		}
	}
	return err
}

// version has the names of the options of a version of the Internet Protocol.
type version struct {
	level, class, hops int
	fragment, never    int // the option that says when to fragment, and its value for never; 0 if there is none
}

func (v version) set(fd int, o PacketOptions) (err error) {
	if o.DSCP != 0 {
		err = unix.SetsockoptInt(fd, v.level, v.class, int(o.DSCP)<<2)
	}
	switch {
	case err != nil || o.Hops == 0:
	case v.level == unix.IPPROTO_IP:
		err = unix.SetsockoptByte(fd, v.level, v.hops, o.Hops) // NetBSD and OpenBSD take no int
	default:
		err = unix.SetsockoptInt(fd, v.level, v.hops, int(o.Hops))
	}
	if err == nil && o.DontFragment {
		if v.fragment == 0 {
			return unix.ENOPROTOOPT
		}
		err = unix.SetsockoptInt(fd, v.level, v.fragment, v.never)
	}
	return err
}

func adoptPackets(fd int) (addr net.Addr, spread bool, err error) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, false, err
	} else if kind != unix.SOCK_DGRAM {
		return nil, false, unix.EPROTONOSUPPORT
	}
	sa, err := unix.Getsockname(fd)
	domain, bound := unix.AF_UNIX, false
	switch at := sa.(type) {
	case *unix.SockaddrInet4:
		domain, bound = unix.AF_INET, at.Port != 0
	case *unix.SockaddrInet6:
		domain, bound = unix.AF_INET6, at.Port != 0
	case *unix.SockaddrUnix:
		bound = at.Name != "" && at.Name != "@"
	default:
		return nil, false, cmp.Or(err, error(unix.EAFNOSUPPORT))
	}
	if !bound {
		return nil, false, unix.EINVAL
	}
	if err := reportMore(fd, domain, false); err != nil {
		return nil, false, err
	}
	spread, err = takeOver(fd, domain != unix.AF_UNIX)
	return packetAddr(fd), spread, err
}

func packetAddr(fd int) net.Addr {
	switch a := netAddr(unix.Getsockname(fd)).(type) {
	case *net.TCPAddr:
		return (*net.UDPAddr)(a)
	case *net.UnixAddr:
		a.Net = "unixgram"
		return a
	}
	return nil
}

func setMember(fd int, group netip.Addr, ifname string, member bool) error {
	index, err := zoneID(cmp.Or(ifname, group.Zone()))
	group = group.Unmap()
	switch {
	case err != nil:
		return err
	case !group.IsMulticast():
		return unix.EINVAL
	case group.Is4():
		return setMember4(fd, group.As4(), index, member)
	}
	option := unix.IPV6_LEAVE_GROUP
	if member {
		option = unix.IPV6_JOIN_GROUP
	}
	return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, option, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: index})
}
