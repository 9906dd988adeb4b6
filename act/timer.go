package act

import (
	"math"
	"time"

	"github.com/daimon-go/daimon/internal/wheel"
)

// timersAPass bounds the timers that fire in one pass. The rest stay due and keep the thread awake.
const timersAPass = 1024

// Timer is a deadline, meant to be a field of its owner: arming it allocates nothing. The zero Timer is not armed. A
// Timer fires in the first pass whose clock has reached its deadline, never before. Due Timers fire in order of
// deadline, then of arming. A pass fires at most 1024, and ends after about a millisecond; the next one goes on. Arm it
// with [Task.WakeAfter], [Task.WakeAt] or [Scheduler.CallAt]. A Timer must not be copied while it is armed. It is for
// the scheduler's thread.
type Timer struct{ node timerNode }

// timerNode is a Timer as the wheel of its scheduler and its task have it: a cache line.
type timerNode = wheel.Node[deadline]

type deadline struct {
	task       *Task                 // whose timer it is
	prev, next *timerNode            // in Task.timers
	expirer    interface{ Expire() } // nil: wake task
}

// Armed reports whether tm is armed: it has not fired and was not stopped. It is for the scheduler's thread.
func (tm *Timer) Armed() bool { return tm.node.Armed() }

// When returns the deadline that tm was last armed with, on the scheduler's clock, even if it had passed then. A task
// that arms tm for When()+d keeps a fixed rhythm, however late it is.
func (tm *Timer) When() time.Duration { return time.Duration(tm.node.When()) }

// Stop disarms tm, so that it does not fire, and reports whether it was armed. It is for the scheduler's thread.
func (tm *Timer) Stop() bool { return stop(&tm.node) }

func stop(n *timerNode) bool {
	if !n.Armed() {
		return false
	}
	s := n.Of.task.s
	s.touch()
	s.timers.Disarm(n)
	unlink(n)
	return true
}

// CallAt arms tm to call x.Expire on the scheduler's thread, in a pass, at a point in time on the scheduler's clock
// (see [Scheduler.Now]). It is meant for monitors: it wakes no task, and does not keep Run from returning. A panic in
// Expire ends Run with an error.
func (s *Scheduler) CallAt(tm *Timer, at time.Duration, x interface{ Expire() }) {
	s.touch()
	tm.arm(&s.self, at, x)
}

// Now returns the time on the scheduler's clock when the latest pass read it, so it is constant during a turn. It never
// goes back. It is for the scheduler's thread. For the present time, and on other goroutines, call Clock().Monotonic.
func (s *Scheduler) Now() time.Duration {
	s.touch()
	return s.now
}

// after returns the point in time d from now. It reads the clock: the pass's reading may be old, and a timer that counted
// from there would be early.
func (s *Scheduler) after(d time.Duration) time.Duration {
	now := s.clock.Monotonic()
	return now + min(d, math.MaxInt64-now)
}

func (tm *Timer) arm(t *Task, at time.Duration, x interface{ Expire() }) {
	n, of := &tm.node, &tm.node.Of
	if n.Armed() {
		if of.task.s != t.s {
			panic("act: a Timer armed on one scheduler was armed on another")
		}
		unlink(n)
	}
	of.task, of.expirer = t, x
	if of.next = t.timers; of.next != nil {
		of.next.Of.prev = n
	}
	t.timers = n
	t.s.timers.Arm(n, int64(at))
}

// unlink takes a timer out of its task's list.
func unlink(n *timerNode) {
	of := &n.Of
	if of.prev != nil {
		of.prev.Of.next = of.next
	} else {
		of.task.timers = of.next
	}
	if of.next != nil {
		of.next.Of.prev = of.prev
	}
	of.prev, of.next = nil, nil
}

// fireTimers fires what is due, at most timersAPass, and returns false if the time of the pass is up.
func (s *Scheduler) fireTimers() (inTime bool) {
	for fired := range timersAPass {
		if fired > 0 && s.timeUp() {
			return false
		}
		n := s.timers.Pop(int64(s.now))
		if n == nil {
			break
		}
		s.counts.timers++
		unlink(n)
		if n.Of.expirer != nil {
			n.Of.expirer.Expire()
		} else {
			n.Of.task.wake()
		}
	}
	return true
}

// NextDeadline returns when the scheduler next has something to do, on its clock; false means never. It is for callers
// of Step. The time is not later than the earliest deadline, and may be a little earlier if there are many timers.
// While something is in the inbox it is now. If nothing is left that keeps Run from returning, timers no longer fire,
// and only an announced shutdown has a time.
func (s *Scheduler) NextDeadline() (time.Duration, bool) {
	if s.Finished() && (s.group.cfg.Threads != Stepped || s.group.allFinished()) {
		return s.due, s.due < never
	}
	return s.nextDue()
}

// nextDue is NextDeadline, even if nothing is left here while others of the Group go on.
func (s *Scheduler) nextDue() (time.Duration, bool) {
	if !s.nothingCame() {
		return s.now, true
	}
	when, ok := s.timers.Next()
	for _, bound := range [...]time.Duration{s.due, s.terms.until, s.inactiveAt()} {
		if bound > 0 && bound < never && (!ok || int64(bound) < when) {
			when, ok = int64(bound), true
		}
	}
	return time.Duration(when), ok
}
