package secure

import (
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/listener"
)

// moved is a stream between two schedulers.
type moved struct {
	engine.Moved // below
	s            *stream
}

// Release implements engine.Mover: between two records the state of crypto/tls is all there is.
func (s *stream) Release() (engine.Moved, error) {
	below, ok := s.Stream.(engine.Mover)
	switch {
	case !ok:
		return nil, errors.ErrUnsupported
	case s.err != nil || s.finished || s.notified || s.lent != nil || !s.records.atRest():
		return nil, engine.ErrInUse
	}
	m, err := below.Release()
	if err != nil {
		return nil, err
	}
	return &moved{m, s}, nil
}

// Adopt puts the stream on its transport again.
func (m *moved) Adopt(sched *act.Scheduler) (engine.Stream, error) {
	below, err := m.Moved.Adopt(sched)
	if err != nil {
		return nil, err
	}
	m.s.Stream, m.s.cache = below, caches.Get(sched)
	return m.s, nil
}

// Carry tells the stream for which connection it holds memory from now on.
func (s *stream) Carry(c *listener.Conn) { s.conn = c }
