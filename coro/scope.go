package coro

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// ErrOrdered is returned by calls that wait within [Co.UntilOrder] when a shutdown has begun. The body may end then.
var ErrOrdered = errors.New("coro: shutdown has begun")

// scope is a part of a body that may be cut short: calls that wait in it then return its error.
type scope struct {
	outer *scope
	end   func(co *Co) error // why it has ended; nil: it has not
	bell  *act.AtomicWaker   // rung when the scope ends, if another goroutine ends it
}

// ended returns why s or a scope around it has ended, the outermost first.
func (s *scope) ended(co *Co) error {
	if s.outer != nil {
		if err := s.outer.ended(co); err != nil {
			return err
		}
	}
	return s.end(co)
}

// arm makes the end of a scope wake the task, and returns why one has ended already.
func (s *scope) arm(co *Co) error {
	for sc := s; sc != nil; sc = sc.outer {
		if sc.bell != nil {
			sc.bell.Set(co.task.Waker())
		}
	}
	return s.ended(co)
}

func (co *Co) within(s *scope, f func() error) error {
	s.outer = co.scope
	co.scope = s
	defer func() { co.scope = s.outer }()
	return f()
}

// Within calls f and bounds it in time: after d, on the scheduler's clock, calls in f that wait or would wait return an
// error that wraps os.ErrDeadlineExceeded. It returns the error of f. Scopes nest; the error of an outer scope comes
// first.
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

// lateError is a net.Error, as the errors of deadlines are: crypto/tls can use a connection after one.
type lateError struct{ d time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("coro: not finished within %v: %v", e.d, os.ErrDeadlineExceeded)
}
func (*lateError) Unwrap() error   { return os.ErrDeadlineExceeded }
func (*lateError) Timeout() bool   { return true }
func (*lateError) Temporary() bool { return true }

// WithContext calls f and cuts it short when ctx ends: calls in f that wait or would wait then return
// context.Cause(ctx). It returns the error of f. A context's deadline is on the system clock, the bound of [Co.Within]
// on the scheduler's.
func (co *Co) WithContext(ctx context.Context, f func() error) error {
	if err := co.enter(); err != nil {
		return err
	}
	bell := new(act.AtomicWaker)
	defer context.AfterFunc(ctx, bell.Wake)()
	return co.within(&scope{bell: bell, end: func(*Co) error { return context.Cause(ctx) }}, f)
}

// UntilOrder calls f and cuts it short when the scheduler begins to shut down: calls in f that wait or would wait then
// return [ErrOrdered]. It returns the error of f. Use it to wait for the next request, so that idle connections end at
// once.
//
// In a coroutine of [Serve], a wait that began before the shutdown is cut short when the connection is due to end: see
// [act.Task.NextLeaveTime]. The first UntilOrder waits for the first request, which may be on its way: see
// [listener.Conn.FirstLeaveTime].
func (co *Co) UntilOrder(f func() error) error {
	if err := co.enter(); err != nil {
		return err
	}
	x := &untilOrder{patient: co.conn != nil && (co.Order() == nil || !co.waited), first: !co.waited}
	co.waited = true
	defer x.timer.Stop()
	return co.within(&scope{end: x.ended}, f)
}

// untilOrder is a wait that a shutdown cuts short.
type untilOrder struct {
	patient bool // it is cut short when the connection is due to end; otherwise at once
	first   bool // it is for the first request
	orders  uint8
	leave   time.Duration // when the connection is due to end, if orders equals the Co's
	timer   act.Timer     // of leave
}

func (x *untilOrder) ended(co *Co) error {
	switch {
	case co.Order() == nil:
		return nil
	case !x.patient:
		return ErrOrdered
	case x.leave == 0 || x.orders != co.orders:
		x.plan(co)
	}
	if co.task.Scheduler().Now() < x.leave {
		return nil
	}
	return ErrOrdered
}

// plan finds out when the connection is due to end. A further request can only bring that forward.
func (x *untilOrder) plan(co *Co) {
	var leave time.Duration
	if x.first {
		leave = co.conn.under.FirstLeaveTime(co.task)
	} else {
		leave = co.task.NextLeaveTime()
	}
	if x.leave == 0 || leave < x.leave {
		x.leave = max(1, leave)
	}
	x.orders = co.orders
	co.task.WakeAt(&x.timer, x.leave)
}
