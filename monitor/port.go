package monitor

import (
	"net"
	"syscall"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
)

// Port is a listening socket as one scheduler sees it.
type Port struct {
	io      *IO
	fd      int
	slot    uint32
	shared  bool
	ready   bool
	starved bool // in IO.starved
	waker   act.Waker
}

// Port watches a listening socket, which it owns from then on: after an error it is closed. A shared one
// belongs to several schedulers, and Close leaves it open for whoever made it.
func (e *IO) Port(fd int, shared bool) (*Port, error) {
	p := &Port{io: e, fd: fd, shared: shared}
	kind := netpoll.Listener
	if shared {
		kind = netpoll.SharedListener
	}
	index, err := e.watch(fd, kind, p)
	if err != nil {
		if !shared {
			_ = e.os.Close(fd)
		}
		return nil, err
	}
	p.slot = index
	return p, nil
}

// Accept takes a connection; ErrWouldBlock: there is none. Other errors are the OS's, see
// netpoll.System.Accept; after one of resources the connection still waits and Accept may be called
// again, without an event.
func (p *Port) Accept() (fd int, err error) {
	switch {
	case p.fd < 0:
		return -1, net.ErrClosed
	case !p.ready:
		return -1, ErrWouldBlock
	}
	fd, err = p.io.os.Accept(p.fd)
	if err == syscall.EAGAIN {
		p.ready = false
		return -1, ErrWouldBlock
	}
	return fd, err
}

// Await keeps w, in place of an earlier one, and wakes it when Accept may do better than ErrWouldBlock,
// also because of a Close.
func (p *Port) Await(w act.Waker) {
	p.waker = w
	if p.ready || p.fd < 0 {
		w.Wake()
	}
}

// AwaitDescriptor is Await for whoever was refused a descriptor: it wakes w when a socket of this scheduler
// has been closed. Other parts of the process may free one unseen: use a timer as well.
func (p *Port) AwaitDescriptor(w act.Waker) {
	p.waker = w
	if !p.starved {
		p.starved = true
		p.io.starved = append(p.io.starved, p)
	}
}

// Look has the next Accept ask the system even if no event has told of a connection yet.
func (p *Port) Look() { p.ready = true }

// Closed tells whether Close was called.
func (p *Port) Closed() bool { return p.fd < 0 }

// Addr is where it listens; nil after Close.
func (p *Port) Addr() net.Addr {
	if p.fd < 0 {
		return nil
	}
	return p.io.os.LocalAddr(p.fd)
}

func (p *Port) event(netpoll.Ready) {
	p.ready = true
	p.waker.Wake()
}

// Close stops listening, at least here. What was not accepted is reset by the system.
func (p *Port) Close() error {
	if p.fd < 0 {
		return nil
	}
	fd := p.fd
	p.fd = -1
	p.waker.Wake()
	p.io.unwatch(p.slot)
	if p.shared { // it stays open: without this its arrivals would go on waking this scheduler, for nothing
		return p.io.poller.Remove(fd)
	}
	err := p.io.os.Close(fd)
	p.io.descriptorFreed()
	return err
}

// Abort is Close.
func (p *Port) Abort() { _ = p.Close() }
