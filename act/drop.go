package act

import "github.com/daimon-go/daimon/internal/facts"

// dropAll drops all tasks and demons except the attached ones, and what the Locals keep going. Tasks that a Close
// spawns meanwhile stay for a later Run.
func (s *Scheduler) dropAll() {
	s.ready, s.demonic, s.demons, s.exhausted = queue{}, queue{}, queue{}, queue{}
	s.passing = false
	var left []*Task // a copy: places that become free may be taken again
	s.slab.all(func(t *Task) {
		switch {
		case t.state == abandoned:
		case t.flags&background == 0:
			left = append(left, t)
			if t.state != offloaded {
				t.state = leaving // all of them before the first is closed, which may wake others
			}
		case t.state == ready:
			s.enqueue(t)
		}
	})
	for _, t := range left {
		s.drop(t)
	}
	eachLocal(s, facts.Dropper.Drop)
}

// drop removes t unfinished. If an offloaded function runs, t is closed when that returns.
func (s *Scheduler) drop(t *Task) {
	s.trace.ended(t, ErrDropped)
	if t.state == offloaded {
		t.state = abandoned
		s.users.Add(1)
		t.stopTimers() // here: leave may be called on another goroutine
		s.uncount(t.flags)
		if p := s.guard(func() { t.action = abandon(t.action) }); p != nil {
			s.report(t, p)
			t.action = nil
		}
		return
	}
	s.remove(t)
}

// letGo is called at the end of Close, and for each abandoned task when its function has returned. The last call frees
// the rest: wakers and Groups may keep a closed Scheduler for any length of time, and it must keep nothing that its
// actions and services held.
func (s *Scheduler) letGo() {
	if s.users.Add(-1) > 0 {
		return
	}
	for _, ok := s.posts.Pop(); ok; _, ok = s.posts.Pop() {
	}
	s.self.stopTimers()
	s.locals, s.ends, s.passEnds = nil, nil, nil
	s.order, s.cut, s.halted, s.err, s.broken = nil, nil, nil, nil, nil
	s.idler.Store(nil) // nothing interrupts it any more
}
