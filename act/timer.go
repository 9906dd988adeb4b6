package act

import (
	"math"
	"time"

	"github.com/daimon-go/daimon/internal/wheel"
)

// timersAPass bounds the timers fired in one pass; the rest stay due and keep the thread awake.
const timersAPass = 1024

// Timer is a deadline that is a field of its owner: arming allocates nothing. The zero Timer is not
// armed. It fires in the first pass whose clock has reached it, never before, in order of deadline and
// of arming. A Timer must not be copied while armed. Like Task it is for the scheduler's thread.
type Timer struct {
	node       wheel.Node[*Timer]
	task       *Task // whose timer it is
	prev, next *Timer
	expirer    expirer // nil: wake task
}

// expirer is an argument of CallAt.
type expirer = interface{ Expire() }

// Armed tells whether tm is going to fire.
func (tm *Timer) Armed() bool { return tm.node.Armed() }

// When is the deadline tm was last armed with, on the scheduler's clock.
func (tm *Timer) When() time.Duration { return time.Duration(tm.node.When()) }

// Stop disarms tm and reports whether it was armed.
func (tm *Timer) Stop() bool {
	if !tm.Armed() {
		return false
	}
	tm.task.s.touch()
	tm.task.s.timers.Disarm(&tm.node)
	tm.unlink()
	return true
}

// CallAt arms tm to call x.Expire on the scheduler's thread, in a pass, at the given point in time.
// It is meant for monitors: no task is woken, none owns tm, and it does not hold Run. A panic in
// Expire ends Run with an error.
func (s *Scheduler) CallAt(tm *Timer, at time.Duration, x interface{ Expire() }) {
	s.touch()
	tm.arm(&s.self, at, x)
}

// Now is the time on the scheduler's clock, as the pass has read it: it stands still during a turn.
// It counts from the start of the Group and never goes back.
func (s *Scheduler) Now() time.Duration {
	s.touch()
	return s.now
}

// after is the point in time d from now. The clock is read: the pass's reading is as old as the turns since
// then have been long, and a timer that counted from there would be early.
func (s *Scheduler) after(d time.Duration) time.Duration {
	now := s.clock.Monotonic()
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}

func (tm *Timer) arm(t *Task, at time.Duration, x expirer) {
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
	// A point in the past counts as now: it goes behind what is due already, so that tasks which keep
	// arming in the past do not starve other timers.
	t.s.timers.Arm(&tm.node, int64(max(at, t.s.now)))
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

// fireTimers fires what is due, at most timersAPass.
func (s *Scheduler) fireTimers() {
	for range timersAPass {
		n := s.timers.Pop(int64(s.now))
		if n == nil {
			return
		}
		tm := n.Of
		tm.unlink()
		if tm.expirer != nil {
			tm.expirer.Expire()
		} else {
			tm.task.wake()
		}
	}
}

// NextDeadline is when the scheduler has something to do by itself, on its own clock; false if never.
// It is not later than the earliest deadline and may be a little earlier where timers are crowded. While
// something waits in the inbox it is now.
func (s *Scheduler) NextDeadline() (time.Duration, bool) {
	s.touch()
	if !s.inboxEmpty() {
		return s.now, true
	}
	when, ok := s.timers.Next()
	if until := int64(s.terms.Until); until > 0 && (!ok || until < when) {
		return s.terms.Until, true
	}
	return time.Duration(when), ok
}
