package monitor

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// packets is an engine.PacketSocket.
type packets struct {
	e      *readiness
	fd     int // -1: closed
	slot   uint32
	addr   net.Addr
	path   string // the file of a Unix socket that Close removes
	some   bool   // may have come
	failed bool   // a call will return an error
	full   bool   // there is no room
	given  bool
	room   func() // see engine.PacketOptions
	waker  act.Waker
}

func (e *readiness) Packets(o engine.PacketOptions) (engine.PacketSocket, error) {
	x := &packets{e: e, some: true, room: o.Room}
	fd, err := x.open(o)
	if err != nil {
		return nil, err
	}
	x.addr = e.os.PacketAddr(fd)
	if at, ok := x.addr.(*net.UnixAddr); ok {
		x.path = at.Name // "" if it was dialled
	}
	if x.addr == nil {
		err = errors.New("monitor: the kernel does not know the address of a socket (getsockname)")
	} else {
		x.slot, err = e.register(fd, netpoll.In, x) // not Out: each packet that has gone would be an event
	}
	if err != nil {
		_ = e.os.Close(fd) // the error that matters is the other one
		return nil, err
	}
	x.fd = fd
	return x, nil
}

func (x *packets) open(o engine.PacketOptions) (int, error) {
	os := x.e.os
	switch {
	case o.Inherited != 0:
		return o.Inherited, nil
	case o.Dialled:
		return os.DialPackets(o.Addr, o.PacketOptions)
	case o.Sibling != nil:
		return os.JoinPackets(o.Sibling.Addr(), o.PacketOptions)
	}
	if at, ok := o.Addr.(*net.UDPAddr); ok && at.IP == nil {
		fd, err := os.ListenPackets(&net.UDPAddr{IP: net.IPv6unspecified, Port: at.Port}, o.PacketOptions, nil)
		if !errors.Is(err, syscall.EAFNOSUPPORT) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return fd, err
		}
		o.Addr = &net.UDPAddr{IP: net.IPv4zero, Port: at.Port} // no IPv6 here
	}
	return os.ListenPackets(o.Addr, o.PacketOptions, o.Prepare)
}

func (x *packets) Receive() ([]netpoll.Packet, error) {
	switch {
	case x.fd < 0, x.given:
		return nil, net.ErrClosed
	case !x.some:
		return nil, ErrWouldBlock
	}
	in, more, err := x.e.os.ReceivePackets(x.fd, &x.e.packets)
	switch {
	case err == syscall.EAGAIN:
		x.some, x.failed = false, false
		return nil, ErrWouldBlock
	case err != nil:
		return nil, err
	}
	x.some = more || x.failed // otherwise what comes is an event
	x.e.counts.Packets += uint64(len(in))
	return in, nil
}

func (x *packets) Send(all []netpoll.Packet) (n int, err error) {
	if x.fd < 0 {
		return 0, net.ErrClosed
	}
	for n < len(all) && err == nil {
		var sent int
		sent, err = x.e.os.SendPackets(x.fd, &x.e.packets, all[n:])
		n += sent
		x.e.counts.PacketsSent += uint64(sent)
	}
	if err != syscall.EAGAIN {
		return n, err
	}
	if err := x.watch(netpoll.In | netpoll.Out); err != nil {
		return n, err
	}
	x.full = true
	return n, ErrWouldBlock
}

// watch has the poller report other conditions. It begins with the present ones.
func (x *packets) watch(want netpoll.Ready) error {
	err := x.e.poller.Remove(x.fd)
	if err == nil {
		err = x.e.poller.Add(x.fd, x.e.slots.tag(x.slot), want)
	}
	return err
}

func (x *packets) Await(w act.Waker) {
	x.waker = w
	if x.fd < 0 || x.some && !x.given {
		w.Wake()
	}
}

func (x *packets) event(r netpoll.Ready) {
	x.some = x.some || r&^netpoll.Out != 0
	x.failed = x.failed || r&netpoll.Error != 0
	if r&(netpoll.Out|netpoll.Error) != 0 && x.full {
		x.full = false
		_ = x.watch(netpoll.In) // with an error there are more events than needed
		x.room()
	}
	x.waker.Wake()
}

func (x *packets) Member(group netip.Addr, ifname string, member bool) error {
	return x.e.os.SetMember(x.fd, group, ifname, member)
}

func (x *packets) Dropped() uint64 {
	if x.fd < 0 {
		return 0
	}
	return x.e.os.PacketsDropped(x.fd)
}

func (x *packets) Addr() net.Addr { return x.addr }

func (x *packets) Descriptor() (int, error) {
	if x.fd < 0 {
		return -1, net.ErrClosed
	}
	return x.fd, nil
}

func (x *packets) Stop(given bool) {
	x.some = true // an event may be on its way from the poller
	if given {
		x.given, x.path = true, ""
	}
	x.waker.Wake()
}

func (x *packets) Close() {
	if x.fd < 0 {
		return
	}
	x.waker.Wake()
	x.e.slots.free(x.slot)
	if x.given {
		_ = x.e.poller.Remove(x.fd) // the socket stays open elsewhere, and would go on reporting
	}
	_ = x.e.os.Close(x.fd) // nothing is lost: what was sent is the kernel's
	x.fd = -1
	if x.path != "" {
		_ = x.e.os.Unlink(x.path) // a file that cannot be removed is replaced by the next to listen there
	}
	x.e.descriptorFreed()
}

func (x *packets) Abort() { x.Close() }
