package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/netpoll"
)

// packetSocket is a socket for datagrams. It behaves like Linux's.
type packetSocket struct {
	n        *internet
	id       uint64
	holder   holder
	at, to   place // to: what it was dialled to
	queue    fifo[packet]
	queued   int // sizes of queue
	capacity int // of these
	sending  int // sizes of packets that were sent and are not gone
	room     int // for these
	full     bool
	last     time.Duration // when the last packet that was sent arrives
	err      syscall.Errno
	arrived  int
	dropped  uint64
	closed   bool
}

// place is an address of UDP, or the path of a Unix socket.
type place struct {
	netip.AddrPort
	path string
}

// packet is a packet on its way, or in a queue.
type packet struct {
	netpoll.Packet
	sender *packetSocket
	to     place
}

// size is what the packet takes in a buffer.
func (p *packet) size() int { return len(p.Data) + 256 }

// mostOfPacket bounds the bytes of a datagram of UDP, over IPv4.
const mostOfPacket = 65_507

// openPackets opens a socket at a place, which it has to itself if it is the first, or one that is dialled.
func (n *internet) openPackets(h holder, at, to place, first bool) (*packetSocket, error) {
	n.made++
	at, to = at.plain(), to.plain()
	switch {
	case to.Addr().IsUnspecified():
		to.AddrPort = netip.AddrPortFrom(loopback(to.Addr()), to.Port())
		fallthrough
	case to.IsValid():
		at.AddrPort = netip.AddrPortFrom(source(to.Addr()), n.nextPort())
	case to.path != "" && n.receivers(to, at) == nil:
		return nil, syscall.ENOENT
	case at.IsValid() && at.Port() == 0:
		at.AddrPort = netip.AddrPortFrom(at.Addr(), n.nextPort())
	}
	taken := func(o *packetSocket) bool { return overlap(o.at.AddrPort, at.AddrPort) && o.at.path == at.path }
	if first && slices.ContainsFunc(n.packets, taken) {
		return nil, syscall.EADDRINUSE
	}
	s := &packetSocket{n: n, id: n.made, holder: h, at: at, to: to, capacity: n.drawCapacity(), room: n.drawCapacity()}
	n.packets = append(n.packets, s)
	return s, nil
}

// receivers returns the sockets that fit best. The sockets of a port are siblings.
func (n *internet) receivers(to, from place) (all []*packetSocket) {
	for ips := takers(to.Addr()); all == nil && len(ips) > 0; ips = ips[1:] {
		for _, s := range n.packets {
			if s.at == (place{netip.AddrPortFrom(ips[0], to.Port()), to.path}) && (s.to == place{} || s.to == from) {
				all = append(all, s)
			}
		}
	}
	return all
}

// arrive is called when p arrives. Of siblings one gets all packets of a sender, as long as there are as many.
func (p packet) arrive() {
	n := p.sender.n
	all := n.receivers(p.to, place{p.Peer, p.Path})
	if len(all) == 0 {
		if p.sender.to.IsValid() {
			n.w.after(n.latency(), p.sender.refuse) // ICMP
		}
		return
	}
	b := p.Peer.Addr().As16()
	h := mix(binary.LittleEndian.Uint64(b[8:]) ^ uint64(p.Peer.Port())<<32)
	s := all[h>>32%uint64(len(all))]
	if s.queued > s.capacity && p.Path == "" {
		s.dropped++
		n.dropped++
		n.w.note(packetDrops, s, int64(len(p.Data)), 0)
		return
	}
	p.Data = bytes.Clone(p.Data)
	s.queue.push(p)
	s.queued += p.size()
	s.arrived++
	n.w.note(bytesArrive, s, int64(len(p.Data)), int64(s.queued))
	s.wake()
}

func (s *packetSocket) refuse() {
	s.err = syscall.ECONNREFUSED
	s.wake()
}

// gone is called when a packet that s has sent has left the machine, or its receiver's queue on a Unix socket.
func (s *packetSocket) gone(p packet) {
	if s.sending -= p.size(); s.full && 2*s.sending <= s.room { // sock_def_write_space
		s.full = false
		s.wake()
	}
}

func (s *packetSocket) wake() {
	if !s.closed {
		s.holder.ready()
	}
}

