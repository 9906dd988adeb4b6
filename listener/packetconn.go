package listener

import (
	"cmp"
	"errors"
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
	queue  packetQueue // to send
	counts PacketCounts
	end    func()

	refused func(err error) // see OpenPackets
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

// packetQueue has packets and their bytes.
type packetQueue struct {
	packets []netpoll.Packet
	bytes   []byte // all Data, in the same order
}

// size returns the bytes, with what each packet counts beside them.
func (q *packetQueue) size() int { return len(q.bytes) + len(q.packets)*packetOverhead }

// add adds a copy of p.
func (q *packetQueue) add(p netpoll.Packet) {
	at := len(q.bytes)
	q.bytes = append(q.bytes, p.Data...)
	p.Data = q.bytes[at:len(q.bytes):len(q.bytes)]
	q.packets = append(q.packets, p)
}

// remove removes the first n. The others move to the front.
func (q *packetQueue) remove(n int) {
	rest := q.packets[n:]
	q.packets, q.bytes = q.packets[:0], q.bytes[:0]
	for _, p := range rest {
		q.add(p)
	}
}

// OpenPackets opens a socket, for a service. refused, if not nil, is called when the kernel has refused to send a packet.
func OpenPackets(s *act.Scheduler, o PacketOptions, eo engine.PacketOptions, refused func(error)) (*PacketConn, error) {
	if o.Queue < 0 || o.ReceiveBuffer < 0 || o.SendBuffer < 0 || o.DSCP > 63 {
		return nil, errors.New("listener: PacketOptions that are negative, or a DSCP above 63")
	}
	e, err := monitor.EngineOf(s)
	if err != nil {
		return nil, err
	}
	c := &PacketConn{s: s, most: cmp.Or(o.Queue, 1<<20), refused: refused}
	eo.PacketOptions, eo.Room = o.PacketOptions, c.flush
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

// Reply queues a packet with a copy of p for the sender of in. It comes from the address that in was sent to, which matters if the
// machine has several.
func (c *PacketConn) Reply(in *netpoll.Packet, p []byte) error {
	return c.Send(netpoll.Packet{Data: p, Peer: in.Peer, Path: in.Path, Local: in.Local})
}

// Send queues a copy of p, a packet with Data, Peer or Path, and perhaps Local. The error is ErrPacketDropped, net.ErrClosed, or
// ErrTooLong for more bytes than a datagram has. That the kernel refuses to send it is known later, and only counted.
func (c *PacketConn) Send(p netpoll.Packet) error {
	size := len(p.Data) + packetOverhead
	switch {
	case c.socket == nil:
		return net.ErrClosed
	case len(p.Data) >= netpoll.LargestPacket:
		return ErrTooLong
	case c.queue.size()+size > c.most && !c.full:
		c.flush()
	}
	if c.queue.size()+size > c.most {
		c.counts.Full++
		return ErrPacketDropped
	}
	if c.v6 && p.Peer.Addr().Is4() {
		p.Peer = netip.AddrPortFrom(netip.AddrFrom16(p.Peer.Addr().As16()), p.Peer.Port())
	}
	c.queue.add(p)
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
	done := 0
	for done < len(c.queue.packets) && c.socket != nil && !c.full {
		n, err := c.socket.Send(c.queue.packets[done:])
		c.counts.Sent += uint64(n)
		switch done += n; {
		case err == monitor.ErrWouldBlock:
			c.full = true
		case err != nil:
			c.counts.Refused++
			done++
			if c.refused != nil {
				c.refused(err)
			}
		}
	}
	if done > 0 {
		c.queue.remove(done)
	}
	if len(c.queue.packets) == 0 && cap(c.queue.bytes) > keptPackets {
		c.queue = packetQueue{}
	}
}

// keptPackets bounds the memory that an empty queue keeps.
const keptPackets = 64 << 10

// SetMember makes the socket a member of a multicast group on a network interface, or ends that. The kernel chooses the interface if
// ifname is "".
func (c *PacketConn) SetMember(group netip.Addr, ifname string, member bool) error {
	if c.socket == nil {
		return net.ErrClosed
	}
	return c.socket.Member(group, ifname, member)
}

// close sends what is queued, as far as there is room, and closes the socket.
func (c *PacketConn) close() {
	if c.socket == nil {
		return
	}
	c.flush()
	c.counts.Full += uint64(len(c.queue.packets))
	c.counts.Dropped = c.socket.Dropped()
	c.socket.Close()
	c.socket, c.queue = nil, packetQueue{}
}
