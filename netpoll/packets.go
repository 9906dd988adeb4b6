package netpoll

import (
	"net"
	"net/netip"
	"time"
)

// Packet is a datagram that has come, or one to be sent.
type Packet struct {
	// Data is the content. It may be empty.
	Data []byte
	// Peer is the address of the other end of UDP. It is the zero AddrPort for Unix sockets, and to send on a connected socket.
	// Received addresses of IPv4 are never mapped ones. To send on an IPv6 socket to one, map it (::ffff:192.0.2.1); Linux takes it
	// either way.
	Peer netip.AddrPort
	// Path is the address of the other end of a Unix socket, "" if it has none. If that end has no room for a packet, the error is
	// ENOBUFS, since no event reports when it has.
	Path string
	// Local is the address of this end that the packet was sent to. Of a packet to send it is the address that the packet comes
	// from; the zero Addr leaves that to the kernel. Linux only.
	Local netip.Addr
	// At is when the kernel received the packet, if PacketOptions.Times is set. Linux only.
	At time.Time
	// ECN has the two bits for congestion notification (RFC 3168 5). Linux only.
	ECN uint8
	// Truncated reports that the rest of a packet was lost because it was longer than the memory for it.
	Truncated bool
}

// PacketOptions are the options of a socket for datagrams. The zero PacketOptions has the defaults of the system.
type PacketOptions struct {
	// ReceiveBuffer and SendBuffer are the sizes of the kernel's buffers, in bytes: see SetBuffers. 0 leaves them to the kernel.
	ReceiveBuffer, SendBuffer int
	// Times asks for Packet.At.
	Times bool
	// Broadcast allows to send to broadcast addresses (SO_BROADCAST).
	Broadcast bool
	// DontFragment sets the bit of that name on what is sent, and has the system refuse larger packets with EMSGSIZE
	// (IP_PMTUDISC_PROBE on Linux, IP_DONTFRAG elsewhere). NetBSD and OpenBSD have it for IPv6 only: ENOPROTOOPT.
	DontFragment bool
	// DSCP is the class of service of what is sent, below 64 (RFC 2474).
	DSCP uint8
	// Hops is the TTL, or the hop limit, of what is sent to multicast groups; 0 means 1.
	Hops uint8
}

const (
	// PacketsAtOnce is how many packets one call to the kernel receives or sends at most; of coalesced ones there are more (UDP_GRO,
	// UDP_SEGMENT).
	PacketsAtOnce = 64
	// LargestPacket is how many bytes a datagram of UDP can have at most, with its headers: the memory for one packet.
	LargestPacket = 64 << 10
)

// PacketBuffer is the memory that ReceivePackets and SendPackets use. One goroutine at a time uses it. The zero PacketBuffer is
// ready for use. On Linux it has address space for the largest packets, 4 MiB, from the first receive on; the kernel only gives
// pages that packets were received into.
type PacketBuffer struct {
	packets []Packet
	memory  []byte
	calls   packetCalls
}

// ListenUDP opens a socket that receives what is sent to addr, and returns its descriptor. What is said of addr, of siblings
// and of errors at [System.ListenTCP] holds here too: the socket has the address to itself, until JoinUDP.
func (System) ListenUDP(addr netip.AddrPort, o PacketOptions) (fd int, err error) {
	return listenUDP(addr, true, o)
}

// JoinUDP is [System.ListenUDP] at an address where a socket of this program is open already. The kernel gives all packets of a
// peer to the same one of these siblings, as long as their number stays the same; but where [SpreadsPackets] is false, one
// sibling may get all. A packet to a multicast or broadcast address goes to each of them.
func (System) JoinUDP(addr netip.AddrPort, o PacketOptions) (fd int, err error) {
	return listenUDP(addr, false, o)
}

// DialUDP opens a socket that exchanges packets with addr alone. That nobody receives there is known after a packet was sent:
// ReceivePackets and SendPackets return ECONNREFUSED then, once.
func (System) DialUDP(addr netip.AddrPort, o PacketOptions) (fd int, err error) {
	return dialUDP(addr, o)
}

// ListenUnixgram opens a Unix datagram socket at path: see [System.ListenUnix]. Packets may come before prepare is called.
func (System) ListenUnixgram(path string, o PacketOptions, prepare func(path string) error) (fd int, err error) {
	return listenUnixgram(path, o, prepare)
}

// DialUnixgram opens a Unix datagram socket without a name, which sends to path. It gets no answers.
func (System) DialUnixgram(path string, o PacketOptions) (fd int, err error) {
	return dialUnixgram(path, o)
}

// AdoptPackets is [System.Adopt] for a bound datagram socket, of UDP or Unix.
func (System) AdoptPackets(fd int) (addr net.Addr, spread bool, err error) { return adoptPackets(fd) }

// PacketAddr is [System.LocalAddr] for a datagram socket: it returns a *net.UDPAddr or a *net.UnixAddr.
func (System) PacketAddr(fd int) net.Addr { return packetAddr(fd) }

// ReceivePackets receives what has come, with one call on Linux (recvmmsg(2)). The packets and their Data lie in b, until it is
// used again. more reports whether another call may return something at once. The error is EAGAIN if nothing has come. Any other
// error, such as ECONNREFUSED, says what became of a packet that was sent.
func (System) ReceivePackets(fd int, b *PacketBuffer) (in []Packet, more bool, err error) {
	return receivePackets(fd, b)
}

// SendPackets sends packets in their order, at most [PacketsAtOnce] of them with one call on Linux (sendmmsg(2)), and returns how
// many. The error is why the first of the others was not sent. EAGAIN means that there is no room. After any other error the
// others may succeed.
func (System) SendPackets(fd int, b *PacketBuffer, all []Packet) (n int, err error) {
	release()
	return sendPackets(fd, b, all)
}

// SetMember makes a socket of UDP a member of a multicast group on a network interface, or ends that. Without the name of an
// interface the kernel chooses one. On Linux a socket gets only packets of its own groups.
func (System) SetMember(fd int, group netip.Addr, ifname string, member bool) error {
	return setMember(fd, group, ifname, member)
}

// PacketsDropped returns how many packets the kernel has dropped because the buffer of the socket was full; 0 where the system
// does not say (only Linux does). Coalesced ones that are dropped together count as one.
func (System) PacketsDropped(fd int) uint64 { return packetsDropped(fd) }
