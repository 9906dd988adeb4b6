package listener

import (
	"net"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// Peer is the other end of a conversation by datagrams: a client of a service.PacketListener, or a server that [DialPackets] has
// named. Packets may be lost, come twice, or come in another order.
//
// A Peer belongs to a scheduler. One task at a time waits for its packets.
type Peer struct {
	conn  *PacketConn
	addr  netip.AddrPort
	path  string
	local netip.Addr
	box   *packetBox
	waker act.Waker
	fault error // why the kernel did not send a packet, if the socket is the peer's own
	lost  uint32
	own   bool // the socket is the peer's alone
	ended bool // nothing more comes
	over  bool // after Close
}

// packetBox is memory for packets that a peer has not taken yet. A peer has one only while there are some.
type packetBox struct {
	packetQueue
	taken   int
	account budget.Account
	turn    uint64 // in which the last was taken, which is lent until it ends
}

// DialPackets opens a socket that exchanges packets with one address, a *net.UDPAddr or a *net.UnixAddr. Nothing is sent yet. If
// nobody receives there, Receive returns ECONNREFUSED after a packet was sent, for each packet at most once. The caller closes
// the Peer. A server cannot answer through a Unix socket. [Query] asks one question.
func DialPackets(s *act.Scheduler, to net.Addr, o PacketOptions) (*Peer, error) {
	p := &Peer{own: true}
	conn, err := OpenPackets(s, o, engine.PacketOptions{Addr: to, Dialled: true}, func(err error) {
		p.fault = err
		p.waker.Wake()
	})
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: to.Network(), Addr: to, Err: err}
	}
	p.conn = conn
	switch at := to.(type) {
	case *net.UDPAddr:
		p.addr = at.AddrPort()
	case *net.UnixAddr:
		p.path = at.Name
	}
	return p, nil
}

// RemoteAddr returns the address of the other end, a *net.UDPAddr or a *net.UnixAddr.
func (p *Peer) RemoteAddr() net.Addr {
	if p.addr.IsValid() {
		return net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.addr.Addr().Unmap(), p.addr.Port()))
	}
	return &net.UnixAddr{Name: p.path, Net: "unixgram"}
}

// AddrPort returns the address of the other end of UDP. It allocates nothing.
func (p *Peer) AddrPort() netip.AddrPort { return p.addr }

// Conn returns the socket. Peers of a service have it in common.
func (p *Peer) Conn() *PacketConn { return p.conn }

// Send queues a packet with a copy of b: see [PacketConn.Send].
func (p *Peer) Send(b []byte) error {
	if p.over {
		return net.ErrClosed
	}
	if p.own {
		return p.conn.Send(netpoll.Packet{Data: b})
	}
	return p.conn.Send(netpoll.Packet{Data: b, Peer: p.addr, Path: p.path, Local: p.local})
}

// Receive returns the oldest packet that was not taken yet. Its Data is lent until the turn ends. Without one the error is an
// act.Blocked, or net.ErrClosed after Close, and when the service has ended the conversation: then a last Send is possible.
// DialPackets adds errors of the kernel, such as ECONNREFUSED for a packet that was sent, after which it may be called again.
func (p *Peer) Receive() (netpoll.Packet, error) {
	if p.box == nil && p.own && !p.ended {
		if err := p.pull(); err != nil {
			return netpoll.Packet{}, err
		}
	}
	if b := p.box; b != nil {
		in := b.packets[b.taken]
		if b.taken++; b.taken == len(b.packets) {
			p.empty()
		}
		return in, nil
	}
	if p.ended {
		return netpoll.Packet{}, net.ErrClosed
	}
	return netpoll.Packet{}, (*blockedPeer)(p)
}

// Lost returns how many packets of the peer were dropped, since too many were not taken, or the [Budget] was used up.
func (p *Peer) Lost() int { return int(p.lost) }

// Close ends the conversation. A socket that DialPackets has opened is closed, after what was sent. The further packets of a client
// of a service begin another conversation. A second Close does nothing.
func (p *Peer) Close() error {
	p.finish()
	p.over = true
	if p.box != nil {
		p.empty()
	}
	if p.own {
		p.conn.close()
	}
	return nil
}

