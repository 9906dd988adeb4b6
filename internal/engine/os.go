package engine

import (
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// Below is the OS on which the readiness engine of a scheduler works. Package sim, or a test, puts another one there before the
// engine is used.
var Below = act.NewLocal(func(*act.Scheduler) OS { return kernel{} })

// OS is a poller and the socket calls, by descriptor. [netpoll.System] is the real one and documents each method; a
// simulated kernel is another.
type OS interface {
	OpenPoller() (Poller, error)
	OpenBatch(n int) (Batch, error)
	ListenTCP(addr netip.AddrPort, backlog int) (fd int, err error)
	JoinTCP(addr netip.AddrPort, backlog int) (fd int, err error)
	ListenUnix(path string, backlog int, prepare func(path string) error) (fd int, err error)
	DialTCP(addr netip.AddrPort) (fd int, done bool, err error)
	DialUnix(path string) (fd int, done bool, err error)
	Accept(fd int) (int, error)
	Waiting(fd int) bool
	Receive(fd int, p []byte) (int, error)
	Send(fd int, head, p []byte) (int, error)
	SendFile(fd int, f *os.File, offset int64, n int) (int, error)
	CloseWrite(fd int) error
	Close(fd int) error
	Reset(fd int) error
	Unlink(path string) error
	SocketError(fd int) error
	LocalAddr(fd int) net.Addr
	PeerAddr(fd int) net.Addr
	PeerAddrPort(fd int) netip.AddrPort
	SetNoDelay(fd int, on bool) error
	SetKeepAlive(fd int, idle time.Duration) error
	SetBuffers(fd, receiving, sending int) error

	ListenPackets(addr net.Addr, o netpoll.PacketOptions, prepare func(path string) error) (fd int, err error)
	JoinPackets(addr net.Addr, o netpoll.PacketOptions) (fd int, err error)
	DialPackets(addr net.Addr, o netpoll.PacketOptions) (fd int, err error)
	PacketAddr(fd int) net.Addr
	ReceivePackets(fd int, b *netpoll.PacketBuffer) (in []netpoll.Packet, more bool, err error)
	SendPackets(fd int, b *netpoll.PacketBuffer, all []netpoll.Packet) (n int, err error)
	SetMember(fd int, group netip.Addr, ifname string, member bool) error
	PacketsDropped(fd int) uint64
}

// Poller is the part of an OS that belongs to one scheduler; see netpoll.Poller.
type Poller interface {
	Add(fd int, tag uint64, want netpoll.Ready) error
	Remove(fd int) error
	Wait(events []netpoll.Event, atMost time.Duration) (int, error)
	Interrupt()
	Close() error
}

// Batch makes many calls at once; see netpoll.Batch.
type Batch interface {
	Do(calls []netpoll.Call)
	Close() error
}

// kernel is the OS unless there is another one.
type kernel struct{ netpoll.System }

func (k kernel) OpenPoller() (Poller, error) {
	p, err := k.System.OpenPoller()
	if err != nil {
		return nil, err // not p: a nil *netpoll.Poller would be a Poller
	}
	return p, nil
}

func (k kernel) OpenBatch(n int) (Batch, error) {
	b, err := k.System.OpenBatch(n)
	if err != nil {
		return nil, err
	}
	return b, nil
}
