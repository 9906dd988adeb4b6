package act

import (
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/terms"
	"github.com/daimon-go/daimon/shutdown"
)

// Shutdown gives an order to end. It may be called from any goroutine and in any turn, and returns at once. The scheduler
// obeys before the next turn; if it sleeps, it wakes up. An order that is given outside of Run applies to the next Run.
// After Close it does nothing.
//
// An order that suspends ends Run at once and leaves everything as it is. Any other order is passed to all tasks and demons
// (see [Stopper]), and each that waits is made ready once. After that, an order that halts ends Run. Any other order lets
// them go on within its bounds: a task that has used up its turns gets no more, and Run ends when all have finished, when
// only such tasks are left, or when the time is up. What is left is dropped if the order says so, and otherwise stays for a
// later Run.
//
// An order that is announced (see shutdown.Policy) is obeyed later; Group.Withdraw can take it back until then. Once an order
// is in force, none is only announced any more.
//
// Several orders merge to the strictest terms, field by field; tasks are told again only if something became stricter.
// The order is spent when Run returns.
func (s *Scheduler) Shutdown(o shutdown.Order) { s.group.give(o, s) }

// obey takes in the orders that have come, and puts into force what has been announced for long enough.
func (s *Scheduler) obey() {
	if s.orders.Empty() && s.now < s.due {
		return
	}
	s.orderPending.Store(true) // Shutdown may not have come to that yet
	s.exited.Store(false)
	s.group.activate(s)
	s.enforceDue()
	for !s.orders.Empty() { // a Stop may have given another one: after an order that halts, nothing else would take it
		for n := s.orders.TakeAll(); n != nil; n = n.Next() {
			s.announce(n.Of)
		}
		s.enforceDue() // all of them together: see noteWaits
	}
	if s.order == nil { // what has come is only announced, or was withdrawn
		s.settleOrders()
	}
}

// settleOrders lets turns go on without a look at orders.
func (s *Scheduler) settleOrders() {
	if s.orderPending.Store(false); !s.orders.Empty() {
		s.orderPending.Store(true) // another order has come meanwhile: receive stores after pushing, so one of both sees it
	}
}

// merge adds an order to the terms in force, and tells all tasks if they became stricter. Of its time is left what the
// announcement has not taken.
func (s *Scheduler) merge(r received) (stricter bool) {
	s.now = s.clock.Monotonic()
	p, bounded := r.terms, s.terms.Turns > 0
	if p.Announce = 0; p.Time > 0 {
		p.Time = max(1, p.Time-(s.now-r.at))
	}
	merged, stricter := s.terms.Merge(p, s.now)
	if !stricter {
		return false
	}
	if s.order == nil {
		s.ordered = s.now
	}
	s.beginDraining()
	s.beginInactivity(merged.Inactivity)
	s.terms, s.order, s.since, s.leavers = merged, r.order, s.now, 0
	s.lastTold = s.lastTold || merged.Kind >= shutdown.Halting
	if merged.Kind != shutdown.Suspending {
		s.notify(func(t *Task) bool { return t.flags&last == 0 || s.lastTold }, bounded)
	}
	return true
}

// noteWaits notes what tasks wait for, if one of these orders halts. They are about to be told, and so made ready, and no turn comes
// behind an order that halts.
func (s *Scheduler) noteWaits(all []received) {
	halts := func(r received) bool { return r.terms.Kind == shutdown.Halting && r.enforce() }
	if s.halted == nil && slices.ContainsFunc(all, halts) {
		s.halted = s.whole(true)
	}
}

// notify tells some tasks of s.order. A task whose offloaded function runs is told when that has returned, one that is
// spawned meanwhile before its first turn. bounded reports whether turns were counted before.
func (s *Scheduler) notify(whom func(*Task) bool, bounded bool) {
	s.slab.all(func(t *Task) {
		if !whom(t) {
			return
		}
		t.flags |= untold
		if !bounded || t.left > s.terms.Turns {
			t.left = s.terms.Turns
		}
	})
	s.slab.all(func(t *Task) {
		if t.flags&untold != 0 && t.state != offloaded && t.state != abandoned && whom(t) {
			s.tell(t)
		}
	})
}

