package listener

import (
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/summary"
	"github.com/daimon-go/daimon/monitor"
)

const (
	// retryAfter is how long Accept waits in a shortage of descriptors before it tries again; a descriptor that this
	// scheduler frees ends the wait at once.
	retryAfter = 100 * time.Millisecond
	// logAfter is how long there must have been enough before a shortage is logged again.
	logAfter = 10 * time.Second
)

// Accept is an action that waits for the next connection of an acceptor. When it is Done, take the connection with
// Conn, and call Act again for the next one; until Conn is called, it stays Done. Services use it; a server needs it
// only to accept by itself.
//
// A connection that is lost before it could be accepted is skipped. When the process is out of descriptors, Accept
// tries again every 100 ms, and the connection waits in the kernel. During shutdown it goes on. After Stop or Close of
// the acceptor it fails with net.ErrClosed when nothing is left.
type Accept struct {
	From   monitor.Acceptor // the listening socket
	Limits Limits           // of each connection

	settings *settings
	result   handover
	timer    act.Timer
	short    time.Duration // when descriptors were last short, on the scheduler's clock; 0: never
}

// Act accepts one connection. It returns Done when there is one, and Wait until then.
func (a *Accept) Act(t *act.Task) act.Directive {
	if a.result.conn != nil {
		return act.Done
	}
	stream, err := a.From.Accept()
	switch {
	case err == nil:
		if a.settings == nil {
			a.settings = settingsOf(t.Scheduler(), a.Limits)
		}
		a.result.offer(t, &Conn{stream: stream, settings: a.settings})
		return act.Done
	case err == monitor.ErrWouldBlock:
		a.From.Await(t.Waker())
		return act.Wait
	case errors.Is(err, monitor.ErrConnAborted):
		return act.Yield
	case errors.Is(err, monitor.ErrShortage):
		return a.backOff(t, err)
	}
	return t.Fail(fmt.Errorf("listener: accept: %w", err))
}

// Describe implements [act.Describer].
func (a *Accept) Describe(d *act.Description) { d.Of(a.From) }

// Conn takes the accepted connection, nil if there is none. The caller then owns it. A connection that is not taken is
// aborted when the task ends.
func (a *Accept) Conn() *Conn { return a.result.take() }

func (a *Accept) backOff(t *act.Task, err error) act.Directive {
	now := t.Scheduler().Now()
	if a.short == 0 || now-a.short > logAfter {
		pauses.Add(t.Scheduler(), func(p *paused) { p.n, p.at, p.err = p.n+1, a.From.Addr(), err })
	}
	a.short = max(1, now)
	t.WakeAfter(&a.timer, retryAfter)
	a.From.Await(t.Waker())
	return act.Wait
}

// paused counts the acceptors that began to pause in a second, and describes the latest.
type paused struct {
	n   int
	at  net.Addr
	err error
}

var pauses = summary.New(func(log *zap.Logger, p paused) {
	log.Warn("accepting pauses", zap.Int("acceptors", p.n), zap.Stringer("at", p.at), zap.Error(p.err))
})
