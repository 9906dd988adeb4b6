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
type Timer struct {
	node       wheel.Node[*Timer]
	task       *Task // whose timer it is
	prev, next *Timer
	expirer    interface{ Expire() } // nil: wake task
}

// Armed reports whether tm is armed: it has not fired and was not stopped. It is for the scheduler's thread.
func (tm *Timer) Armed() bool { return tm.node.Armed() }

// When returns the deadline that tm was last armed with, on the scheduler's clock, even if it had passed then. A task
// that arms tm for When()+d keeps a fixed rhythm, however late it is.
func (tm *Timer) When() time.Duration { return time.Duration(tm.node.When()) }

// Stop disarms tm, so that it does not fire, and reports whether it was armed. It is for the scheduler's thread.
func (tm *Timer) Stop() bool {
	if !tm.Armed() {
		return false
	}
	tm.task.s.touch()
	tm.task.s.timers.Disarm(&tm.node)
	tm.unlink()
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
	if tm.Armed() {
		if tm.task.s != t.s {
			panic("act: a Timer armed on one scheduler was armed on another")
		}
		tm.unlink()
	}
	tm.task, tm.expirer = t, x
	tm.node.Of = tm
	if tm.next = t.timers; tm.next != nil {
		tm.next.prev = tm
	}
	t.timers = tm
	t.s.timers.Arm(&tm.node, int64(at))
}

// unlink takes tm out of its task's list.
func (tm *Timer) unlink() {
	if tm.prev != nil {
		tm.prev.next = tm.next
	} else {
		tm.task.timers = tm.next
	}
	if tm.next != nil {
		tm.next.prev = tm.prev
	}
	tm.prev, tm.next = nil, nil
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
		tm := n.Of
		tm.unlink()
		if tm.expirer != nil {
			tm.expirer.Expire()
		} else {
			tm.task.wake()
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
