//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"cmp"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// ListenPackets opens a socket that receives what is sent to addr, a *net.UDPAddr or a *net.UnixAddr, and returns its
// descriptor. What is said at [System.ListenTCP] and [System.ListenUnix] holds here too; but packets may come before prepare is
// called. The socket has its address to itself, until JoinPackets.
func (System) ListenPackets(addr net.Addr, o PacketOptions, prepare func(path string) error) (fd int, err error) {
	at, is := addr.(*net.UnixAddr)
	if !is {
		return bindPackets(addr, o, true)
	}
	return takePath(at.Name, func() (int, error) {
		return bindUnix(at.Name, unix.SOCK_DGRAM, prepare, func(fd int) error { return setPacketOptions(fd, unix.AF_UNIX, o) })
	})
}

// JoinPackets is ListenPackets at an address of UDP where a socket of this program is open already. The kernel gives all packets
// of a peer to the same one of these siblings, as long as their number stays the same; but where [SpreadsPackets] is false, one
// sibling may get all. A packet to a multicast or broadcast address goes to each of them.
func (System) JoinPackets(addr net.Addr, o PacketOptions) (fd int, err error) {
	return bindPackets(addr, o, false)
}

func bindPackets(addr net.Addr, o PacketOptions, first bool) (int, error) {
	return openPackets(addr, o, func(fd, domain int, sa unix.Sockaddr) error {
		return firstOrSibling(fd, domain, unix.SOCK_DGRAM, sa, first, 0)
	})
}

// DialPackets opens a socket that exchanges packets with addr alone, a *net.UDPAddr or a *net.UnixAddr. That nobody receives there
// is known after a packet was sent: ReceivePackets and SendPackets return ECONNREFUSED then, once. A Unix socket has no name,
// so it gets no answers.
func (System) DialPackets(addr net.Addr, o PacketOptions) (fd int, err error) {
	return openPackets(addr, o, func(fd, _ int, sa unix.Sockaddr) error { return unix.Connect(fd, sa) })
}

// openPackets opens a socket and sets its options before use gives it an address, and with it packets.
func openPackets(addr net.Addr, o PacketOptions, use func(fd, domain int, sa unix.Sockaddr) error) (int, error) {
	domain, sa, err := packetSockaddr(addr)
	if err != nil {
		return -1, err
	}
	fd, err := newSocket(domain, unix.SOCK_DGRAM)
	if err != nil {
		return -1, err
	}
	if err = setPacketOptions(fd, domain, o); err == nil {
		err = use(fd, domain, sa)
	}
	if err != nil {
		_ = closeFD(fd)
		return -1, err
	}
	return fd, nil
}

func packetSockaddr(addr net.Addr) (domain int, sa unix.Sockaddr, err error) {
	switch a := addr.(type) {
	case *net.UDPAddr:
		return sockaddr(a.AddrPort())
	case *net.UnixAddr:
		if !fits(a.Name) {
			return 0, nil, unix.ENAMETOOLONG
		}
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: a.Name}, nil
	}
	return 0, nil, unix.EAFNOSUPPORT
}

func setPacketOptions(fd, domain int, o PacketOptions) error {
	s := setter{fd, (System{}).SetBuffers(fd, o.ReceiveBuffer, o.SendBuffer)}
	s.set(o.Broadcast, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
	s.packetOptions(domain, o)
	return s.err
}

// setter sets the options of a socket that are wanted, until there is an error.
type setter struct {
	fd  int
	err error
}

func (s *setter) set(wanted bool, level, name, value int) {
	switch {
	case !wanted || s.err != nil:
	case level == unix.IPPROTO_IP && name == unix.IP_MULTICAST_TTL: // NetBSD and OpenBSD take no int
		s.err = unix.SetsockoptByte(s.fd, level, name, byte(value))
	default:
		s.err = unix.SetsockoptInt(s.fd, level, name, value)
	}
}

// AdoptPackets is [System.Adopt] for a bound datagram socket, of UDP or Unix.
func (x System) AdoptPackets(fd int) (addr net.Addr, spread bool, err error) {
	if err := checkKind(fd, unix.SOCK_DGRAM); err != nil {
		return nil, false, err
	}
	domain, bound := unix.AF_UNIX, false
	switch at := x.PacketAddr(fd).(type) {
	case *net.UDPAddr:
		addr, bound = at, at.Port != 0
		if domain = unix.AF_INET6; len(at.IP) == net.IPv4len {
			domain = unix.AF_INET
		}
	case *net.UnixAddr:
		addr, bound = at, at.Name != ""
	default:
		return nil, false, unix.EAFNOSUPPORT
	}
	if !bound {
		return nil, false, unix.EINVAL
	}
	if err := setPacketOptions(fd, domain, PacketOptions{}); err != nil {
		return nil, false, err
	}
	spread, err = takeOver(fd, domain != unix.AF_UNIX)
	return addr, spread, err
}

// PacketAddr is [System.LocalAddr] for a datagram socket: it returns a *net.UDPAddr or a *net.UnixAddr.
func (System) PacketAddr(fd int) net.Addr {
	switch a := netAddr(unix.Getsockname(fd)).(type) {
	case *net.TCPAddr:
		return (*net.UDPAddr)(a)
	case *net.UnixAddr:
		a.Net = "unixgram"
		return a
	}
	return nil
}

// zoned returns an address of an IPv6 socket. Only a link-local one has a zone.
func zoned(addr [16]byte, index uint32) netip.Addr {
	ip := netip.AddrFrom16(addr).Unmap()
	if index != 0 && (ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()) {
		ip = ip.WithZone(strconv.FormatUint(uint64(index), 10)) // of an IPv4 address nothing is left
	}
	return ip
}

// SetMember makes a socket of UDP a member of a multicast group on a network interface, or ends that. Without the name of an
// interface the kernel chooses one. On Linux a socket gets only packets of its own groups.
func (System) SetMember(fd int, group netip.Addr, ifname string, member bool) error {
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
