package service

import (
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/summary"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

const (
	// acceptsATurn bounds what a service accepts in one turn.
	acceptsATurn = 64
	// tryAgain is how long an acceptor waits before it tries again: in a shortage of descriptors, which ends at once when
	// this scheduler frees one, and while a client waits and no connection is idle.
	tryAgain = 100 * time.Millisecond
	// logAfter is how long there must have been enough descriptors before a shortage is logged again.
	logAfter = 10 * time.Second
)

// acceptor is the demon of one listening socket on one scheduler.
type acceptor struct {
	from    engine.Acceptor // nil: see join
	options engine.ListenOptions
	config  *config
	server  *Listener
	home    *act.Scheduler
	ordered bool
	again   act.Timer     // see tryAgain
	short   time.Duration // when descriptors were last short, on the scheduler's clock; 0: never
	found   []found       // what may make room
	asked   int           // which of the others was asked last
}

// Act accepts the connections that have arrived, at most acceptsATurn. During shutdown it first accepts all that have
// arrived, since their clients believe that they are connected, and then ends.
func (a *acceptor) Act(t *act.Task) act.Directive {
	if a.from == nil && (a.ordered || !a.join()) {
		return act.Done
	}
	for range acceptsATurn {
		stream, err := a.from.Accept()
		switch {
		case err == nil:
			a.config.row.Accepted++
			x := &session{}
			x.conn.Internals().Begin(a.home, stream, a.config.limits, a.config)
			t.Scheduler().Spawn(x)
		case errors.Is(err, engine.ErrConnAborted):
		case err == monitor.ErrWouldBlock:
			a.from.Await(t.Waker())
			a.makeRoom(t)
			return act.Wait
		case errors.Is(err, engine.ErrShortage):
			a.backOff(t, err)
			a.makeRoom(t)
			return act.Wait
		case a.ordered && errors.Is(err, net.ErrClosed):
			return act.Done
		default:
			return t.Fail(fmt.Errorf("service: accept: %w", err))
		}
	}
	return act.Yield
}

// backOff waits until this scheduler frees a descriptor, or for a while: others may have freed one.
func (a *acceptor) backOff(t *act.Task, err error) {
	now := a.home.Now()
	if a.short == 0 || now-a.short > logAfter {
		pauses.Add(a.home, func(p *problem) { p.n, p.at, p.err = p.n+1, a.from.Addr(), err })
	}
	a.short = max(1, now)
	t.WakeAfter(&a.again, tryAgain)
	a.from.Await(t.Waker())
}

// problem counts what happened in a second, and describes the latest.
type problem struct {
	n   int
	at  net.Addr
	err error
}

func problems(message, of string) *summary.Line[problem] {
	return summary.New(func(log *zap.Logger, p problem) {
		log.Warn(message, zap.Int(of, p.n), zap.Stringer("at", p.at), zap.Error(p.err))
	})
}

var pauses = problems("accepting pauses", "acceptors")

// Stop makes the demon end.
func (a *acceptor) Stop(*act.Task, shutdown.Order) {
	a.ordered = true
	if a.from != nil {
		a.server.mu.Lock()
		defer a.server.mu.Unlock()
		a.from.Stop(a.server.gives())
	}
}

// Close stops listening.
func (a *acceptor) Close() error {
	v := a.server
	v.mu.Lock()
	defer v.mu.Unlock()
	gives := v.gives()
	v.end(a)
	if a.from == nil {
		return nil
	}
	if gives {
		a.from.Stop(true)
	}
	a.ended()
	return a.from.Close()
}

func (a *acceptor) String() string { return fmt.Sprintf("service on %v", a.server.Addr()) }