// put sends a packet, or returns why not.
func (s *packetSocket) put(out netpoll.Packet) (err error) {
	w, p := s.n.w, packet{Packet: out, sender: s, to: s.to}
	if p.to == (place{}) {
		p.to = place{out.Peer, out.Path}.plain()
	}
	from := s.at.Addr()
	if out.Local.IsValid() {
		from = out.Local.Unmap()
	} else if from.IsUnspecified() {
		from = source(p.to.Addr())
	}
	p.Data, p.Path, p.Peer, p.Local = bytes.Clone(out.Data), s.at.path, netip.AddrPortFrom(from, s.at.Port()), p.to.Addr()
	w.history.content(p.Data)
	_, outside := s.holder.(*Client)
	refused := !outside && w.fault(refusedPacket, s)
	switch {
	case s.err != 0:
		err, s.err = s.err, 0
	case refused && s.to == place{}:
		err = [...]syscall.Errno{syscall.ENOBUFS, syscall.EMSGSIZE, syscall.EPERM, syscall.EHOSTUNREACH}[w.dice[faults].below(4)]
	case refused:
		w.after(s.n.latency(), s.refuse)
	case p.to.path == "" && len(p.Data) > mostOfPacket:
		err = syscall.EMSGSIZE
	case p.to.path != "" && s.n.receivers(p.to, s.at) == nil:
		err = syscall.ECONNREFUSED
	case s.sending >= s.room && s.to == place{} && p.to.path != "":
		err = syscall.ENOBUFS // see netpoll.Packet.Path
	case s.sending >= s.room:
		s.full, err = true, syscall.EAGAIN
	default:
		s.sending += p.size()
		s.transmit(p)
	}
	return err
}

// transmit lets p arrive: once and in order, unless a fault says otherwise.
func (s *packetSocket) transmit(p packet) {
	if p.to.path != "" {
		p.arrive()
		return
	}
	w, copies, late := s.n.w, 1, time.Duration(0)
	switch {
	case w.fault(lostPacket, s):
		copies = 0
	case w.fault(duplicatePacket, s):
		copies = 2
	case w.fault(reorderedPacket, s):
		late = w.lasts(latencyHigh, 100*time.Millisecond)
	}
	s.last = max(s.last, w.now+s.n.latency())
	w.agenda.add(s.last+late, todo(func() {
		s.gone(p)
		for range copies {
			p.arrive()
		}
	}))
}

// take takes packets from the queue. A pending error comes first.
func (s *packetSocket) take(most int) (in []netpoll.Packet, err error) {
	switch {
	case s.err != 0:
		err, s.err = s.err, 0
	case len(s.queue) == 0:
		err = syscall.EAGAIN
	}
	for err == nil && len(in) < most && len(s.queue) > 0 {
		p := s.queue.pop()
		in = append(in, p.Packet)
		if s.queued -= p.size(); p.to.path != "" {
			p.sender.gone(p)
		}
	}
	return in, err
}

// levels is what poll reports (datagram_poll).
func (s *packetSocket) levels() (ready netpoll.Ready) {
	if len(s.queue) > 0 {
		ready |= netpoll.In
	}
	if s.err != 0 {
		ready |= netpoll.Error
	}
	if 2*s.sending <= s.room {
		ready |= netpoll.Out
	}
	return ready
}

// receive is for a Client, as send is.
func (s *packetSocket) receive(b []byte) (n int, err error) {
	in, err := s.take(1)
	for i := range in {
		n = copy(b, in[i].Data)
	}
	return n, err
}

