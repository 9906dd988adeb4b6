package act

import (
	"math"
	"math/bits"
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// terms are the policies of the requests in force, merged. Bounds in time are points in time, so a second request can only
// bring them nearer. The zero terms mean that there is none.
type terms struct {
	kind       shutdown.Kind // the strictest one
	turns      uint32        // further turns of each task; 0: no such bound
	until      time.Duration // 0: no such bound
	leave      time.Duration // when the last idle connection is to end
	inactivity time.Duration // 0: no such bound
	drop       bool          // tasks are dropped at the end
	given      bool          // there was a request
}

// strictness ranks kinds.
var strictness = [...]int{shutdown.Unbounded: 0, shutdown.Bounded: 1, shutdown.Halt: 2, shutdown.Suspend: 3}

// with returns the strictest of t and p, field by field, where p comes into force at now: fewer turns beat more, less time
// beats more, a bound beats none, no Spread beats one, Drop wins. p.Turns counts from now on, t.turns from when it was given:
// the caller compares for each task.
func (t terms) with(p shutdown.Policy, now time.Duration) terms {
	p = p.Resolved()
	if !t.given || strictness[p.Kind] > strictness[t.kind] {
		t.kind = p.Kind
	}
	if turns := uint32(min(uint64(p.Turns), math.MaxUint32)); turns > 0 && (t.turns == 0 || turns < t.turns) {
		t.turns = turns
	}
	if until := now + min(p.Time, math.MaxInt64-now); p.Time > 0 && (t.until == 0 || until < t.until) {
		t.until = until
	}
	if leave := now + min(p.Spread, math.MaxInt64-now); !t.given || leave < t.leave {
		t.leave = leave
	}
	if p.Inactivity > 0 && (t.inactivity == 0 || p.Inactivity < t.inactivity) {
		t.inactivity = p.Inactivity
	}
	t.drop = t.drop || p.Drop
	t.given = true
	return t
}

// parts is how many moments there are in the second half of the window of a shutdown (see shutdown.Policy).
const parts = 1 << 16

// NextLeaveTime returns when an action should end during the present shutdown, if it only waits for new work: on the
// scheduler's clock, now if the policy has no window (see Spread of shutdown.Policy). Each call takes another moment in
// the second half of the window, in the middle of the largest gap between the earlier ones. So connections end evenly
// over the window, however many ask.
func (t *Task) NextLeaveTime() time.Duration {
	s := t.s
	s.touch()
	if s.order == nil || s.now >= s.terms.leave || t.flags&last != 0 {
		return s.now
	}
	place := bits.Reverse16(s.leavers) + uint16(s.index)*40503 // the golden ratio: schedulers differ
	s.leavers++
	half := (s.terms.leave - s.since) / 2
	return s.terms.leave - half + half/parts*time.Duration(place)
}

// newcomer is how long a peer's first data may be on its way: in that time a lost segment is sent again on most
// networks.
const newcomer = time.Second

// FirstLeaveTime is NextLeaveTime for an action that has waited since the given time for its first work, such as the
// first request on a new connection, which may be on its way. The action has a second for it in all, or longer if there
// is a window; but at most half of the shutdown's time that is left, and half of its Inactivity. With a bound of turns
// there is no such time.
func (s internals) FirstLeaveTime(t *Task, since time.Duration) time.Duration {
	leave := t.NextLeaveTime()
	if s.order == nil || s.terms.turns > 0 {
		return leave
	}
	until := since + newcomer
	if s.terms.until > 0 {
		until = min(until, s.now+(s.terms.until-s.now)/2)
	}
	if s.terms.inactivity > 0 {
		until = min(until, s.now+s.terms.inactivity/2)
	}
	return max(leave, until)
}

// beginInactivity is called before the bound of inactivity becomes d. A shorter bound counts from now, unless the
// previous one ends earlier.
func (s *Scheduler) beginInactivity(d time.Duration) {
	from := s.now
	if before := s.terms.inactivity; before > 0 {
		from = min(from, time.Duration(s.progress.Load())+before-d)
	}
	s.progress.Store(int64(from))
}

// noteProgress is called when something happens that a shutdown waits for.
func (s *Scheduler) noteProgress() {
	if s.terms.inactivity > 0 {
		s.progress.Store(int64(s.now))
	}
}

// inactiveAt returns when Inactivity ends Run, if nothing happens until then; 0 without such a bound. It does not shorten
// the window.
func (s *Scheduler) inactiveAt() time.Duration {
	if s.terms.inactivity == 0 {
		return 0
	}
	latest := max(s.progress.Load(), int64(s.terms.leave))
	for _, other := range s.group.schedulers {
		latest = max(latest, other.progress.Load())
	}
	return time.Duration(latest) + s.terms.inactivity
}

// termsMet reports whether a bound of the shutdown ends Run, whatever is left.
func (s *Scheduler) termsMet() bool {
	t := &s.terms
	switch {
	case !t.given:
		return false
	case t.kind >= shutdown.Halt, t.until > 0 && s.now >= t.until:
		return true
	}
	return t.inactivity > 0 && s.now-time.Duration(s.progress.Load()) >= t.inactivity && s.now >= s.inactiveAt()
}
