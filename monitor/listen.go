package monitor

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// keptAlive returns what SetKeepAlive takes for a setting: 0 means the default, and less than 0 never.
func keptAlive(setting time.Duration) time.Duration { return max(0, cmp.Or(setting, time.Minute)) }

func (e *readiness) setBuffers(fd int, o engine.ConnOptions) error {
	if o.ReceiveBuffer|o.SendBuffer == 0 {
		return nil
	}
	return e.os.SetBuffers(fd, o.ReceiveBuffer, o.SendBuffer)
}

func (e *readiness) Listen(o engine.ListenOptions) (engine.Acceptor, error) {
	a, err := e.listen(o)
	if err != nil {
		return nil, err // not a: a nil *acceptor would be an engine.Acceptor
	}
	return a, nil
}

func (e *readiness) listen(o engine.ListenOptions) (*acceptor, error) {
	sibling, _ := o.Sibling.(*acceptor)
	if sibling != nil && sibling.shared != nil {
		return e.join(sibling, o)
	}
	if o.Inherited != 0 {
		return e.inherit(o)
	}
	switch addr := o.Addr.(type) {
	case *net.TCPAddr:
		return e.listenTCP(addr.AddrPort(), sibling, o)
	case *net.UnixAddr:
		fd, err := e.os.ListenUnix(addr.Name, o.Backlog, o.Prepare)
		if err != nil {
			return nil, err
		}
		return e.acceptor(fd, o, &shared{fd: fd, path: addr.Name, users: 1})
	}
	return nil, fmt.Errorf("monitor: listening on %T: %w", o.Addr, errors.ErrUnsupported)
}

// listenTCP opens a socket for this scheduler, where the kernel spreads the connections over the sockets of one port.
// Elsewhere the first socket is for all schedulers.
func (e *readiness) listenTCP(at netip.AddrPort, sibling *acceptor, o engine.ListenOptions) (*acceptor, error) {
	if sibling != nil {
		at = sibling.addr.(*net.TCPAddr).AddrPort()
	}
	if at.Addr().IsValid() {
		return e.listenAt(at, o)
	}
	a, err := e.listenAt(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()), o)
	if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) { // no IPv6 here
		return e.listenAt(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()), o)
	}
	return a, err
}

func (e *readiness) listenAt(at netip.AddrPort, o engine.ListenOptions) (*acceptor, error) {
	listen := e.os.ListenTCP
	if o.Sibling != nil {
		listen = e.os.JoinTCP
	}
	fd, err := listen(at, o.Backlog)
	if err != nil {
		return nil, err
	}
	if err := e.setTCP(fd, o); err != nil {
		_ = e.os.Close(fd)
		return nil, err
	}
	var sh *shared // where each scheduler has a socket of its own
	if !netpoll.SpreadsTCP {
		sh = &shared{fd: fd, users: 1}
	}
	return e.acceptor(fd, o, sh)
}

// setTCP sets the options on the listening socket: connections inherit them, which saves a system call for each; but see
// Accept.
func (e *readiness) setTCP(fd int, o engine.ListenOptions) error {
	err := errors.Join(e.os.SetNoDelay(fd, true), e.os.SetKeepAlive(fd, keptAlive(o.KeepAlive)))
	if err == nil {
		err = e.setBuffers(fd, o.ConnOptions)
	}
	return err
}

// inherit listens on a socket that another OS process has made. It closes the socket after an error.
func (e *readiness) inherit(o engine.ListenOptions) (*acceptor, error) {
	fd := o.Inherited
	var sh *shared
	if o.Shared {
		sh = &shared{fd: fd, users: 1}
	}
	switch at := e.os.LocalAddr(fd).(type) {
	case *net.TCPAddr:
		if o.Shared {
			sh.foreign = true
		} else if err := e.setTCP(fd, o); err != nil {
			_ = e.os.Close(fd)
			return nil, err
		}
	case *net.UnixAddr:
		sh.path = at.Name
	}
	return e.acceptor(fd, o, sh)
}

// shared is a listening socket that all schedulers of a Group have together.
type shared struct {
	fd   int
	path string // of a Unix socket
	// foreign says that another program or package net has made the TCP socket. It may use Multipath TCP, from which
	// connections inherit no options.
	foreign bool

	mu    sync.Mutex
	users int // 0: closed
}

func (e *readiness) join(a *acceptor, o engine.ListenOptions) (*acceptor, error) {
	sh := a.shared
	sh.mu.Lock()
	closed := sh.users == 0
	if !closed {
		sh.users++
	}
	sh.mu.Unlock()
	if closed {
		return nil, net.ErrClosed
	}
	return e.acceptor(sh.fd, o, sh)
}

// leave takes the socket from the poller of e, which its arrivals would otherwise go on waking. The last scheduler to
// leave closes the socket, and unlinks it unless it was given to another OS process.
func (sh *shared) leave(e *readiness, given bool) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.users--; sh.users > 0 {
		if given {
			return nil // Stop has done that
		}
		return e.poller.Remove(sh.fd)
	}
	err := e.os.Close(sh.fd)
	if sh.path != "" && !given {
		_ = e.os.Unlink(sh.path) // a socket file that cannot be removed is replaced by the next to listen there
	}
	return err
}
