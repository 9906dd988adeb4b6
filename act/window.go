package act

import (
	"math/bits"
	"time"
)

// parts is how many moments there are in the second half of the window of a shutdown (see shutdown.Policy).
const parts = 1 << 16

// NextLeaveTime returns when an action should end during the present shutdown, if it only waits for new work: on the
// scheduler's clock, now if the policy has no window (see Spread of shutdown.Policy). Each call takes another moment in
// the second half of the window, in the middle of the largest gap between the earlier ones. So connections end evenly
// over the window, however many ask.
func (t *Task) NextLeaveTime() time.Duration {
	s := t.s
	s.touch()
	if s.order == nil || s.now >= s.terms.Leave || t.flags&last != 0 {
		return s.now
	}
	place := bits.Reverse16(s.leavers) + uint16(s.index)*40503 // the golden ratio: schedulers differ
	s.leavers++
	half := (s.terms.Leave - s.since) / 2
	return s.terms.Leave - half + half/parts*time.Duration(place)
}

// newcomer is how long a peer's first data may be on its way: in that time a lost segment is sent again on most
// networks.
const newcomer = time.Second

// FirstLeaveTime is NextLeaveTime for an action that has waited for its first work since the given time, such as the
// first request on a new connection: it may be on its way. The action has a second for it in all, or longer if there is
// a window; but at most half of the shutdown's time that is left, and half of its Inactivity. With a bound of turns
// there is no such time.
func (i *internals) FirstLeaveTime(t *Task, since time.Duration) time.Duration {
	s, leave := i.of(), t.NextLeaveTime()
	if s.order == nil || s.terms.Turns > 0 {
		return leave
	}
	until := since + newcomer
	if s.terms.Until > 0 {
		until = min(until, s.now+(s.terms.Until-s.now)/2)
	}
	if s.terms.Inactivity > 0 {
		until = min(until, s.now+s.terms.Inactivity/2)
	}
	return max(leave, until)
}

// beginInactivity is called before the bound of inactivity becomes d. A shorter bound counts from now, unless the
// previous one ends earlier.
func (s *Scheduler) beginInactivity(d time.Duration) {
	from := s.now
	if before := s.terms.Inactivity; before > 0 {
		from = min(from, time.Duration(s.progress.Load())+before-d)
	}
	s.progress.Store(int64(from))
}

// noteProgress is called when something happens that a shutdown waits for.
func (s *Scheduler) noteProgress() {
	if s.terms.Inactivity > 0 {
		s.progress.Store(int64(s.now))
	}
}

// inactiveAt returns when Inactivity ends Run, if nothing happens until then. It does not shorten the window.
func (s *Scheduler) inactiveAt() time.Duration {
	latest := max(s.progress.Load(), int64(s.terms.Leave))
	for _, other := range s.group.schedulers {
		latest = max(latest, other.progress.Load())
	}
	return time.Duration(latest) + s.terms.Inactivity
}
