package service

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// system is for the descriptors of sockets that go from one OS process to another. An engine makes the acceptors.
var system netpoll.System

// sockets are the sockets of a service. The first Setup of each Group makes all but inherited anew.
type sockets[D demon] struct {
	mu     sync.Mutex
	group  *act.Group
	addr   net.Addr
	demons []D // all of one Group: one on each scheduler, or more with inherited sockets

	inherited *handover.Sockets // for the next Group; nil: none
	given     bool              // the sockets belong to another process
}

// demon has a socket on one scheduler.
type demon interface {
	comparable
	scheduler() *act.Scheduler
	descriptor() (int, error) // net.ErrClosed: it has no socket yet
	give(s *act.Scheduler)    // ends it, because another process has the socket
}

// bound returns the address that was bound, nil before the first Setup. Any goroutine.
func (x *sockets[D]) bound() net.Addr {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.addr
}

// begin prepares the set-up on s, and reports whether it is the first of its Group. x.mu is locked.
func (x *sockets[D]) begin(s *act.Scheduler) (first bool, err error) {
	switch {
	case len(x.demons) == 0:
		x.group, x.addr, x.given = s.Group(), nil, false
		return true, nil
	case x.group != s.Group():
		return false, errors.New("the service runs in another Group")
	case slices.ContainsFunc(x.demons, func(d D) bool { return d.scheduler() == s }):
		return false, errors.New("the service was already set up on this scheduler")
	}
	return false, nil
}

// part returns the inherited sockets for s. No inherited socket is left out, since closing one would lose what waits there.
// x.mu is locked.
func (x *sockets[D]) part(s *act.Scheduler) (fds []int) {
	n := len(s.Group().Schedulers())
	for i, fd := range x.inherited.FDs {
		if x.inherited.Shared && len(x.demons) == 0 || !x.inherited.Shared && i%n == s.Index() {
			fds = append(fds, fd)
		}
	}
	return fds
}

// end forgets a demon. x.mu is locked.
func (x *sockets[D]) end(d D) {
	x.demons = slices.DeleteFunc(x.demons, func(other D) bool { return other == d })
	if len(x.demons) == 0 {
		x.inherited = nil // another Group opens sockets of its own
	}
}

// gives reports whether the sockets live on in another OS process. x.mu is locked.
func (x *sockets[D]) gives() bool { return x.given || x.inherited != nil && x.inherited.Lent }

// listening is a service as package upgrade sees it.
type listening[D demon] struct {
	*sockets[D]
	name, address string
	network       string // see resolve
	does          string // what its sockets do
	adopt         func(fd int) (addr net.Addr, spread bool, err error)
}

// Inherit implements handover.Listener.
func (v *listening[D]) Inherit(all []*handover.Sockets) (others []*handover.Sockets, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range all {
		switch in := v.inherited; {
		case !v.owns(x), in != nil && (v.name == "" || x.Name != v.name):
			others = append(others, x)
			continue
		case in == nil:
			v.inherited = x
		default: // another address under this name
			in.FDs = append(in.FDs, x.FDs...)
		}
		for _, fd := range x.FDs {
			_, spread, err := v.adopt(fd)
			if err != nil {
				return all, fmt.Errorf("descriptor %d is not a socket that %s: %w", fd, v.does, err)
			}
			v.inherited.Shared = v.inherited.Shared || !spread
		}
	}
	return others, nil
}

// owns reports whether x belongs to v, by its name or its address.
func (v *listening[D]) owns(x *handover.Sockets) bool {
	bound, _, err := v.adopt(x.FDs[0])
	switch {
	case errors.Is(err, syscall.EPROTONOSUPPORT): // streams, and not datagrams, may have the same name and address
		return false
	case x.Name != "" && v.name != "":
		return x.Name == v.name
	case x.Address != "":
		return x.Address == v.address
	case err != nil:
		return false
	}
	wanted, err := resolve(v.network, v.address)
	if err != nil || bound.Network() != wanted.Network() {
		return false
	}
	b, w := facts.AddrPort(bound), facts.AddrPort(wanted)
	if !b.IsValid() {
		return bound.String() == wanted.String()
	}
	everywhere := b.Addr().IsUnspecified() && (!w.Addr().IsValid() || w.Addr().IsUnspecified())
	return b.Port() == w.Port() && (b.Addr() == w.Addr() || everywhere)
}