func (s *packetSocket) send(_, b []byte) (int, error) {
	if err := s.put(netpoll.Packet{Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *packetSocket) close() {
	s.closed = true
	s.n.packets = slices.DeleteFunc(s.n.packets, func(o *packetSocket) bool { return o == s })
	for _, p := range s.queue {
		if p.to.path != "" {
			p.sender.gone(p)
		}
	}
}

func (s *packetSocket) String() string      { return fmt.Sprintf("the packets of %v", s.localAddr()) }
func (s *packetSocket) number() uint64      { return numbersOfPorts | s.id }
func (s *packetSocket) localAddr() net.Addr { return s.at.net() }
func (s *packetSocket) peerAddr() net.Addr  { return s.to.net() }

// plain turns an IPv4-mapped address into IPv4.
func (p place) plain() place {
	return place{netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), p.path}
}

// placeOf returns that of a *net.UDPAddr, or of a *net.UnixAddr. Without an IP it is any address.
func placeOf(a net.Addr) (p place) {
	switch a := a.(type) {
	case *net.UnixAddr:
		p.path = a.Name
	case *net.UDPAddr:
		if p.AddrPort = a.AddrPort(); a.IP == nil {
			p.AddrPort = netip.AddrPortFrom(netip.IPv6Unspecified(), p.Port())
		}
	}
	return p
}

func (p place) net() net.Addr {
	if p.IsValid() {
		return net.UDPAddrFromAddrPort(p.AddrPort)
	}
	return &net.UnixAddr{Name: p.path, Net: "unixgram"}
}

// ListenPackets opens a socket. Options have no effect, and there are no groups.
func (v *view) ListenPackets(at net.Addr, _ netpoll.PacketOptions, _ func(string) error) (int, error) {
	return v.open(placeOf(at), place{}, true)
}

func (v *view) JoinPackets(at net.Addr, _ netpoll.PacketOptions) (int, error) {
	return v.open(placeOf(at), place{}, false)
}

func (v *view) DialPackets(to net.Addr, _ netpoll.PacketOptions) (int, error) {
	return v.open(place{}, placeOf(to), false)
}

func (v *view) open(at, to place, first bool) (int, error) {
	f, err := &file{k: v.kernel, fd: -1}, error(nil)
	if f.packets, err = v.w.net.openPackets(f, at, to, first); err == nil {
		v.install(f)
	}
	return f.fd, v.w.result(v.kernel, "open a socket for packets", f.fd, err)
}

func (v *view) SetMember(int, netip.Addr, string, bool) error { return nil }
func (v *view) PacketAddr(fd int) net.Addr                    { return v.packets(fd, "local address").packets.localAddr() }
func (v *view) PacketsDropped(fd int) uint64                  { return v.packets(fd, "packets dropped").packets.dropped }

// packets is get for calls on sockets for datagrams.
func (v *view) packets(fd int, what string) *file {
	f := v.get(fd, what)
	if f.packets == nil {
		v.w.Errorf("%v: %s, but it is not a socket for datagrams", f, what)
		f = &file{k: v.kernel, fd: fd, packets: &packetSocket{n: &v.w.net, holder: f, closed: true}}
	}
	return f
}

func (v *view) ReceivePackets(fd int, _ *netpoll.PacketBuffer) (in []netpoll.Packet, more bool, err error) {
	f, w := v.packets(fd, "receive packets"), v.w
	r, s := f.reg, f.packets
	if r != nil && r.reported&netpoll.In == 0 { // once is right, for the last packets before an end
		if r.vain++; r.vain > mostVain {
			w.Errorf("%v spins: %d receives have found nothing, and no event has reported any", f, r.vain)
		}
	}
	most := min(netpoll.PacketsAtOnce, len(s.queue))
	more = most == netpoll.PacketsAtOnce
	switch {
	case most > 0 && w.fault(falseEmpty, f):
		err = syscall.EAGAIN
		f.later()
	case most > 1 && w.fault(shortRead, f):
		most = 1 + w.dice[faults].below(most-1)
		if more = w.dice[faults].below(2) == 0; !more {
			f.later()
		}
		fallthrough
	default:
		in, err = s.take(most)
	}
	if r != nil && (err == syscall.EAGAIN || err == nil && !more) {
		r.reported &^= netpoll.In
	}
	w.note(fdReceives, f, returned(len(in), err), netpoll.PacketsAtOnce)
	return v.r.lend(in), more, err
}

func (v *view) SendPackets(fd int, _ *netpoll.PacketBuffer, all []netpoll.Packet) (n int, err error) {
	f := v.packets(fd, "send packets")
	for n < min(len(all), netpoll.PacketsAtOnce) && err == nil && (n == 0 || !v.w.fault(shortWrite, f)) {
		if err = syscall.EAGAIN; !v.w.fault(falseFull, f) {
			if err = f.packets.put(all[n]); err == nil {
				n++
			}
		}
	}
	v.w.note(fdSends, f, returned(n, err), int64(len(all)))
	return n, err
}

// lend returns packets that are overwritten when the turn ends, or when the next are lent.
func (r *runner) lend(in []netpoll.Packet) []netpoll.Packet {
	for i, p := range r.lent {
		copy(p.Data, bytes.Repeat([]byte{0xFF}, len(p.Data)))
		r.lent[i] = netpoll.Packet{}
	}
	r.lent = in
	return in
}
