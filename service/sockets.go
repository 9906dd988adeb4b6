package service

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// system is for the descriptors of sockets that go from one OS process to another. An engine makes the acceptors.
var system netpoll.System

// listening is a Listener as package upgrade sees it.
type listening Listener

// Inherit implements handover.Listener.
func (v *listening) Inherit(all []*handover.Sockets) (others []*handover.Sockets, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range all {
		switch in := v.inherited; {
		case !v.owns(x), in != nil && (v.Name == "" || x.Name != v.Name):
			others = append(others, x)
			continue
		case in == nil:
			v.inherited = x
		default: // another address under this name
			in.FDs = append(in.FDs, x.FDs...)
		}
		for _, fd := range x.FDs {
			_, spread, err := system.Adopt(fd)
			if err != nil {
				return all, fmt.Errorf("descriptor %d is not a socket that listens for streams: %w", fd, err)
			}
			v.inherited.Shared = v.inherited.Shared || !spread
		}
	}
	return others, nil
}

// owns reports whether x belongs to v, by its name or its address.
func (v *listening) owns(x *handover.Sockets) bool {
	switch {
	case x.Name != "" && v.Name != "":
		return x.Name == v.Name
	case x.Address != "":
		return x.Address == v.Address
	}
	bound, _, err := system.Adopt(x.FDs[0])
	if err != nil {
		return false
	}
	wanted, err := (*Listener)(v).resolve()
	if err != nil || bound.Network() != wanted.Network() {
		return false
	}
	b, ok := bound.(*net.TCPAddr)
	if !ok {
		return bound.String() == wanted.String()
	}
	w := wanted.(*net.TCPAddr)
	everywhere := b.IP.IsUnspecified() && (w.IP == nil || w.IP.IsUnspecified())
	return b.Port == w.Port && b.Zone == w.Zone && (b.IP.Equal(w.IP) || everywhere)
}

// places returns the sockets for s: one of its own, or some of the inherited ones. No inherited socket is left out,
// since closing one would reset the connections that wait there. v.mu is locked.
func (v *Listener) places(s *act.Scheduler, o engine.ListenOptions) (all []engine.ListenOptions) {
	first := len(v.acceptors) == 0
	switch in := v.inherited; {
	case in == nil:
		if !first {
			o.Sibling = v.acceptors[0].from
		}
		return []engine.ListenOptions{o}
	case first || !in.Shared:
		n := len(s.Group().Schedulers())
		for i, fd := range in.FDs {
			if in.Shared || i%n == s.Index() {
				o.Inherited, o.Shared = fd, in.Shared
				all = append(all, o)
			}
		}
		if all == nil {
			return []engine.ListenOptions{o} // see join
		}
	default:
		for _, a := range v.acceptors {
			if a.home == v.acceptors[0].home {
				o.Sibling = a.from
				all = append(all, o)
			}
		}
	}
	return all
}

// join opens a socket for a scheduler that got none of the inherited ones, in the first turn of its demon: a program
// that inherits, and is ended before it runs, must not have listened. It reports whether the socket was opened.
func (a *acceptor) join(s *act.Scheduler) bool {
	v := a.server
	v.mu.Lock()
	defer v.mu.Unlock()
	e, err := monitor.EngineOf(s)
	if err == nil {
		i := slices.IndexFunc(v.acceptors, func(b *acceptor) bool { return b.from != nil })
		if i < 0 {
			return false // the others have ended
		}
		a.options.Sibling = v.acceptors[i].from
		a.from, err = e.Listen(a.options)
	}
	if err != nil {
		s.Logger().Warn("a scheduler accepts no connections", zap.Int("scheduler", s.Index()), zap.Stringer("at", v.addr), zap.Error(err))
	}
	return err == nil
}

// Sockets implements handover.Listener.
func (v *listening) Sockets() (*handover.Sockets, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := &handover.Sockets{Name: v.Name, Address: v.Address, Lent: v.inherited != nil && v.inherited.Lent}
	var known []int
	for _, a := range v.acceptors {
		if a.from == nil {
			continue
		}
		fd, err := a.from.Descriptor()
		if errors.Is(err, errors.ErrUnsupported) {
			x.Close()
			return nil, fmt.Errorf("the engine of scheduler %d cannot give a socket away: %w", a.home.Index(), err)
		}
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
func (v *listening) Give() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.given = true
	for _, a := range v.acceptors {
		_ = a.home.Post(func(s *act.Scheduler) { // if an inbox is full, the shutdown stops that acceptor
			a.Stop(nil, nil)
			if v.AtEnd == LastOfAll {
				a.config.endWithOthers(s)
			}
		})
	}
}

// endWithOthers makes the connections on one scheduler end together with the connections of other services: the other
// OS process serves to the last.
func (c *config) endWithOthers(s *act.Scheduler) {
	in := s.Internals()
	in.EachTask(1, func(t *act.Task) bool {
		if x, ok := t.Action().(*session); ok && x.config != nil && x.config.replaced == c.replaced {
			in.EndWithOthers(t)
		}
		return true
	})
}

// gives reports whether the sockets live on in another OS process. v.mu is locked.
func (v *Listener) gives() bool { return v.given || v.inherited != nil && v.inherited.Lent }
