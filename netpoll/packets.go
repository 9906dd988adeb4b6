package netpoll

import (
	"net/netip"
	"time"
)

// Packet is a datagram that has come, or one to be sent.
type Packet struct {
	// Data is the content. It may be empty.
	Data []byte
	// Peer is the address of the other end of UDP. It is the zero AddrPort for Unix sockets, and to send on a connected socket.
	// Received addresses of IPv4 are never mapped ones. To send on an IPv6 socket to one, map it (::ffff:192.0.2.1); Linux takes it
	// either way. The zone of a received address is the number of the interface, since the kernel takes long to name one.
	Peer netip.AddrPort
	// Path is the address of the other end of a Unix socket, "" if it has none. If that end has no room for a packet, the error is
	// ENOBUFS, since no event reports when it has.
	Path string
	// Local is the address of this end that the packet was sent to; of a packet to a group an address of the interface, or the zero
	// Addr for IPv6. Of a packet to send it is the address that it comes from; the zero Addr leaves that to the kernel. Linux only.
	Local netip.Addr
	// At is when the kernel received the packet, if PacketOptions.Times is set. Linux only.
	At time.Time
	// ECN has the two bits for congestion notification that a packet has come with (RFC 3168 5). Linux only.
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

// PacketsDropped returns how many packets the kernel has dropped because the buffer of the socket was full; 0 where the system
// does not say (only Linux does). Coalesced ones that are dropped together count as one.
func (System) PacketsDropped(fd int) uint64 { return packetsDropped(fd) }
