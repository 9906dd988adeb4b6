package service

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/shutdown"
)

// PacketListener is a service for datagrams that come to an address, of UDP or of a Unix datagram socket. Set Address, and either
// Handler or Peers, and pass the method Setup to act.Run. A PacketListener is used by pointer, by one Group at a time, and its
// fields must not be changed from Setup on.
//
// Each scheduler has a socket of its own, and the kernel gives all packets of a peer to the same one, as long as their number
// stays the same. Only the first scheduler has a socket if it is a Unix socket, if there are Groups or Options.Broadcast is set,
// since each socket would get those packets, and on macOS, NetBSD and OpenBSD, which do not spread packets.
//
// When shutdown begins, the service receives the packets that have arrived, at most 4096 for each socket, and no more.
// Conversations end, and the socket is closed when the answers have left. What is said of Unix sockets at [Listener] holds here
// too.
type PacketListener struct {
	// Name is as in [Listener].
	Name string
	// Address is "host:port", or "unix:" and a path, as in [Listener].
	Address string
	// Handler is called with the packets that have come: with up to 64 of them, or more if the network card has coalesced some.
	// They are lent for the call. It answers with the methods of c, must not block, and is for servers whose packets have nothing
	// to do with each other. A panic is logged and counted, and ends neither the service nor the packets that come later.
	Handler func(c *listener.PacketConn, in []netpoll.Packet)
	// Peers is for servers that have a conversation with each client.
	Peers Peers
	// Options are set on the sockets. Sockets that another OS process has made keep the options that they have, but for Queue.
	Options listener.PacketOptions
	// Groups are multicast groups that the socket joins: "224.0.0.251", or with a network interface "224.0.0.251%eth0" or
	// "ff02::fb%eth0". Without one the kernel chooses it.
	Groups []string
	// Admit, if not nil, reports whether a packet of UDP may go to the Handler or to a conversation, by the address that it has
	// come from. Others are counted and dropped. See admission.Limiter.Admit.
	Admit func(s *act.Scheduler, source netip.Addr) bool
	// Mode, Owner and Group are as in [Listener].
	Mode         fs.FileMode
	Owner, Group string

	sockets[*receiver]
}

// Setup opens the socket of one scheduler. It is a set-up function: pass it to [act.Run] or act.Group.Run, which call it on the
// scheduler's thread. The error is one sentence that names the address.
func (v *PacketListener) Setup(s *act.Scheduler) error {
	demons, err := v.listen(s)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", v.Address, err)
	}
	for _, x := range demons {
		s.Install(x)
	}
	return nil
}

// Addr returns the address that was bound, with the port that the kernel has chosen for port 0. It is nil before the first
// Setup, and stays after the end. Any goroutine.
func (v *PacketListener) Addr() net.Addr { return v.bound() }

// Handover is for package upgrade, which passes the sockets to the program that replaces this one. That receives the packets from
// then on, and begins new conversations; the ones of this program end. Programs do not call it.
func (v *PacketListener) Handover() handover.Listener {
	return &listening[*receiver]{&v.sockets, v.Name, v.Address, "udp", "receives datagrams", system.AdoptPackets}
}

// listen returns the demons of one scheduler.
func (v *PacketListener) listen(s *act.Scheduler) (demons []*receiver, err error) {
	if (v.Handler == nil) == (v.Peers.Handler == nil) {
		return nil, errors.New("there is not exactly one of Handler and Peers.Handler")
	}
	peers, err := v.Peers.resolved()
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	first, err := v.begin(s)
	if err != nil {
		return nil, err
	}
	all, err := v.places(s, first)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		x := &receiver{server: v, home: s, options: o}
		x.peers = conversations{Peers: peers, of: x, all: map[netip.AddrPort]*list.Element{}}
		if v.inherited == nil || o.Inherited != 0 { // otherwise see join
			err = x.open()
		}
		if err != nil {
			for _, x := range demons {
				x.conn.Internals().Close()
			}
			return nil, err
		}
		demons = append(demons, x)
	}
	v.demons = append(v.demons, demons...)
	return demons, nil
}

// places returns the sockets for s: one of its own, some of the inherited ones, or none. v.mu is locked.
func (v *PacketListener) places(s *act.Scheduler, first bool) (all []engine.PacketOptions, err error) {
	o := engine.PacketOptions{Prepare: (&Listener{Mode: v.Mode, Owner: v.Owner, Group: v.Group}).prepare}
	alone := !netpoll.SpreadsPackets || len(v.Groups) > 0 || v.Options.Broadcast
	switch in := v.inherited; {
	case in != nil:
		for _, fd := range v.part(s) {
			o.Inherited = fd
			all = append(all, o)
		}
		if all != nil || in.Shared || alone {
			return all, nil
		}
	case first:
		o.Addr, err = resolve("udp", v.Address)
	case alone || v.addr.Network() != "udp":
		return nil, nil
	default:
		o.Sibling = v.demons[0].socket
	}
	return []engine.PacketOptions{o}, err
}

// receiver is the demon of one socket on one scheduler.
type receiver struct {
	server  *PacketListener
	home    *act.Scheduler
	conn    *listener.PacketConn // nil: see join
	socket  engine.PacketSocket  // of conn
	options engine.PacketOptions
	name    string // of the service, for package inspect
	peers   conversations
	waker   act.Waker // of the latest turn
	ordered bool      // to end
	drained bool      // has received all that it is to receive
	last    int       // packets received since the order

	lost, evicted, tooFast, late, panics uint64 // see facts.Packets
}

