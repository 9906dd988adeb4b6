package listener

import (
	"errors"
	"math"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// ErrPacketDropped is returned by calls that send a packet for which the queue of the socket has no room. The packet is dropped.
var ErrPacketDropped = errors.New("listener: a packet is dropped, since too many wait to be sent")

// PacketConn is a socket for datagrams, of UDP or Unix. Packets to send are queued, and leave together at the end of the
// scheduler's present pass, with one system call for up to 64. The queue is bounded: see PacketOptions. What the kernel refuses to
// send, such as a packet that is too long for its way (EMSGSIZE), is dropped and counted, and does not hold up the others.
//
// A PacketConn belongs to a scheduler. Its methods are for that thread.
type PacketConn struct {
	s      *act.Scheduler
	socket engine.PacketSocket // nil: closed
	addr   net.Addr
	v6     bool // of IPv6: addresses of IPv4 are mapped
	full   bool // the kernel had no room
	ending bool // passEnd is going to be called
	most   int
	size   int              // bytes of queue, with packetOverhead
	queue  []netpoll.Packet // to send
	bytes  []byte           // their Data
	counts PacketCounts
	end    func()

	refused func(err error) // is called when the kernel has refused a packet; nil: nobody wants to know
}

// PacketOptions are the options of sockets for datagrams. The zero PacketOptions is good for servers.
type PacketOptions struct {
	netpoll.PacketOptions
	// Queue bounds the packets of a socket that wait to be sent, in bytes; each counts for 64 bytes more than it has. Beyond it a
	// packet is dropped, with ErrPacketDropped. 0 means 1 MiB.
	Queue int
}

// PacketCounts are numbers of packets.
type PacketCounts struct {
	Received uint64
	Sent     uint64
	Full     uint64 // were not sent, since the queue was full
	Refused  uint64 // were not sent, since the kernel refused them
	Dropped  uint64 // were dropped by the kernel before they were received, since its buffer was full (Linux)
}

// packetOverhead is what a packet in the queue counts beside its bytes.
const packetOverhead = 64

// openPackets opens a socket.
func openPackets(s *act.Scheduler, o PacketOptions, eo engine.PacketOptions) (*PacketConn, error) {
	if o.Queue < 0 || o.ReceiveBuffer < 0 || o.SendBuffer < 0 || o.DSCP > 63 {
		return nil, errors.New("listener: PacketOptions that are negative, or a DSCP above 63")
	}
	e, err := monitor.EngineOf(s)
	if err != nil {
		return nil, err
	}
	c := &PacketConn{s: s, most: o.Queue}
	eo.PacketOptions, eo.Room = o.PacketOptions, c.flush
	if c.most == 0 {
		c.most = 1 << 20
	}
	if c.socket, err = e.Packets(eo); err != nil {
		return nil, err
	}
	c.addr, c.end = c.socket.Addr(), c.passEnd
	if at, ok := c.addr.(*net.UDPAddr); ok {
		c.v6 = at.IP.To4() == nil
	}
	return c, nil
}

// Scheduler returns the scheduler that the socket belongs to.
func (c *PacketConn) Scheduler() *act.Scheduler { return c.s }

// LocalAddr returns the address of the socket, a *net.UDPAddr or a *net.UnixAddr.
func (c *PacketConn) LocalAddr() net.Addr { return c.addr }

// Counts returns what was counted since the socket was opened.
func (c *PacketConn) Counts() PacketCounts {
	n := c.counts
	if c.socket != nil {
		n.Dropped = c.socket.Dropped()
	}
	return n
}

// Send queues a packet with a copy of p for an address of UDP. The error is ErrPacketDropped, net.ErrClosed, or ErrTooLong for more
// bytes than a datagram has. That the kernel refuses to send it is known later, and only counted.
func (c *PacketConn) Send(p []byte, to netip.AddrPort) error {
	return c.SendPacket(netpoll.Packet{Data: p, Peer: to})
}

// Reply queues a packet with a copy of p for the sender of in. It comes from the address that in was sent to, which matters if the
// machine has several.
func (c *PacketConn) Reply(in *netpoll.Packet, p []byte) error {
	out := netpoll.Packet{Data: p, Peer: in.Peer, Path: in.Path}
	if !in.Local.IsMulticast() {
		out.Local = in.Local
	}
	return c.SendPacket(out)
}

// SendPacket is [PacketConn.Send] for a packet with any of its fields.
func (c *PacketConn) SendPacket(p netpoll.Packet) error {
	size := len(p.Data) + packetOverhead
	switch {
	case c.socket == nil:
		return net.ErrClosed
	case len(p.Data) >= netpoll.LargestPacket:
		return ErrTooLong
	case c.size+size > c.most && !c.full:
		c.flush()
	}
	if c.size+size > c.most {
		c.counts.Full++
		return ErrPacketDropped
	}
	if c.v6 && p.Peer.Addr().Is4() {
		p.Peer = netip.AddrPortFrom(netip.AddrFrom16(p.Peer.Addr().As16()), p.Peer.Port())
	}
	at := len(c.bytes)
	c.bytes = append(c.bytes, p.Data...)
	p.Data = c.bytes[at:len(c.bytes):len(c.bytes)]
	c.queue = append(c.queue, p)
	c.size += size
	if !c.ending && !c.full {
		c.ending = true
		c.s.Internals().AtPassEnd(c.end)
	}
	return nil
}

func (c *PacketConn) passEnd() {
	c.ending = false
	if !c.full {
		c.flush()
	}
}

// flush sends what is queued, as far as the kernel has room.
func (c *PacketConn) flush() {
	c.full = false
	rest := c.queue
	for len(rest) > 0 && c.socket != nil && !c.full {
		n, err := c.socket.Send(rest)
		c.counts.Sent += uint64(n)
		switch rest = rest[n:]; {
		case err == monitor.ErrWouldBlock:
			c.full = true
		case err != nil:
			c.counts.Refused++
			rest = rest[1:]
			if c.refused != nil {
				c.refused(err)
			}
		}
	}
	c.size = 0
	clear(c.queue[:len(c.queue)-len(rest)])
	if len(rest) == 0 {
		if c.queue, c.bytes = c.queue[:0], c.bytes[:0]; cap(c.bytes) > keptPackets {
			c.queue, c.bytes = nil, nil
		}
		return
	}
	kept := make([]byte, 0, math.MaxInt16)
	for i := range rest { // what was sent makes room
		at := len(kept)
		kept = append(kept, rest[i].Data...)
		rest[i].Data = kept[at:len(kept):len(kept)]
		c.size += len(rest[i].Data) + packetOverhead
	}
	c.queue, c.bytes = rest, kept
}

// keptPackets bounds the memory that an empty queue keeps.
const keptPackets = 64 << 10

// Join makes the socket a member of a multicast group, on a network interface, or on one that the kernel chooses if ifname is "".
func (c *PacketConn) Join(group netip.Addr, ifname string) error {
	return c.member(group, ifname, true)
}

// Leave ends what Join began, with the same arguments.
func (c *PacketConn) Leave(group netip.Addr, ifname string) error {
	return c.member(group, ifname, false)
}

func (c *PacketConn) member(group netip.Addr, ifname string, on bool) error {
	if c.socket == nil {
		return net.ErrClosed
	}
	return c.socket.Member(group, ifname, on)
}

// close sends what is queued, as far as there is room, and closes the socket.
func (c *PacketConn) close() {
	if c.socket == nil {
		return
	}
	c.flush()
	c.counts.Full += uint64(len(c.queue))
	c.counts.Dropped = c.socket.Dropped()
	c.socket.Close()
	c.socket, c.queue, c.bytes = nil, nil, nil
}
