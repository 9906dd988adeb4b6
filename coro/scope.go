package coro

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// ErrOrdered is the error of calls within UntilOrder when there is an order.
var ErrOrdered = errors.New("coro: an order was given")

// scope is a part of a body that may be cut short: everything that waits in it then returns its error.
type scope struct {
	outer *scope
	end   func(co *Co) error // why it has ended; nil: it has not
	bell  *act.Bell          // of one that ends by another goroutine's doing
}

// over tells why s or one around it has ended, the outermost first.
func (s *scope) over(co *Co) error {
	if s.outer != nil {
		if err := s.outer.over(co); err != nil {
			return err
		}
	}
	return s.end(co)
}

// arm leaves the turn's waker with those who may end a scope, and looks once more.
func (s *scope) arm(co *Co) error {
	for sc := s; sc != nil; sc = sc.outer {
		if sc.bell != nil {
			sc.bell.Set(co.task.Waker())
		}
	}
	return s.over(co)
}

func (co *Co) within(s *scope, f func() error) error {
	s.outer = co.scope
	co.scope = s
	defer func() { co.scope = s.outer }()
	return f()
}

// Within calls f and bounds it in time: what waits in it d after now, or would wait then, returns an error that
// is os.ErrDeadlineExceeded. Scopes nest; that of an outer one is returned first.
func (co *Co) Within(d time.Duration, f func() error) error {
	if err := co.enter(); err != nil {
		return err
	}
	var timer act.Timer
	defer timer.Stop()
	co.task.WakeAfter(&timer, d)
	until := timer.When()
	return co.within(&scope{end: func(co *Co) error {
		if co.task.Scheduler().Now() < until {
			return nil
		}
		return &lateError{d}
	}}, f)
}

// lateError is a net.Error as those of deadlines are: crypto/tls goes on with a connection after one.
type lateError struct{ d time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("coro: not finished within %v: %v", e.d, os.ErrDeadlineExceeded)
}
func (*lateError) Unwrap() error   { return os.ErrDeadlineExceeded }
func (*lateError) Timeout() bool   { return true }
func (*lateError) Temporary() bool { return true }

// WithContext calls f and cuts it short when ctx ends: what waits in it then, or would, returns context.Cause(ctx). The
// deadline of a context is on the system's clock; Within is on the scheduler's.
func (co *Co) WithContext(ctx context.Context, f func() error) error {
	if err := co.enter(); err != nil {
		return err
	}
	bell := new(act.Bell)
	defer context.AfterFunc(ctx, bell.Ring)()
	return co.within(&scope{bell: bell, end: func(*Co) error { return context.Cause(ctx) }}, f)
}

// UntilOrder calls f and cuts it short when the scheduler is told to end: what waits in it then, or would, returns
// ErrOrdered. It is for the wait for a next request, say, which nobody owes an answer to.
func (co *Co) UntilOrder(f func() error) error {
	if err := co.enter(); err != nil {
		return err
	}
	return co.within(&scope{end: func(co *Co) error {
		if co.Order() == nil {
			return nil
		}
		return ErrOrdered
	}}, f)
}
