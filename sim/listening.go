package sim

import (
	"fmt"
	gonet "net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/netpoll"
)

// internet is shared by the servers and clients of a world: the addresses, the connections, and the file system of Unix
// sockets.
type internet struct {
	w           *World
	made        uint64 // the last number of a connection or a listening socket
	connections []*connection
	ports       []*listening
	packets     []*packetSocket
	dropped     int                   // packets, for want of room
	files       map[string]*listening // of Unix sockets, by path; a stale one has no listener
	ephemeral   uint16
	hosts       map[string][]netip.Addr
	delays      map[netip.Addr]time.Duration // of connects
}

// disrupt records that a fault ends the connection.
func (c *connection) disrupt() {
	if !c.disrupted {
		c.disrupted = true
		c.net.w.stats.broken++
	}
}

func (n *internet) latency() time.Duration {
	d := &n.w.dice[network]
	if d.below(64) == 0 {
		return d.duration(latencyHigh, latencyTail)
	}
	return d.duration(latencyLow, latencyHigh)
}

// The default of Linux (ip_local_port_range).
const firstEphemeral, lastEphemeral = 32768, 60999

// nextPort returns an ephemeral port without a socket.
func (n *internet) nextPort() uint16 {
	for {
		port := n.ephemeral
		if n.ephemeral++; n.ephemeral > lastEphemeral {
			n.ephemeral = firstEphemeral
		}
		if !slices.ContainsFunc(n.ports, func(l *listening) bool { return l.addr.Port() == port }) &&
			!slices.ContainsFunc(n.packets, func(s *packetSocket) bool { return s.at.Port() == port }) {
			return port
		}
	}
}

// listening is a listening socket.
type listening struct {
	n       *internet
	id      uint64
	addr    netip.AddrPort // zero for a Unix socket
	path    string
	backlog int
	queue   fifo[*end] // connections that wait to be accepted
	closed  bool
	watches []*registration
}

func (l *listening) String() string {
	if l.path != "" {
		return "the listener at " + l.path
	}
	return fmt.Sprintf("the listener at %v", l.addr)
}

func (l *listening) number() uint64 { return numbersOfPorts | l.id }

func (n *internet) newListening(backlog int) *listening {
	n.made++
	l := &listening{n: n, id: n.made, backlog: backlog}
	if l.backlog <= 0 {
		l.backlog = 4096 // net.core.somaxconn
	}
	return l
}

// listenTCP is System.ListenTCP for the first, and else JoinTCP.
func (n *internet) listenTCP(addr netip.AddrPort, first bool, backlog int) (*listening, error) {
	addr, err := plain(addr)
	if err != nil {
		return nil, err
	}
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), n.nextPort())
	} else if first && slices.ContainsFunc(n.ports, func(l *listening) bool { return overlap(l.addr, addr) }) {
		return nil, syscall.EADDRINUSE
	}
	l := n.newListening(backlog)
	l.addr = addr
	n.ports = append(n.ports, l)
	return l, nil
}

// plain turns an IPv4-mapped address into IPv4. A world has no interfaces, so a zone is an error.
func plain(addr netip.AddrPort) (netip.AddrPort, error) {
	ip := addr.Addr().Unmap()
	switch {
	case !ip.IsValid():
		return addr, syscall.EINVAL
	case ip.Zone() != "":
		return addr, syscall.ENODEV
	}
	return netip.AddrPortFrom(ip, addr.Port()), nil
}

