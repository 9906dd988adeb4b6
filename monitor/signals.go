package monitor

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Signal is the shutdown request that [Signals] makes of a signal to the process. Actions find it by act.Task.Order.
type Signal struct {
	os.Signal
	Terms shutdown.Policy // how to shut down: the argument of Signals
}

// Policy returns s.Terms. It makes a Signal a [shutdown.Order].
func (s Signal) Policy() shutdown.Policy { return s.Terms }

// Signals returns a set-up function that shuts the Group down on signals. The first SIGINT or SIGTERM begins a shutdown
// by the policy terms, with a [Signal] as its request. If that is withdrawn, the next signal counts as the first again.
// The second signal halts and drops: Run returns a *shutdown.Cut that says what was left. The third is logged and ends
// the program at once, even if a turn does not end, with 128 plus the number of the signal as its exit status, as
// shells do. Signals does not keep Run from returning. When the Group is closed, the signals have their usual effect
// again.
func Signals(terms shutdown.Policy) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil
		}
		o, g, n, log := orderings.Get(s), s.Group(), 0, s.Logger()
		o.end()
		o.end = notify(func(sig os.Signal) {
			if n == 1 && g.Order() == nil { // the first was withdrawn
				n = 0
			}
			n++
			switch n {
			case 1:
				log.Info("ending", zap.Stringer("signal", sig), zap.Stringer("terms", terms))
				g.Shutdown(Signal{sig, terms})
			case 2:
				log.Warn("a second signal drops what is left", zap.Stringer("signal", sig))
				g.Shutdown(Signal{sig, shutdown.Policy{Kind: shutdown.Halt, Drop: true}})
			default:
				log.Warn("ended at once by a third signal", zap.Stringer("signal", sig))
				_ = log.Sync()
				os.Exit(128 + int(sig.(syscall.Signal)))
			}
		}, syscall.SIGINT, syscall.SIGTERM)
		return nil
	}
}

// OnSignal returns a set-up function that makes h.Signal be called for each of the given signals, such as SIGHUP. The
// calls for one signal come one after the other, on a goroutine of their own, so they may block. If several parts of a
// program take the same signal, they are called in the order of their set-up, each when the previous one has returned.
// Signals that come meanwhile wait; if eight wait, further ones are lost. OnSignal does not keep Run from returning.
// When the Group is closed, the signals have their usual effect again. h must be comparable: a Group that runs again
// with an equal h calls it once.
func OnSignal(h interface{ Signal(os.Signal) }, signals ...os.Signal) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		if s.Index() == 0 {
			for _, sig := range signals {
				allLines.Get(s).take(sig, h)
			}
		}
		return nil
	}
}

// handler is called for signals.
type handler interface{ Signal(os.Signal) }

// line is the handlers of one signal, in the order in which they are called.
type line struct {
	mu       sync.Mutex
	handlers []handler
	end      func()
}

// call calls the present handlers.
func (l *line) call(sig os.Signal) {
	l.mu.Lock()
	all := slices.Clone(l.handlers)
	l.mu.Unlock()
	for _, h := range all {
		h.Signal(sig)
	}
}

// lines are the lines of a Group, kept on its first scheduler.
type lines map[os.Signal]*line

var allLines = act.NewLocal(func(*act.Scheduler) lines { return lines{} })

// take puts h at the end of the line. A Group that runs again is set up again, with h in the line already.
func (ls lines) take(sig os.Signal, h handler) {
	l := ls[sig]
	if l == nil {
		l = &line{}
		ls[sig] = l
		defer func() { l.end = notify(l.call, sig) }() // when h is in the line
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handlers = append(slices.DeleteFunc(l.handlers, func(x handler) bool { return x == h }), h)
}

func (ls lines) Close() error {
	for _, l := range ls {
		l.end()
	}
	return nil
}

// ordering stops the notifications when the Group is closed, or set up again: a Group that runs again must neither be
// notified twice nor take its first signal for a second.
type ordering struct{ end func() }

var orderings = act.NewLocal(func(*act.Scheduler) *ordering { return &ordering{func() {}} })

func (o *ordering) Close() error {
	o.end()
	return nil
}

// notify calls f for each of the signals, on a goroutine for which the returned function waits.
func notify(f func(os.Signal), signals ...os.Signal) (end func()) {
	c, done := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(c, signals...)
	go func() {
		defer close(done)
		for sig := range c {
			f(sig)
		}
	}()
	return func() {
		signal.Stop(c) // returns when no more signals will be sent
		close(c)
		<-done
	}
}