// tell tells t of the present order and makes it ready once.
func (s *Scheduler) tell(t *Task) {
	t.flags &^= untold
	if s.trace != nil && s.trace.Told != nil {
		s.trace.Told(t, s.order)
	}
	if st, ok := t.action.(Stopper); ok {
		if p := s.guard(func() { st.Stop(t, s.order) }); p != nil {
			failed := &Child{Action: t.action} // it fails in its next turn
			failed.fail(p)
			t.action = failed
		}
		s.endTurnAfterPanic(t)
		s.err = nil // a Fail in Stop belongs to no turn
	}
	t.wake()
}

// grantTurn reports whether t may have a turn under the order in force, and tells it of the order before if that has not
// been done. A task that has used up its turns is dropped or set aside.
func (s *Scheduler) grantTurn(t *Task) bool {
	s.running = nil // a panic here is not that of the previous task
	if s.order == nil {
		return true // it is spent, or was given too late to count
	}
	if t.flags&last != 0 && !s.lastTold {
		return true
	}
	if t.flags&untold != 0 {
		s.tell(t)
	}
	if t.flags&(isDemon|last) == 0 {
		s.noteProgress()
	}
	if s.terms.Turns == 0 || s.now < s.terms.Leave || t.flags&background != 0 {
		return true // monitors have no bound: without them the others could not use the turns that they have left
	}
	if t.left > 0 {
		t.left--
		return true
	}
	if s.terms.Drop {
		s.noteCut(t)
		s.drop(t)
	} else {
		t.state = exhausted
		s.exhausted.push(t)
		s.exhaustedCount++
	}
	return false
}

// termsMet reports whether the order ends Run, whatever is left.
func (s *Scheduler) termsMet() bool {
	switch {
	case !s.terms.Given:
		return false
	case s.terms.Kind == shutdown.Halting, s.terms.Kind == shutdown.Suspending:
		return true
	}
	if s.terms.Until > 0 && s.now >= s.terms.Until {
		return true
	}
	i := s.terms.Inactivity
	return i > 0 && s.now-time.Duration(s.progress.Load()) >= i && s.now >= s.inactiveAt()
}

// conclude spends the order at the end of Run: it drops what is left if the order says so, makes the rest ready for a later
// Run, and returns what was cut.
func (s *Scheduler) conclude() error {
	s.group.activate(s) // what is dropped may post to another scheduler
	cut := s.left()
	s.endDraining()
	if s.terms.Drop && s.broken == nil {
		s.dropAll()
	}
	for t := s.exhausted.pop(); t != nil; t = s.exhausted.pop() {
		s.enqueue(t)
	}
	s.exhaustedCount = 0
	eachLocal(s, hook.Leaver.Leave)
	s.order, s.terms, s.cut, s.halted, s.lastTold = nil, terms.Terms{}, nil, nil, false
	s.forgetOrders()
	s.concluded++
	s.group.orderSpent(s)
	s.settleOrders()
	if s.broken != nil {
		return s.broken
	}
	if cut != nil {
		return cut
	}
	return nil
}

// dropAll drops all tasks and demons but the attached ones, and what the Locals keep going. What a Close spawns meanwhile
// stays for a later Run.
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
	eachLocal(s, func(x interface{ Drop() }) { x.Drop() })
}

// drop removes t unfinished. If an offloaded function runs, t is closed when that returns.
func (s *Scheduler) drop(t *Task) {
	s.trace.ended(t, ErrDropped)
	if t.state == offloaded {
		t.state = abandoned
		s.users.Add(1)
		t.stopTimers() // here: leave may be called on another goroutine
		s.uncount(t.flags)
		if p := s.guard(func() { t.action = Abandon(t.action) }); p != nil {
			s.report(t, p)
			t.action = nil
		}
		return
	}
	s.remove(t)
}
