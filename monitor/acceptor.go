package monitor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// lastAccepts bounds how many connections an acceptor still gives after Stop: as many as a backlog usually holds
// (net.core.somaxconn), so that clients that go on connecting do not keep it open. It is a variable for tests.
var lastAccepts = 4096

// deniedInARow is how many connections may fail with EPERM before it is taken for something that lasts, such as a filter
// of system calls (seccomp(2)), which refuses the call and leaves the connection in the backlog.
const deniedInARow = 64

// acceptor is a listening socket as one scheduler sees it: an engine.Acceptor.
type acceptor struct {
	e        *readiness
	source   *source
	addr     net.Addr
	options  engine.ListenOptions
	shared   *shared // nil: the socket is the acceptor's own
	fd       int     // -1: closed
	slot     uint32
	foreign  bool // the options are set on each connection
	ready    bool
	stopped  bool
	given    bool     // to another OS process
	lacks    resource // why the last Accept gave nothing, if not for lack of connections
	starving bool     // in readiness.starving
	late     int      // connections given since Stop
	lost     int      // connections lost in a row
	full     uint64   // refusals for want of a place, see Refusals
	short    uint64   // and for other resources
	waker    act.Waker
	place    act.AtomicWaker // woken when the limiter has room
}

type resource uint8

const (
	nothing resource = iota
	aPlace
	aDescriptor // or memory
	permission
)

// acceptor makes an acceptor of a socket that listens.
func (e *readiness) acceptor(fd int, o engine.ListenOptions, sh *shared) (*acceptor, error) {
	local := sh != nil && sh.path != ""
	a := &acceptor{e: e, fd: fd, shared: sh, source: e.sourceOf(local, o.Limiter), addr: e.os.LocalAddr(fd),
		options: o, foreign: sh != nil && sh.foreign}
	if a.addr == nil {
		_ = a.giveUp(fd) // the error that matters is the other one
		return nil, errors.New("monitor: the kernel does not say where a socket listens (getsockname)")
	}
	want := netpoll.In
	if sh != nil {
		want |= netpoll.Shared
	}
	slot, err := e.register(fd, want, a)
	if err != nil {
		_ = a.giveUp(fd) // the error that matters is the other one
		return nil, err
	}
	a.slot = slot
	return a, nil
}

func (a *acceptor) Accept() (engine.Stream, error) {
	a.lacks = nothing
	switch {
	case a.fd < 0, a.late == lastAccepts:
		return nil, net.ErrClosed
	case !a.ready:
		return nil, a.none(ErrWouldBlock)
	case !a.source.limiter.Acquire():
		a.lacks = aPlace
		a.full++
		a.e.counts.Full++
		return nil, a.none(ErrWouldBlock)
	}
	fd, err := a.e.os.Accept(a.fd)
	if err != nil {
		a.source.limiter.Release()
		return nil, a.refused(err)
	}
	if a.foreign {
		_ = a.e.os.SetNoDelay(fd, true) // it fails if the peer has gone, which a receive reports
	}
	if a.foreign || !netpoll.InheritsKeepAlive && !a.source.local {
		_ = a.e.os.SetKeepAlive(fd, keptAlive(a.options.KeepAlive)) // likewise
	}
	if a.foreign || a.source.local { // buffer sizes of a Unix socket are not inherited everywhere
		_ = a.e.setBuffers(fd, a.options.ConnOptions) // with other sizes it works too
	}
	k, err := a.source.adopt(fd)
	if err != nil { // the poller's limits are resources too (epoll_ctl(2): ENOMEM, ENOSPC)
		return nil, a.lacking(err, aDescriptor)
	}
	a.lost = 0
	a.e.counts.Accepts++
	if a.stopped {
		a.late++
	}
	return k, nil
}

// none returns err, or after Stop net.ErrClosed.
func (a *acceptor) none(err error) error {
	if a.stopped {
		return net.ErrClosed
	}
	return err
}

func (a *acceptor) lacking(err error, of resource) error {
	a.lacks = of
	a.short++
	a.e.counts.Shortages++
	return a.none(fmt.Errorf("%w: %w", engine.ErrShortage, err))
}

// refused classifies what accept(2) returned.
func (a *acceptor) refused(err error) error {
	switch {
	case err == syscall.EAGAIN:
		a.ready, a.lost = false, 0
		return a.none(ErrWouldBlock)
	case slices.Contains(aborted, err):
		if a.lost++; err == syscall.EPERM && a.lost%deniedInARow == 0 {
			return a.lacking(err, permission)
		}
		a.e.counts.Lost++
		return fmt.Errorf("%w: %w", engine.ErrConnAborted, err)
	case slices.Contains(exhausted, err):
		return a.lacking(err, aDescriptor)
	}
	return err
}

// aborted has the errors of one connection, after which the next may be fine. Linux returns errors that the connection
// got in the backlog (accept(2)); EPERM comes from a firewall.
var aborted = []error{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.ENOPROTOOPT,
	syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH, syscall.ECONNRESET, syscall.ETIMEDOUT}

// exhausted has the errors that go away when resources are given back.
var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

func (a *acceptor) Await(w act.Waker) {
	a.waker = w
	switch {
	case a.fd < 0 || a.stopped:
		w.Wake()
	case a.lacks == aPlace:
		a.place.Set(w)
		a.source.limiter.Await(&a.place)
	case a.lacks != nothing:
		if !a.starving {
			a.starving = true
			a.e.starving = append(a.e.starving, a)
		}
	case a.ready:
		w.Wake()
	}
}

func (a *acceptor) Crowded() bool {
	return (a.lacks == aPlace || a.lacks == aDescriptor) && a.fd >= 0 && a.e.os.Waiting(a.fd)
}

// Stop stops accepting. If the socket is given away, waiting connections are left to the other OS process, except on a socket that several
// schedulers share: an arrival wakes only one of all listeners, including the listeners of other OS processes (EPOLLEXCLUSIVE).
// An arrival that has woken this scheduler would not be noticed elsewhere, so it is accepted here.
func (a *acceptor) Stop(given bool) {
	if given && !a.given && a.fd >= 0 {
		a.given = true
		_ = a.e.poller.Remove(a.fd) // while another OS process has the socket, closing it here would not be enough
		if a.shared == nil {
			a.late = lastAccepts
		}
	}
	a.stopped = true
	a.ready = true // try, even if no event has reported a connection yet
	a.waker.Wake()
}

func (a *acceptor) Descriptor() (int, error) {
	if a.fd < 0 {
		return -1, net.ErrClosed
	}
	return a.fd, nil
}

func (a *acceptor) Addr() net.Addr { return a.addr }

func (a *acceptor) event(netpoll.Ready) {
	a.ready = true
	a.waker.Wake()
}

// Close stops listening. The kernel resets connections that were not accepted.
func (a *acceptor) Close() error {
	if a.fd < 0 {
		return nil
	}
	fd := a.fd
	a.fd = -1
	a.waker.Wake()
	a.e.slots.free(a.slot)
	return a.giveUp(fd)
}

// giveUp closes the socket, or this scheduler's share of it.
func (a *acceptor) giveUp(fd int) (err error) {
	if a.shared != nil {
		err = a.shared.leave(a.e, a.given)
	} else {
		err = a.e.os.Close(fd)
	}
	a.e.descriptorFreed()
	return err
}

func (a *acceptor) Abort() { _ = a.Close() }
