package netpoll

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/race"
)

// packetOptions sets the options of the versions of the Internet Protocol that a socket speaks: one of IPv6 may get packets of
// IPv4. The kernel reports more of each packet than its bytes and its sender.
func (s *setter) packetOptions(domain int, o PacketOptions) {
	s.set(o.Times, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	if domain == unix.AF_UNIX {
		return
	}
	s.set(true, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	s.set(true, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	s.set(true, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
	s.set(o.DSCP != 0, unix.IPPROTO_IP, unix.IP_TOS, int(o.DSCP)<<2)
	s.set(o.Hops != 0, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, int(o.Hops))
	s.set(o.DontFragment, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // not every kernel has it
	if domain == unix.AF_INET {
		return
	}
	s.set(true, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	s.set(true, unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
	s.set(o.DSCP != 0, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(o.DSCP)<<2)
	s.set(o.Hops != 0, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, int(o.Hops))
	s.set(o.DontFragment, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0) // nor this
}

// slot is the room for a packet, and some lines of the cache: beginnings that are a power of two apart would share few places of it.
const slot = LargestPacket + 4096 + 256

// controlSpace has room for the control messages of a packet: two addresses of this end, since an IPv6 socket reports that of a
// packet of IPv4 in both ways, a class, a size of segments and a time.
const controlSpace = 192

// message is struct mmsghdr.
type message struct {
	unix.Msghdr
	n uint32 // bytes received or sent
}

// messages are the arguments of recvmmsg(2) or sendmmsg(2).
type messages struct {
	header  [PacketsAtOnce]message
	part    [PacketsAtOnce]unix.Iovec
	name    [PacketsAtOnce]unix.RawSockaddrAny
	control [PacketsAtOnce][controlSpace]byte
}

// packetCalls has the memory of the two calls. It is made when it is needed first.
type packetCalls struct {
	in, out *messages
	used    int    // headers of in that the kernel has changed
	path    string // of the latest sender
	alone   int    // packets of so many bytes, or more, form no groups: the kernel has refused one; 0: all do
}

func (b *PacketBuffer) prepareIn() *messages {
	if b.calls.in == nil {
		b.calls.in, b.calls.used = new(messages), PacketsAtOnce
		b.memory = make([]byte, PacketsAtOnce*slot)
	}
	m := b.calls.in
	for i := range b.calls.used {
		h := &m.header[i]
		m.part[i].Base = &b.memory[i*slot]
		m.part[i].SetLen(LargestPacket)
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&m.name[i])), unix.SizeofSockaddrAny
		h.Iov = &m.part[i]
		h.SetIovlen(1)
		h.Control = &m.control[i][0]
		h.SetControllen(controlSpace)
	}
	b.calls.used = 0
	return m
}

func receivePackets(fd int, b *PacketBuffer) ([]Packet, bool, error) {
	m := b.prepareIn()
	n, err := manyMessages(unix.SYS_RECVMMSG, fd, m, PacketsAtOnce, unix.MSG_DONTWAIT)
	if err != nil {
		return nil, false, err
	}
	if race.Enabled {
		_, _ = syscall.Read(fd, nil) // see receive
	}
	b.calls.used = n
	b.packets = b.packets[:0]
	for i := range n {
		b.take(i)
	}
	return b.packets, n == PacketsAtOnce, nil
}

func manyMessages(call uintptr, fd int, m *messages, n int, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), uintptr(n), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// take appends the packets of a message: several, if the kernel has put segments together.
func (b *PacketBuffer) take(i int) {
	h := &b.calls.in.header[i]
	p := Packet{Truncated: h.Flags&unix.MSG_TRUNC != 0}
	b.sender(&p, &b.calls.in.name[i], h.Namelen)
	data, segment := b.memory[i*slot:][:h.n:h.n], int(h.n)
	for rest := b.calls.in.control[i][:h.Controllen]; len(rest) > 0; {
		var c unix.Cmsghdr
		var value []byte
		var err error
		if c, value, rest, err = unix.ParseOneSocketControlMessage(rest); err != nil {
			break
		}
		switch [2]int32{c.Level, c.Type} {
		case [2]int32{unix.IPPROTO_IP, unix.IP_PKTINFO}: // after that of IPv6
			p.Local = netip.AddrFrom4(valueOf[unix.Inet4Pktinfo](value).Spec_dst)
		case [2]int32{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO}:
			if in := valueOf[unix.Inet6Pktinfo](value); in.Addr[0] != 0xff { // no multicast
				p.Local = zoned(in.Addr, in.Ifindex)
			}
		case [2]int32{unix.IPPROTO_IP, unix.IP_TOS}: // a byte
			p.ECN = value[0] & 3
		case [2]int32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
			p.ECN = uint8(*valueOf[int32](value)) & 3
		case [2]int32{unix.IPPROTO_UDP, unix.UDP_GRO}:
			segment = int(*valueOf[int32](value))
		case [2]int32{unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS}:
			p.At = time.Unix(valueOf[unix.Timespec](value).Unix())
		}
	}
	for {
		n := min(segment, len(data))
		p.Data, data = data[:n:n], data[n:]
		b.packets = append(b.packets, p)
		if len(data) == 0 {
			return
		}
	}
}

// valueOf is the value of a control message.
func valueOf[T any](value []byte) *T { return (*T)(unsafe.Pointer(&value[0])) }

func (b *PacketBuffer) sender(p *Packet, a *unix.RawSockaddrAny, n uint32) {
	if n < 2 {
		return // a Unix socket without a name
	}
	in := (*unix.RawSockaddrInet6)(unsafe.Pointer(a))
	switch a.Addr.Family {
	case unix.AF_INET:
		p.Peer = netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(a)).Addr), port(in))
	case unix.AF_INET6:
		p.Peer = netip.AddrPortFrom(zoned(in.Addr, in.Scope_id), port(in))
	case unix.AF_UNIX:
		path := unsafe.Slice((*byte)(unsafe.Pointer(&a.Addr.Data)), n-2)
		if n > 2 && path[0] == 0 {
			path[0] = '@'
		} else if n > 2 && path[n-3] == 0 {
			path = path[:n-3]
		}
		if b.calls.path != string(path) {
			b.calls.path = string(path)
		}
		p.Path = b.calls.path
	}
}

func sendPackets(fd int, b *PacketBuffer, all []Packet) (int, error) {
	n, group, refused := b.send(fd, all, b.calls.alone)
	switch refused {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE: // the interface takes no groups; a segment is too long for it; or a packet is wrong
		if group > 1 {
			n, _, err := b.send(fd, all[:group], 1)
			if n > 0 {
				b.calls.alone = len(all[0].Data)
			}
			return n, err
		}
	}
	return n, refused
}

// mostInGroup bounds the bytes of a group: what an IPv4 packet of the largest size has room for.
const mostInGroup = 65507

// send returns how many packets were sent. group is how many the first message has.
func (b *PacketBuffer) send(fd int, all []Packet, alone int) (sent, group int, err error) {
	if b.calls.out == nil {
		b.calls.out = new(messages)
	}
	m, n, parts := b.calls.out, 0, 0
	all = all[:min(len(all), PacketsAtOnce)]
	for parts < len(all) {
		p, size := &all[parts], groupOf(all[parts:], alone)
		if err = b.message(n, p, size); err != nil {
			break
		}
		h := &m.header[n]
		h.Iov = &m.part[parts]
		h.SetIovlen(size)
		for range size {
			d := all[parts].Data
			m.part[parts].Base = unsafe.SliceData(d)
			m.part[parts].SetLen(len(d))
			parts++
		}
		n++
	}
	if n == 0 {
		return 0, 0, err
	}
	done, err := manyMessages(unix.SYS_SENDMMSG, fd, m, n, sendFlags)
	for i := range done {
		sent += int(m.header[i].Iovlen)
	}
	group = int(m.header[0].Iovlen)
	clear(m.part[:parts])
	if err == unix.EAGAIN && all[0].Path != "" {
		err = unix.ENOBUFS // the receiver has no room, and no event would say when it has
	}
	return sent, group, err
}

// groupOf returns how many packets can leave as segments of one message (udp(7), UDP_SEGMENT).
func groupOf(all []Packet, alone int) int {
	p := &all[0]
	size, total := len(p.Data), len(p.Data)
	if size == 0 || alone > 0 && size >= alone || p.Path != "" {
		return 1
	}
	n := 1
	for n < len(all) && len(all[n-1].Data) == size { // only the last may be shorter
		q := &all[n]
		if total += len(q.Data); len(q.Data) == 0 || len(q.Data) > size || total > mostInGroup || q.Peer != p.Peer || q.Local != p.Local {
			break
		}
		n++
	}
	return n
}

// message writes the address and the control messages of message i.
func (b *PacketBuffer) message(i int, p *Packet, group int) error {
	m := b.calls.out
	h := &m.header[i]
	h.Msghdr = unix.Msghdr{}
	name := &m.name[i]
	switch ip := p.Peer.Addr().Unmap(); { // an IPv6 socket takes addresses of IPv4 as they are (udpv6_sendmsg)
	case ip.Is4():
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		*a = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: onWire(p.Peer.Port()), Addr: ip.As4()}
		h.Namelen = unix.SizeofSockaddrInet4
	case ip.Is6():
		id, err := zoneID(ip.Zone())
		if err != nil {
			return err
		}
		a := (*unix.RawSockaddrInet6)(unsafe.Pointer(name))
		*a = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: onWire(p.Peer.Port()), Addr: ip.As16(), Scope_id: id}
		h.Namelen = unix.SizeofSockaddrInet6
	case p.Path != "":
		if !fits(p.Path) {
			return unix.ENAMETOOLONG
		}
		a := (*unix.RawSockaddrUnix)(unsafe.Pointer(name))
		a.Family = unix.AF_UNIX
		path := unsafe.Slice((*byte)(unsafe.Pointer(&a.Path)), len(a.Path))
		n := copy(path, p.Path)
		if path[n] = 0; abstract(p.Path) {
			path[0] = 0
		} else {
			n++
		}
		h.Namelen = uint32(2 + n)
	}
	if h.Namelen > 0 {
		h.Name = (*byte)(unsafe.Pointer(name))
	}
	h.Control = &m.control[i][0]
	if local := p.Local.Unmap(); local.Is4() {
		put(m, i, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.Inet4Pktinfo{Spec_dst: local.As4()})
	} else if local.Is6() {
		id, err := zoneID(local.Zone())
		if err != nil {
			return err
		}
		put(m, i, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.Inet6Pktinfo{Addr: local.As16(), Ifindex: id})
	}
	if group > 1 {
		put(m, i, unix.IPPROTO_UDP, unix.UDP_SEGMENT, uint16(len(p.Data)))
	}
	return nil
}

// put adds a control message to message i.
func put[T any](m *messages, i int, level, kind int32, value T) {
	h := &m.header[i]
	at := unsafe.Pointer(&m.control[i][h.Controllen])
	c := (*unix.Cmsghdr)(at)
	c.Level, c.Type = level, kind
	c.SetLen(unix.CmsgLen(int(unsafe.Sizeof(value))))
	*(*T)(unsafe.Add(at, unix.CmsgLen(0))) = value
	h.SetControllen(int(h.Controllen) + unix.CmsgSpace(int(unsafe.Sizeof(value))))
}

func onWire(port uint16) (p uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&p))[:], port)
	return p
}

func setMember4(fd int, group [4]byte, index uint32, member bool) error {
	option := unix.IP_DROP_MEMBERSHIP
	if member {
		option = unix.IP_ADD_MEMBERSHIP
	}
	return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, option, &unix.IPMreqn{Multiaddr: group, Ifindex: int32(index)})
}

func packetsDropped(fd int) uint64 {
	var info [unix.SK_MEMINFO_VARS]uint32
	n := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[unix.SK_MEMINFO_DROPS])
}
