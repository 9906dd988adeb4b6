//go:build darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// packetOptions sets the options of a version of the Internet Protocol. A socket of IPv6 refuses options of IPv4, even if it takes
// packets of IPv4.
func (s *setter) packetOptions(domain int, o PacketOptions) {
	switch domain {
	case unix.AF_INET:
		s.set(o.DSCP != 0, unix.IPPROTO_IP, unix.IP_TOS, int(o.DSCP)<<2)
		s.set(o.Hops != 0, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, int(o.Hops))
		if dontFragment == 0 && o.DontFragment && s.err == nil {
			s.err = unix.ENOPROTOOPT
		}
		s.set(o.DontFragment, unix.IPPROTO_IP, dontFragment, 1)
	case unix.AF_INET6:
		s.set(o.DSCP != 0, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(o.DSCP)<<2)
		s.set(o.Hops != 0, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, int(o.Hops))
		s.set(o.DontFragment, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	}
}

// packetCalls has nothing.
type packetCalls struct{}

// receivePackets receives one packet. A second call could find an error, and would have to keep it: the kernel reports it once.
func receivePackets(fd int, b *PacketBuffer) ([]Packet, bool, error) {
	if b.memory == nil {
		b.memory = make([]byte, LargestPacket)
	}
	for {
		n, _, flags, from, err := unix.Recvmsg(fd, b.memory, nil, 0)
		switch err {
		case nil:
			p := Packet{Data: b.memory[:n:n], Truncated: flags&unix.MSG_TRUNC != 0}
			switch a := from.(type) {
			case *unix.SockaddrInet4:
				p.Peer = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
			case *unix.SockaddrInet6:
				p.Peer = netip.AddrPortFrom(zoned(a.Addr, a.ZoneId), uint16(a.Port))
			case *unix.SockaddrUnix:
				p.Path = a.Name
			}
			b.packets = append(b.packets[:0], p)
			return b.packets, true, nil
		case unix.EINTR:
		default:
			return nil, false, err
		}
	}
}

func sendPackets(fd int, _ *PacketBuffer, all []Packet) (n int, err error) {
	for n < len(all) {
		var to unix.Sockaddr
		if to, err = packetTo(&all[n]); err == nil {
			_, err = unix.SendmsgN(fd, all[n].Data, nil, to, noSignal)
		}
		switch err {
		case nil:
			n++
		case unix.EINTR:
		default:
			return n, err
		}
	}
	return n, nil
}

func packetTo(p *Packet) (unix.Sockaddr, error) {
	ip, port := p.Peer.Addr(), int(p.Peer.Port())
	switch {
	case ip.Is4():
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: port}, nil
	case ip.Is6(): // IPv4 mapped too
		id, err := zoneID(ip.Zone())
		return &unix.SockaddrInet6{Addr: ip.As16(), Port: port, ZoneId: id}, err
	case !fits(p.Path):
		return nil, unix.ENAMETOOLONG
	case p.Path != "":
		return &unix.SockaddrUnix{Name: p.Path}, nil
	}
	return nil, nil
}

// setMember4 names the interface by its address: not every system takes its number.
func setMember4(fd int, group [4]byte, index uint32, member bool) error {
	of := unix.IPMreq{Multiaddr: group}
	if index != 0 {
		i, err := net.InterfaceByIndex(int(index))
		if err != nil {
			return unix.ENODEV
		}
		all, _ := i.Addrs()
		for _, a := range all {
			if a, ok := a.(*net.IPNet); ok && a.IP.To4() != nil {
				of.Interface = [4]byte(a.IP.To4())
			}
		}
	}
	option := unix.IP_DROP_MEMBERSHIP
	if member {
		option = unix.IP_ADD_MEMBERSHIP
	}
	return unix.SetsockoptIPMreq(fd, unix.IPPROTO_IP, option, &of)
}

func packetsDropped(int) uint64 { return 0 }