// finish has Receive return net.ErrClosed after what has come.
func (p *Peer) finish() {
	p.ended = true
	p.waker.Wake()
}

// pull receives from the peer's own socket, once.
func (p *Peer) pull() error {
	if err := p.fault; err != nil {
		p.fault = nil
		return err
	}
	in, err := p.conn.socket.Receive()
	switch {
	case err == monitor.ErrWouldBlock:
		return nil
	case err != nil:
		return err
	}
	p.conn.counts.Received += uint64(len(in))
	for i := range in {
		p.put(&in[i], len(in))
	}
	return nil
}

// put keeps a packet until it is taken, and reports whether there was room.
func (p *Peer) put(in *netpoll.Packet, most int) bool {
	c := packetBoxes.Get(p.conn.s)
	if p.box != nil && len(p.box.packets)-p.box.taken >= most || c.budget.Paused() {
		p.lost++
		return false
	}
	if p.box == nil {
		p.box = c.get()
	}
	b := p.box
	if b.taken > 0 && len(b.packets) == cap(b.packets) {
		b.remove(b.taken) // none is lent: put and Receive have different turns
		b.taken = 0
	}
	b.add(*in)
	b.account.Owner = (*peerOwner)(p)
	c.budget.Set(&b.account, cap(b.bytes)+cap(b.packets)*packetSize)
	p.waker.Wake()
	return true
}

const packetSize = int(unsafe.Sizeof(netpoll.Packet{}))

// empty gives the box back.
func (p *Peer) empty() {
	packetBoxes.Get(p.conn.s).put(p.box)
	p.box = nil
}

// boxes are the packetBoxes of a scheduler that are in no use.
type boxes struct {
	s      *act.Scheduler
	budget *budget.Budget
	free   []*packetBox
}

var packetBoxes = act.NewLocal(func(s *act.Scheduler) *boxes { return &boxes{s: s, budget: budget.Of(s)} })

// get returns a box none of whose packets is lent.
func (c *boxes) get() *packetBox {
	if n := len(c.free); n > 0 && c.free[0].turn != c.s.Internals().TurnCount() {
		b := c.free[0]
		c.free = slices.Delete(c.free, 0, 1)
		b.remove(len(b.packets))
		b.taken = 0
		return b
	}
	return &packetBox{}
}

const keptBoxes = 64

func (c *boxes) put(b *packetBox) {
	c.budget.Set(&b.account, 0)
	b.turn = c.s.Internals().TurnCount()
	if len(c.free) < keptBoxes && cap(b.bytes) <= keptPackets {
		c.free = append(c.free, b)
	}
}

// peerOwner is a Peer as the owner of its unread packets.
type peerOwner Peer

func (p *peerOwner) Held() (bytes int, still time.Duration) {
	if p.box != nil {
		bytes = p.box.account.Bytes()
	}
	return bytes, 0
}
func (p *peerOwner) Flush() error { return nil }
func (p *peerOwner) Abort() {
	(*Peer)(p).finish()
	if p.box != nil {
		(*Peer)(p).empty()
	}
}
func (p *peerOwner) Peer() string { return (*Peer)(p).RemoteAddr().String() }

// blockedPeer is a Peer as the error that nothing has come.
type blockedPeer Peer

func (*blockedPeer) Error() string { return "listener: no packet has come yet" }

// Arm has the next packet, and the end, wake t.
func (b *blockedPeer) Arm(t *act.Task) {
	p := (*Peer)(b)
	p.waker = t.Waker()
	switch {
	case p.box != nil || p.ended || p.fault != nil:
		p.waker.Wake()
	case p.own:
		p.conn.socket.Await(p.waker)
	}
}

func (b *blockedPeer) Describe(d *act.Description) { (*Peer)(b).Describe(d) }

// Describe implements [act.Describer]: it names the peer that a packet is awaited from.
func (p *Peer) Describe(d *act.Description) {
	d.WaitsFor("a packet from " + p.RemoteAddr().String())
}
