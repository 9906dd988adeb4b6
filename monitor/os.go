package monitor

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/daimon-go/daimon/internal/netpoll"
)

// OS is the seam under the readiness engine: a poller and the socket calls, by descriptor.
// netpoll.System is the real one and says what each method does; a simulated world is another.
type OS interface {
	OpenPoller() (Poller, error)
	ListenTCP(addr netip.AddrPort, o netpoll.ListenOptions) (fd int, err error)
	ListenUnix(path string, o netpoll.ListenOptions) (fd int, err error)
	DialTCP(addr netip.AddrPort) (fd int, done bool, err error)
	DialUnix(path string) (fd int, done bool, err error)
	Accept(fd int) (int, error)
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
	SetNoDelay(fd int, on bool) error
	SetKeepAlive(fd int, idle time.Duration) error
}

// Poller is the part of OS that one scheduler has to itself; see netpoll.Poller.
type Poller interface {
	Add(fd int, tag uint64, k netpoll.Kind) error
	Remove(fd int) error
	Wait(events []netpoll.Event, atMost time.Duration) (int, error)
	Interrupt()
	Close() error
}

// kernel is the OS that a scheduler has unless another was injected.
type kernel struct{ netpoll.System }

func (k kernel) OpenPoller() (Poller, error) {
	p, err := k.System.OpenPoller()
	if err != nil {
		return nil, err // not p: a nil *netpoll.Poller would be a Poller
	}
	return p, nil
}

// ErrWouldBlock is returned by calls that have nothing to do at once: arm a waker and come again.
var ErrWouldBlock = errors.New("monitor: would block")

// ErrFull is returned when an Account has no place left.
var ErrFull = errors.New("monitor: too many connections")
