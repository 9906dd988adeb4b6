package act

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// ending is the part of a Scheduler that has to do with shutdown. The way of a request:
//
//	Shutdown ─▶ orders ─ obey ─▶ announced ─ enforceDue ─▶ order and terms ─ merge ─▶ tasks are told
//	                                                                ─ termsMet, conclude ─▶ spent
type ending struct {
	// What has come.
	orders       inbox.Stack[*given] // from any goroutine
	orderPending atomic.Bool         // true while orders has any and while one is in force; it may stay true a little longer
	announced    []received          // requests that were taken in and are not in force
	due          time.Duration       // when they come into force, or never

	// What is in force.
	order    shutdown.Order // the latest that made the terms stricter; nil: none
	terms    terms
	obeyed   []*given      // what terms consist of
	ordered  time.Duration // when the first of them came into force
	since    time.Duration // when order came into force
	leavers  uint16        // moments of its window that were given away
	lastTold bool          // even the tasks that end last obey it
	progress atomic.Int64  // when something that the shutdown waits for happened last, if terms ask for it

	// What is left, and how it is reported.
	exhausted      queue // out of turns
	exhaustedCount int
	lasts          int           // tasks and demons that end last
	cut            *shutdown.Cut // what was dropped on the way
	halted         *census       // what tasks waited for when a request that halts came
	draining       *draining     // nil without Config.Draining
	concluded      uint          // shutdowns that have ended, or Runs that have returned
}

// received is a request that a scheduler has taken in.
type received struct {
	*given
	at    time.Duration
	begin time.Duration // when it comes into force
}

const never time.Duration = math.MaxInt64

// obey takes in the requests that have come, and puts into force the ones that have been announced for long enough.
func (s *Scheduler) obey() {
	if s.orders.Empty() && s.now < s.due {
		return
	}
	s.orderPending.Store(true) // receive pushes first and may not have stored this yet
	s.exited.Store(false)
	s.group.activate(s)
	s.enforceDue()
	for !s.orders.Empty() { // a Stop may have called Shutdown again: after a request that halts, nothing else would take it
		for n := s.orders.TakeAll(); n != nil; n = n.Next() {
			s.announce(n.Of)
		}
		s.enforceDue() // all of them together: see noteWaits
	}
	if s.order == nil { // all requests are only announced, or were withdrawn
		s.settleOrders()
	}
}

// settleOrders lets turns go on without checking for shutdown requests.
func (e *ending) settleOrders() {
	if e.orderPending.Store(false); !e.orders.Empty() {
		e.orderPending.Store(true) // another request has come meanwhile: receive stores after pushing, so one of both sees it
	}
}

// announce takes x in. Once a request is in force, further ones are not announced first: the least of all times counts, as
// with the other bounds.
func (s *Scheduler) announce(x *given) {
	if s.group.late(x.order) {
		s.group.spend(x)
		return
	}
	s.now = s.clock.Monotonic()
	begin := s.now + x.terms.Announce
	if s.order != nil || x.stage.Load() == inForce {
		begin = s.now
	}
	s.announced = append(s.announced, received{x, s.now, begin})
	s.plan()
	s.beginDraining()
}

// plan forgets withdrawn requests, and finds out when the rest comes into force.
func (e *ending) plan() {
	e.announced = slices.DeleteFunc(e.announced, func(r received) bool { return r.stage.Load() == withdrawn })
	e.due = never
	for _, r := range e.announced {
		e.due = min(e.due, r.begin)
	}
}

// enforceDue puts the announced requests into force, if it is time to.
func (s *Scheduler) enforceDue() {
	if s.plan(); s.now < s.due {
		return
	}
	all := s.announced
	s.announced, s.due = nil, never
	s.noteWaits(all)
	for _, r := range all {
		switch {
		case !r.enforce(): // it was withdrawn
		case s.merge(r):
			s.obeyed = append(s.obeyed, r.given)
		default:
			s.group.spend(r.given)
		}
	}
}

// merge adds a request to the terms in force, and tells all tasks if they became stricter. The announcement counts as
// part of the request's Time.
func (s *Scheduler) merge(r received) (stricter bool) {
	s.now = s.clock.Monotonic()
	p, bounded := r.terms, s.terms.turns > 0
	if p.Announce = 0; p.Time > 0 {
		p.Time = max(1, p.Time-(s.now-r.at))
	}
	merged := s.terms.with(p, s.now)
	if merged == s.terms {
		return false
	}
	if s.order == nil {
		s.ordered = s.now
	}
	s.beginDraining()
	s.beginInactivity(merged.inactivity)
	s.terms, s.order, s.since, s.leavers = merged, r.order, s.now, 0
	s.lastTold = s.lastTold || merged.kind >= shutdown.Halt
	if merged.kind != shutdown.Suspend {
		s.notify(func(t *Task) bool { return t.flags&last == 0 || s.lastTold }, bounded)
	}
	return true
}

