package listener

import (
	"errors"
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
)

// moved is a connection on its way from one scheduler to another.
type moved struct {
	below  engine.Moved
	limits Limits
}

// Release takes an idle connection from its scheduler, so that another one of the same Group can Adopt it. The Conn is
// closed from then on, and its deadlines are forgotten. It fails, and the Conn can be used as before, with engine.ErrInUse
// if anything is unread or queued; with the error of Peek, such as io.EOF; and with errors.ErrUnsupported for a
// connection with a filter that does not move.
func (i *internals) Release() (*moved, error) {
	c := (*Conn)(i)
	if c.stream == nil {
		return nil, net.ErrClosed
	}
	stream, ok := c.stream.(engine.Mover) // not by As: what is above it would be lost
	if !ok {
		return nil, errors.ErrUnsupported
	}
	_, err := c.Peek(1)
	if _, blocked := err.(act.Blocked); err != nil && !blocked {
		return nil, err
	}
	if err == nil || c.Queued() > 0 {
		return nil, engine.ErrInUse
	}
	below, err := stream.Release()
	if err != nil {
		return nil, err
	}
	c.leave()
	return &moved{below, c.settings.limits}, nil
}

// Adopt makes a Conn of it, with the same Limits, on the thread of s. After an error it is closed. A connection has to be
// adopted or closed, once.
func (m *moved) Adopt(s *act.Scheduler) (*Conn, error) {
	stream, err := m.below.Adopt(s)
	if err != nil {
		return nil, err
	}
	c := NewConn(s, stream, m.limits)
	if over, ok := stream.(interface{ Carry(*Conn) }); ok {
		over.Carry(c)
	}
	return c, nil
}

// Close closes it. Any goroutine may call it, even when its schedulers have ended.
func (m *moved) Close() { m.below.Close() }