// takers returns the addresses of the listeners that could get a connection to ip, the best first. [::] accepts IPv4, too.
func takers(ip netip.Addr) []netip.Addr {
	if ip.Is4() {
		return []netip.Addr{ip, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	return []netip.Addr{ip, netip.IPv6Unspecified()}
}

// overlap reports whether two addresses could get the same connection.
func overlap(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && (slices.Contains(takers(a.Addr()), b.Addr()) || slices.Contains(takers(b.Addr()), a.Addr()))
}

// find draws one of the listeners that fit addr best. It returns nil if there is none.
func (n *internet) find(addr netip.AddrPort) *listening {
	for _, ip := range takers(addr.Addr()) {
		var fitting []*listening
		for _, l := range n.ports {
			if l.addr == netip.AddrPortFrom(ip, addr.Port()) {
				fitting = append(fitting, l)
			}
		}
		if len(fitting) > 0 {
			return fitting[n.w.dice[network].choice(len(fitting))]
		}
	}
	return nil
}

// A SYN is sent tries times, the further ones after 1, 2, 4, 8, 16 and 32 s (tcp_syn_retries). After patience the
// connect fails.
const (
	tries    = 7
	patience = 127 * time.Second
)

// dialTCP begins to connect for h.
func (n *internet) dialTCP(addr netip.AddrPort, h holder) (*end, error) {
	addr, err := plain(addr)
	if err != nil {
		return nil, err
	}
	if addr.Addr().IsUnspecified() {
		addr = netip.AddrPortFrom(loopback(addr.Addr()), addr.Port())
	}
	c := n.newConnection(false)
	c.addr = [2]netip.AddrPort{netip.AddrPortFrom(source(addr.Addr()), n.nextPort()), addr}
	e := &c.ends[0]
	e.holder = h
	w := n.w
	w.note(isDialled, e, 0, 0)
	d := &w.dice[faults]
	switch {
	case w.fault(refusedConnect, e):
		switch c.disrupt(); d.below(4) {
		case 0:
			e.fail(syscall.ENETUNREACH) // at once: there is no route
			c.abandon()
		case 1:
			c.refuse(syscall.EHOSTUNREACH, w.lasts(latencyLow, 3*time.Second))
		default:
			c.refuse(syscall.ECONNREFUSED, n.latency()+n.latency())
		}
	case w.fault(timedOut, e):
		c.disrupt()
		c.refuse(syscall.ETIMEDOUT, w.lasts(patience, patience))
	case n.delays[addr.Addr()] >= patience:
		c.refuse(syscall.ETIMEDOUT, patience)
	default:
		w.agenda.add(c.pipes[0].due()+n.delays[addr.Addr()], todo(c.synArrives))
	}
	return e, nil
}

func loopback(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// source returns the address from which a connection to ip comes. The world is one network.
func source(ip netip.Addr) netip.Addr {
	switch {
	case ip.IsLoopback():
		return ip
	case ip.Is4():
		return netip.AddrFrom4([4]byte{10, 1, 0, 1})
	}
	return netip.AddrFrom16([16]byte{0: 0xFD, 15: 1})
}

func (c *connection) refuse(err syscall.Errno, after time.Duration) {
	c.net.w.after(after, func() {
		if c.ends[0].phase == connecting {
			c.ends[0].fail(err)
		}
		c.abandon()
	})
}

// synArrives is called when the SYN arrives. A listener with a full backlog does not answer, so the SYN is sent again.
func (c *connection) synArrives() {
	n := c.net
	if c.ends[0].phase == dead {
		c.abandon()
		return
	}
	l := n.find(c.addr[1])
	switch {
	case l == nil:
		c.refuse(syscall.ECONNREFUSED, n.latency())
	case l.full():
		c.tries++
		pause := time.Second << (c.tries - 1)
		if c.tries >= tries {
			c.refuse(syscall.ETIMEDOUT, pause)
			return
		}
		n.w.after(pause, c.synArrives)
	default:
		c.port = l
		n.w.agenda.add(c.pipes[1].due(), todo(c.synAckArrives))
	}
}

// synAckArrives is called when the SYN-ACK arrives: the dialling end is connected. What it sends now arrives after the ACK.
func (c *connection) synAckArrives() {
	e := &c.ends[0]
	if e.phase == dead {
		c.abandon()
		return
	}
	e.phase = connected
	c.net.w.agenda.add(c.pipes[0].due(), todo(c.ackArrives))
	e.wake()
}

// ackArrives is called when the ACK arrives. It puts the connection into the backlog, unless one of the ends is closed.
func (c *connection) ackArrives() {
	l, e := c.port, &c.ends[1]
	switch {
	case e.phase == dead:
		e.closed = true
		c.retire()
	case l.closed:
		e.closed = true
		e.breakOff()
		c.retire()
	default:
		e.phase = connected
		l.push(e)
	}
}

// abandon drops a connection that was never established.
func (c *connection) abandon() {
	c.ends[1].closed, c.ends[1].phase = true, dead
	c.retire()
}

// full reports whether the backlog is full. One more than its number may wait (sk_acceptq_is_full, unix_recvq_full).
func (l *listening) full() bool { return len(l.queue) > l.backlog }

func (l *listening) push(e *end) {
	l.queue.push(e)
	l.n.w.note(isQueued, l, int64(e.c.id), int64(len(l.queue)))
	l.wake()
}

// wake reports an arrival to the pollers. Among the pollers that share the socket it starts at one that it draws, and
// stops at the first whose scheduler was resting (EPOLLEXCLUSIVE). So at least one is woken, and usually not all.
func (l *listening) wake() {
	n := len(l.watches)
	first := l.n.w.dice[network].choice(n)
	for i := range n {
		r := l.watches[(first+i)%n]
		slept := !r.p.r.enabled() && !r.p.r.over
		r.list()
		if slept && r.want&netpoll.Shared != 0 {
			return
		}
	}
}

// close closes the listener. Connections that were not accepted are reset; over Unix sockets the peer gets ECONNRESET.
func (l *listening) close() {
	l.closed = true
	n := l.n
	n.ports = slices.DeleteFunc(n.ports, func(o *listening) bool { return o == l })
	if l.path != "" && n.files[l.path] == l {
		n.files[l.path] = nil
	}
	for len(l.queue) > 0 {
		l.refuse(l.queue.pop())
	}
}

// refuse ends a connection that was not accepted.
func (l *listening) refuse(e *end) {
	if e.c.local {
		e.peer().err = syscall.ECONNRESET
		e.c.broken = true
	}
	e.reset()
}

// listenUnix is System.ListenUnix.
func (n *internet) listenUnix(path string, backlog int) (*listening, error) {
	if n.files[path] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := n.newListening(backlog)
	l.path = path
	n.files[path] = l
	return l, nil
}

// unlink is System.Unlink: the file of a socket that listens stays.
func (n *internet) unlink(path string) error {
	l, ok := n.files[path]
	switch {
	case path != "" && !ok:
		return syscall.ENOENT
	case l == nil:
		delete(n.files, path)
	}
	return nil
}

// dialUnix connects at once, or not at all.
func (n *internet) dialUnix(path string, h holder) (*end, error) {
	l, ok := n.files[path]
	switch {
	case !ok:
		return nil, syscall.ENOENT
	case l == nil:
		return nil, syscall.ECONNREFUSED
	case l.full():
		return nil, syscall.EAGAIN
	}
	c := n.newConnection(true)
	c.path = path
	c.ends[0].phase, c.ends[1].phase = connected, connected
	c.ends[0].holder = h
	l.push(&c.ends[1])
	return &c.ends[0], nil
}

// address returns the address of the listener.
func (l *listening) address() gonet.Addr {
	if l.path != "" {
		return &gonet.UnixAddr{Name: l.path, Net: "unix"}
	}
	return gonet.TCPAddrFromAddrPort(l.addr)
}