// noteWaits notes what tasks wait for, if one of these requests halts: they are about to be made ready, and then have no
// further turn.
func (s *Scheduler) noteWaits(all []received) {
	halts := func(r received) bool { return r.terms.Kind == shutdown.Halt && r.enforce() }
	if s.halted == nil && slices.ContainsFunc(all, halts) {
		s.halted = s.whole(true)
	}
}

// notify tells some tasks of s.order: one whose offloaded function runs, when that has returned; one that is spawned later,
// before its first turn. bounded reports whether turns were counted before.
func (s *Scheduler) notify(whom func(*Task) bool, bounded bool) {
	s.slab.all(func(t *Task) {
		if !whom(t) {
			return
		}
		t.flags |= untold
		if !bounded || t.left > s.terms.turns {
			t.left = s.terms.turns
		}
		if t.state != offloaded && t.state != abandoned {
			s.tell(t)
		}
	})
}

// tell tells t of the present shutdown and makes it ready once.
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

// grantTurn reports whether t may have a turn during shutdown, and first tells it if that has not been done. A task that
// has used up its turns is dropped or set aside.
func (s *Scheduler) grantTurn(t *Task) bool {
	s.running = nil // a panic here is not that of the previous task
	if s.order == nil {
		return true // it is spent, or came too late to count
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
	if s.terms.turns == 0 || s.now < s.terms.leave || t.flags&background != 0 {
		return true // monitors have no bound: without them the tasks could not use the turns that they have left
	}
	if t.left > 0 {
		t.left--
		return true
	}
	if s.terms.drop {
		s.noteCut(t)
		s.drop(t)
	} else {
		t.state = exhausted
		s.exhausted.push(t)
		s.exhaustedCount++
	}
	return false
}

// conclude ends the shutdown at the end of Run: it drops what is left if the policy says so, makes the rest ready for a
// later Run, and returns the Cut.
func (s *Scheduler) conclude() error {
	s.group.activate(s) // what is dropped may post to another scheduler
	cut := s.left()
	s.endDraining()
	if s.terms.drop && s.broken == nil {
		s.dropAll()
	}
	for t := s.exhausted.pop(); t != nil; t = s.exhausted.pop() {
		s.enqueue(t)
	}
	s.exhaustedCount = 0
	eachLocal(s, facts.Leaver.Leave)
	s.order, s.terms, s.cut, s.halted, s.lastTold = nil, terms{}, nil, nil, false
	s.forgetOrders()
	s.concluded++
	if s.group.cfg.Threads == Stepped { // the others may be waiting for just that
		s.exited.Store(true)
		s.group.interruptOthers(s)
	}
	s.settleOrders()
	if s.broken != nil {
		return s.broken
	}
	if cut != nil {
		return cut
	}
	return nil
}

// forgetOrders spends all requests that were taken in.
func (s *Scheduler) forgetOrders() {
	for _, x := range s.obeyed {
		s.group.spend(x)
	}
	for _, r := range s.announced {
		s.group.spend(r.given)
	}
	s.obeyed, s.announced, s.due = nil, nil, never
}

// InstallLast is Install for a demon that ends last of all, such as a service for metrics. During shutdown the demon, the
// tasks spawned in its turns, and theirs, go on without being told, and without a bound of turns, until nothing else is left
// here that keeps Run from returning. Then they are told, and Run waits for them within the bounds of the policy.
func (s internals) InstallLast(d Demon) {
	s.admit(d, isDemon|last)
	s.installed++
}

// EndWithOthers makes t end with the others, if it was to end last of all. During shutdown t is told at the beginning
// of its next turn, which this call gives it. It is not called in a turn of t.
func (s internals) EndWithOthers(t *Task) {
	if t.flags&last == 0 || t.state == abandoned { // an abandoned task is no longer counted
		return
	}
	t.flags &^= last
	s.lasts--
	if s.order != nil && !s.lastTold {
		t.flags |= untold
		t.left = s.terms.turns
		t.wake()
	}
}

// tellLast tells the tasks that end last to shut down, if nothing else is left.
func (s *Scheduler) tellLast() {
	if s.order == nil || s.lastTold || s.lasts == 0 || s.live+s.installed+s.held-s.exhaustedCount > s.lasts || !s.nothingCame() {
		return
	}
	s.lastTold = true
	s.notify(func(t *Task) bool { return t.flags&last != 0 }, false)
}

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

// letGo is called at the end of Close, and for each abandoned task when its function has returned. The last call frees the
// rest: wakers and Groups may keep a closed Scheduler, and it must keep nothing that its actions and services held.
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
