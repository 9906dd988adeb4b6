package act

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/panics"
)

// Panic is the error of a task whose action panicked. Its field Value has the value of the panic, and Stack the stack
// as debug.Stack returns it. It unwraps to Value if that is an error. Its method Raise panics again with the same
// stack.
type Panic = panics.Panic

// errUnsaid is the error of an action that returned Failed without Task.Fail.
var errUnsaid = errors.New("failed without saying why")

func (s *Scheduler) failure() error {
	if s.err == nil {
		return errUnsaid
	}
	return s.err
}

// wait has t wait until it is woken. A task that only a shutdown can wake, and that did not call Task.Order, is
// reported once.
func (s *Scheduler) wait(t *Task) {
	if t.flags&permit != 0 {
		s.trace.woken(t)
		s.enqueue(t)
		return
	}
	t.state = waiting
	if t.flags&(attended|alone|background) == 0 && t.timers == nil && !waitsForOrders(t.action) {
		t.flags |= alone
		s.logger.Warn("only a shutdown can wake a task: in this turn it returned Wait, and took no Waker, armed no timer and did not call Task.Order",
			zap.String("task", t.String()))
	}
}

// waitsForOrders reports whether a has a Stop of its own, or forwards Stop to an action that does.
func waitsForOrders(a Action) bool {
	if parent, ok := a.(interface{ child() Action }); ok {
		return waitsForOrders(parent.child())
	}
	_, ok := a.(Stopper)
	return ok
}

// finish removes t after its last turn. err is why it failed, nil if it did not.
func (s *Scheduler) finish(t *Task, err error) {
	if err != nil {
		s.report(t, err)
	}
	s.trace.ended(t, err)
	s.remove(t)
}

// remove closes t and frees its place.
func (s *Scheduler) remove(t *Task) {
	f, counted := t.flags, t.state != abandoned
	t.state = leaving
	t.leave()
	if counted {
		s.uncount(f)
	}
	s.slab.put(t)
}

// uncount takes a task or demon out of what keeps Run from returning.
func (s *Scheduler) uncount(f flags) {
	switch {
	case f&isDemon == 0:
		s.live--
		s.counts.ended++
	case f&background == 0:
		s.installed--
	}
	if f&last != 0 {
		s.lasts--
	}
}

// report logs a failure of a task, or of something else by its name.
func (s *Scheduler) report(who any, err error) {
	fields := []zap.Field{zap.String("task", fmt.Sprint(who))}
	if t, ok := who.(*Task); ok {
		if x, ok := t.action.(facts.Connected); ok {
			fields = append(fields, zap.String("peer", x.Peer()))
		}
	}
	s.logger.Error("a task failed", panics.Fields(err, fields...)...)
}

// rescue is deferred around a series of turns. If one of them panicked, its task fails and the series is over; if one of
// them ended the goroutine, the scheduler is broken.
func (s *Scheduler) rescue(taken *int) {
	t := s.running
	if t == nil || s.crash {
		return
	}
	v := recover()
	if v == nil {
		s.broken = fmt.Errorf("%w: %v", errLost, t)
		return
	}
	*taken++
	s.bury(t, panics.Recovered(v))
}

// bury ends the turn of t and removes it after a panic. Further panics on the way are reported for it.
func (s *Scheduler) bury(t *Task, p *Panic) {
	s.endTurnAfterPanic(t)
	s.ended++
	s.finish(t, p)
	s.running, s.err = nil, nil
}

func (s *Scheduler) endTurnAfterPanic(who any) {
	for p := s.guard(s.endTurn); p != nil; p = s.guard(s.endTurn) {
		s.report(who, p)
	}
}

// guard calls f and returns its panic. A Goexit in f goes on, and the scheduler is broken.
func (s *Scheduler) guard(f func()) (p *Panic) {
	if s.crash {
		f()
		return nil
	}
	returned := false
	defer func() {
		if !returned && s.broken == nil {
			s.broken = errLost
		}
	}()
	p = catch(f)
	returned = true
	return p
}

func misplacedAsync(d Directive) string {
	if d == Async {
		return "act: an action returned Async without t.Offload"
	}
	return "act: an action called t.Offload and then returned " + d.String() + " instead of what Offload returned"
}
