package monitor

import (
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
)

// moved is an engine.Moved: a connected descriptor that no poller watches.
type moved struct {
	os      engine.OS // that of the scheduler it has left, which is good for closing it
	limiter *engine.Limiter
	fd      int
	local   bool
	taken   socketState // that bit of its state, or 0
	since   uint32      // as in a socket: the schedulers of a Group have one clock
}

// Release implements engine.Mover. An event that the poller has not reported yet is not lost: the next poller reports
// what is there when the descriptor is registered.
func (k *socket) Release() (engine.Moved, error) {
	k.settle()
	_, idle := k.IdleSince()
	if !idle || k.out != nil || k.state&^(forEnd|taken|bulky) != 0 {
		return nil, engine.ErrInUse
	}
	e := k.source.e
	if err := e.poller.Remove(int(k.fd)); err != nil {
		return nil, fmt.Errorf("monitor: removing a descriptor from its poller: %w", err)
	}
	m := &moved{e.os, k.source.limiter, int(k.fd), k.source.local, k.state & taken, k.since}
	e.slots.free(k.slot)
	e.counts.Open--
	k.fd = -1
	k.dismiss()
	return m, nil
}

// Adopt makes a socket of m on s.
func (m *moved) Adopt(s *act.Scheduler) (engine.Stream, error) {
	e, err := opened(s)
	if err != nil {
		m.Close()
		return nil, err
	}
	k, err := e.sourceOf(m.local, m.limiter).adopt(m.fd)
	if err != nil {
		return nil, err
	}
	k.state, k.since = m.taken, m.since
	return k, nil
}

// Close closes the descriptor, and gives the place back that it has.
func (m *moved) Close() {
	_ = m.os.Close(m.fd) // as in release
	m.limiter.Release()
}
