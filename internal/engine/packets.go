package engine

import (
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// PacketOptions says where and how an Engine opens a socket for datagrams.
type PacketOptions struct {
	netpoll.PacketOptions
	// Addr is a *net.UDPAddr or a *net.UnixAddr, as in ListenOptions. With Dialled it is the one address that packets are
	// exchanged with.
	Addr    net.Addr
	Dialled bool
	// Sibling is an open socket of UDP of another scheduler, whose address this one joins: see netpoll.SpreadsPackets. Addr does
	// not count then.
	Sibling PacketSocket
	// Inherited and Prepare are as in ListenOptions.
	Inherited int
	Prepare   func(path string) error
	// Room is called, between turns, when Send may go on after monitor.ErrWouldBlock.
	Room func()
}

// PacketSocket is a socket for datagrams, which belongs to one scheduler.
type PacketSocket interface {
	// Receive returns the packets that have come, at least one and at most netpoll.PacketsAtOnce; of coalesced ones there are
	// more. They are valid until the next Receive on the same scheduler. The error is monitor.ErrWouldBlock, or net.ErrClosed.
	// Any other one says what became of a packet that was sent: call again.
	Receive() ([]netpoll.Packet, error)
	// Send sends packets in their order, and returns how many. The error is why the first of the others was not sent. After
	// monitor.ErrWouldBlock wait for PacketOptions.Room, after any other error but net.ErrClosed leave that packet out.
	Send(all []netpoll.Packet) (n int, err error)
	// Await keeps w, in place of an earlier one, and wakes it when Receive may return something, and after Room.
	Await(w act.Waker)
	// Member is netpoll.System.SetMember.
	Member(group netip.Addr, ifname string, member bool) error
	// Dropped returns how many packets the kernel has dropped for want of room; 0 if that is not known.
	Dropped() uint64
	// Stop comes before the last packets are received: all that have arrived. If given is true, the socket lives on in another OS
	// process: Receive returns net.ErrClosed, and Close leaves the file of a Unix socket. Send goes on.
	Stop(given bool)
	// Close closes the socket; a second Close does nothing.
	Close()
	// Addr returns the address, even after Close; never nil, but empty for a dialled Unix socket. Any goroutine.
	Addr() net.Addr
	// Descriptor is that of Acceptor.
	Descriptor() (int, error)
}