// open opens the socket. The lock is held.
func (x *receiver) open() (err error) {
	v := x.server
	if x.conn, err = listener.OpenPackets(x.home, v.Options, x.options, x.refused); err != nil {
		return err
	}
	for _, g := range v.Groups {
		at, ifname, _ := strings.Cut(g, "%")
		group, err := netip.ParseAddr(at)
		if err == nil {
			err = x.conn.SetMember(group, ifname, true)
		}
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // an inherited socket may have joined
			x.conn.Internals().Close()
			return fmt.Errorf("joining %s: %w", g, err)
		}
	}
	x.socket, v.addr = x.conn.Internals().Socket(), x.conn.LocalAddr()
	x.name = logs.Text(v.addr.Network() + " " + v.addr.String())
	return nil
}

// join is that of an acceptor.
func (x *receiver) join() bool {
	return x.server.join(x, "a scheduler receives no packets", func(other *receiver) error {
		x.options.Sibling = other.socket
		return x.open()
	})
}

// lastPackets bounds what a receiver still takes when it is to end: more than the kernel's buffer holds by default.
const lastPackets = 4096

// Act receives one batch, so that the tasks have their turns before the next, and what they send leaves with what is sent for it.
func (x *receiver) Act(t *act.Task) act.Directive {
	if x.conn == nil && (x.ordered || !x.join()) {
		return act.Done
	}
	in := x.conn.Internals()
	packets, err := in.Receive()
	none := err == monitor.ErrWouldBlock || errors.Is(err, net.ErrClosed)
	switch {
	case x.drained:
		x.late += uint64(len(packets))
	case err == nil:
		x.take(packets)
	case !none:
		x.refused(err)
	}
	if x.ordered {
		if x.last += len(packets); none || x.last >= lastPackets {
			x.drained = true
			x.peers.endAll()
		}
		if !x.drained {
			return act.Yield // no event would come for the end of what has arrived
		}
		if x.peers.tasks == 0 && in.Flush() == 0 {
			return act.Done
		}
	}
	x.waker = t.Waker()
	x.socket.Await(x.waker)
	return act.Wait
}

// take gives packets to the program.
func (x *receiver) take(in []netpoll.Packet) {
	n, admit := 0, x.server.Admit
	for i := range in {
		switch from := in[i].Peer; {
		case admit != nil && from.IsValid() && !admit(x.home, from.Addr()):
			x.tooFast++
		case x.server.Handler == nil:
			x.peers.take(&in[i])
		default:
			in[n] = in[i]
			n++
		}
	}
	if n > 0 {
		x.handle(in[:n])
	}
}

func (x *receiver) handle(in []netpoll.Packet) {
	if !x.home.Internals().Crash() {
		defer func() {
			if v := recover(); v != nil {
				x.panics++
				p := panics.Recovered(v)
				x.home.Logger().Error("a handler of packets has panicked", panics.Fields(p, zap.String("service", x.name))...)
				x.home.Internals().Panicked("a handler of packets", p.Stack)
			}
		}()
	}
	x.server.Handler(x.conn, in)
}

// refused notes that the kernel did not send a packet.
func (x *receiver) refused(err error) {
	refusals.Add(x.home, func(p *problem) { p.n, p.at, p.err = p.n+1, x.conn.LocalAddr(), err })
}

var refusals = problems("packets were not sent", "packets")

// Stop makes the demon end.
func (x *receiver) Stop(*act.Task, shutdown.Order) {
	x.ordered = true
	if x.conn != nil {
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		x.socket.Stop(x.server.gives())
	}
}

// Close sends what is queued, as far as the kernel has room, and closes the socket.
func (x *receiver) Close() error {
	v := x.server
	v.mu.Lock()
	defer v.mu.Unlock()
	gives := v.gives()
	v.end(x)
	x.peers.endAll()
	if x.conn != nil {
		x.socket.Stop(gives)
		x.conn.Internals().Close()
	}
	return nil
}

func (x *receiver) scheduler() *act.Scheduler { return x.home }

func (x *receiver) descriptor() (int, error) {
	if x.conn == nil {
		return -1, net.ErrClosed
	}
	return x.socket.Descriptor()
}

func (x *receiver) give(*act.Scheduler) { x.Stop(nil, nil) }

func (x *receiver) String() string { return fmt.Sprintf("packets on %v", x.server.Addr()) }

// Service returns the name of the service.
func (x *receiver) Service() string { return x.name }

// Describe implements act.Describer.
func (x *receiver) Describe(d *act.Description) { d.WaitsFor("packets to " + x.name) }

// List implements facts.Lister.
func (x *receiver) List(again bool, visit func(row any) bool) (more bool) {
	if again && x.conn != nil {
		n := x.conn.Counts()
		visit(&facts.Packets{
			Name: x.name, Peers: x.peers.tasks, Received: n.Received, Sent: n.Sent, Full: n.Full, Refused: n.Refused, Dropped: n.Dropped,
			TooFast: x.tooFast, Lost: x.lost, Evicted: x.evicted, Late: x.late, Panics: x.panics,
		})
	}
	return false
}