// Sockets implements handover.Listener.
func (v *listening[D]) Sockets() (*handover.Sockets, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := &handover.Sockets{Name: v.name, Address: v.address, Lent: v.inherited != nil && v.inherited.Lent}
	var known []int
	for _, d := range v.demons {
		fd, err := d.descriptor()
		if err != nil || slices.Contains(known, fd) {
			continue
		}
		known = append(known, fd)
		twin, err := system.Duplicate(fd)
		if err != nil {
			x.Close()
			return nil, err
		}
		x.FDs = append(x.FDs, twin)
	}
	if len(x.FDs) == 0 {
		return nil, nil
	}
	return x, nil
}

// Give implements handover.Listener.
func (v *listening[D]) Give() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.given = true
	for _, d := range v.demons {
		_ = d.scheduler().Post(d.give) // if an inbox is full, the shutdown stops that one
	}
}

// places returns the sockets for s: one of its own, or some of the inherited ones. v.mu is locked.
func (v *Listener) places(s *act.Scheduler, o engine.ListenOptions) (all []engine.ListenOptions) {
	switch in := v.inherited; {
	case in == nil && len(v.demons) > 0:
		o.Sibling = v.demons[0].from
	case in == nil:
	case in.Shared && len(v.demons) > 0:
		for _, a := range v.demons {
			if a.home == v.demons[0].home {
				o.Sibling = a.from
				all = append(all, o)
			}
		}
	default:
		for _, fd := range v.part(s) {
			o.Inherited, o.Shared = fd, in.Shared
			all = append(all, o)
		}
	}
	if all == nil {
		return []engine.ListenOptions{o} // see join
	}
	return all
}

// join has open give d a socket, if it got none of the inherited ones, in its first turn: a program that inherits, and is ended
// before it runs, must not have listened. It reports whether the socket was opened; failure is what an error means.
func (x *sockets[D]) join(d D, failure string, open func(sibling D) error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.demons, func(d D) bool { _, err := d.descriptor(); return !errors.Is(err, net.ErrClosed) })
	if i < 0 {
		return false // the others have ended
	}
	err := open(x.demons[i])
	if s := d.scheduler(); err != nil {
		s.Logger().Warn(failure, zap.Int("scheduler", s.Index()), zap.Stringer("at", x.addr), zap.Error(err))
	}
	return err == nil
}

func (a *acceptor) join() bool {
	return a.server.join(a, "a scheduler accepts no connections", func(other *acceptor) error {
		e, err := monitor.EngineOf(a.home)
		if err == nil {
			a.options.Sibling = other.from
			a.from, err = e.Listen(a.options)
		}
		return err
	})
}

func (a *acceptor) scheduler() *act.Scheduler { return a.home }

func (a *acceptor) descriptor() (int, error) {
	if a.from == nil {
		return -1, net.ErrClosed
	}
	return a.from.Descriptor()
}

func (a *acceptor) give(s *act.Scheduler) {
	a.Stop(nil, nil)
	if a.server.AtEnd == LastOfAll {
		a.config.endWithOthers(s)
	}
}

// endWithOthers makes the connections on one scheduler end together with the connections of other services: the other
// OS process serves to the last.
func (c *config) endWithOthers(s *act.Scheduler) {
	in := s.Internals()
	in.EachTask(1, func(t *act.Task) bool {
		if x, ok := t.Action().(*session); ok && c.serves(x) {
			in.EndWithOthers(t)
		}
		return true
	})
}
