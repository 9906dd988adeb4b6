package listener

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

const (
	// scarce is how long Accept waits for a descriptor before it tries again; one that this scheduler frees
	// ends the wait at once.
	scarce = 100 * time.Millisecond
	// quiet is how long there must have been enough before a shortage is worth another line in the log.
	quiet = 10 * time.Second
)

// inARow is how many connections Accept passes over for EPERM before it takes that for something that lasts,
// such as a filter of system calls (seccomp(2)), which refuses without taking the connection, and waits.
const inARow = 64

// Accept is a leaf that waits for the next connection of a port. When it is Done, take the connection
// with Conn, and call it again for the next one; without Conn in between it stays Done.
//
// A connection that was reset before it could be accepted is passed over. When the process or the system
// has no descriptor left, Accept waits until it has: the connection waits in the kernel meanwhile, others
// go on. On an order it goes on; close the port to end it: then it fails with net.ErrClosed.
type Accept struct {
	Port   *monitor.Port
	Source *monitor.Source  // of the same scheduler
	Maker  *Maker           // of the same scheduler
	Places *monitor.Account // the same as the Source's; nil: no limit

	result handover
	places act.AtomicWaker
	timer  act.Timer
	passed int           // errors of connections, since there was none
	short  time.Duration // when descriptors were last short, on the scheduler's clock; 0: never
}

// Act takes one connection.
func (a *Accept) Act(t *act.Task) act.Directive {
	if a.result.conn != nil {
		return act.Done
	}
	if !a.Places.Enter() {
		return a.queue(t)
	}
	fd, err := a.Port.Accept()
	if err == nil {
		return a.adopt(t, fd)
	}
	a.Places.Leave()
	switch {
	case err == monitor.ErrWouldBlock:
		a.passed = 0
		a.Port.Await(t.Waker())
		return act.Wait
	case passing(err):
		if a.passed++; err == syscall.EPERM && a.passed%inARow == 0 {
			return a.backOff(t, err)
		}
		return act.Yield
	case exhausted(err):
		return a.backOff(t, err)
	}
	return a.fail(t, err)
}

// queue waits for a place, and for the end of the port: by AwaitDescriptor, since Await does not wait
// when somebody is in the backlog.
func (a *Accept) queue(t *act.Task) act.Directive {
	if a.Port.Closed() {
		return a.fail(t, net.ErrClosed)
	}
	a.Port.AwaitDescriptor(t.Waker())
	a.places.Set(t.Waker())
	a.Places.Await(&a.places)
	return act.Wait
}

func (a *Accept) fail(t *act.Task, err error) act.Directive {
	return t.Fail(fmt.Errorf("listener: accept: %w", err))
}

func (a *Accept) adopt(t *act.Task, fd int) act.Directive {
	stream, err := a.Source.Adopt(fd)
	if err != nil {
		return a.backOff(t, err) // the poller's limits are resources too (epoll_ctl(2): ENOMEM, ENOSPC)
	}
	a.passed = 0
	a.result.offer(t, a.Maker.Conn(stream))
	return act.Done
}

// Conn takes the connection that Act was Done with; nil if there is none. One that nobody takes is aborted
// when the task ends.
func (a *Accept) Conn() *Conn { return a.result.take() }

func (a *Accept) backOff(t *act.Task, err error) act.Directive {
	now := t.Scheduler().Now()
	if a.short == 0 || now-a.short > quiet {
		t.Scheduler().Logger().Warn("accepting pauses", zap.Any("at", a.Port.Addr()), zap.Error(err))
	}
	a.short = max(1, now)
	t.WakeAfter(&a.timer, scarce)
	a.Port.AwaitDescriptor(t.Waker())
	return act.Wait
}

// passing tells of errors of the one connection, after which the next may be fine. Linux passes on what
// happened to the connection in the backlog (accept(2)); EPERM is a firewall's.
func passing(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.ENOPROTOOPT,
		syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH, syscall.ECONNRESET, syscall.ETIMEDOUT} {
		if err == e {
			return true
		}
	}
	return false
}

// exhausted tells of errors that pass when somebody gives something back.
func exhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
