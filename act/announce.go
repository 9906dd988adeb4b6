package act

import (
	"math"
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// given is an order, from Shutdown until it is spent on all schedulers that it was given to. They share it, so that it is
// withdrawn for all of them or for none.
type given struct {
	order shutdown.Order
	terms shutdown.Policy // resolved
	stage atomic.Uint32
	left  int // schedulers on which it is not spent; under orders.mu of the Group
}

const (
	announced uint32 = iota // no scheduler has begun to obey it
	inForce
	withdrawn
)

// enforce reports whether x is in force, or can be put into force now.
func (x *given) enforce() bool {
	return x.stage.CompareAndSwap(announced, inForce) || x.stage.Load() == inForce
}

// orders are those of a Group that are announced or in force, in the order in which they were given.
type orders struct {
	mu  sync.Mutex
	all []*given
}

// give gives an order to some schedulers of g.
func (g *Group) give(o shutdown.Order, to ...*Scheduler) {
	if o == nil {
		panic("act: Shutdown without an order")
	}
	x := &given{order: o, terms: o.Policy().Resolved(), left: len(to)}
	if x.terms.Announce == 0 {
		x.stage.Store(inForce)
	}
	g.orders.mu.Lock()
	g.orders.all = append(g.orders.all, x)
	g.orders.mu.Unlock()
	for _, s := range to {
		s.receive(x)
	}
}

func (s *Scheduler) receive(x *given) {
	if s.trace != nil && s.trace.Ordered != nil {
		s.trace.Ordered(s, x.order)
	}
	if !s.orders.Push(&inbox.Node[*given]{Of: x}) {
		s.group.spend(x) // the scheduler is closed
		return
	}
	s.orderPending.Store(true)
	s.interrupt()
}

// spend is called when x is of no more use to a scheduler.
func (g *Group) spend(x *given) {
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	if x.left--; x.left == 0 {
		g.orders.all = slices.DeleteFunc(g.orders.all, func(y *given) bool { return y == x })
	}
}

// Ending returns the latest order that was announced or is in force on a scheduler of the Group, nil if there is none: then
// the Group is not about to end. Any goroutine.
func (g *Group) Ending() shutdown.Order {
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	if n := len(g.orders.all); n > 0 {
		return g.orders.all[n-1].order
	}
	return nil
}

// Withdraw withdraws orders that are equal to o and only announced, on all schedulers: see shutdown.Policy. It reports
// whether there was one. If o is in force on any scheduler, Withdraw does nothing. An order that cannot be compared, such as
// a struct with a slice, must be given as a pointer, otherwise Withdraw panics. Any goroutine.
func (g *Group) Withdraw(o shutdown.Order) (was bool) {
	if !reflect.ValueOf(o).Comparable() {
		panic("act: Withdraw of an order that cannot be compared: give it as a pointer")
	}
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	g.orders.all = slices.DeleteFunc(g.orders.all, func(x *given) bool {
		gone := reflect.ValueOf(x.order).Comparable() && x.order == o && x.stage.CompareAndSwap(announced, withdrawn)
		was = was || gone
		return gone
	})
	return was
}

// received is an order that a scheduler has taken in.
type received struct {
	*given
	at    time.Duration
	begin time.Duration // when it comes into force
}

// announce takes x in. enforceDue puts it into force at once, or when it has been announced for long enough here. If an order is in
// force, nothing is only announced any more: the least of all times counts, as with the other bounds.
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

// plan forgets what was withdrawn, and finds out when the rest comes into force.
func (s *Scheduler) plan() {
	s.announced = slices.DeleteFunc(s.announced, func(r received) bool { return r.stage.Load() == withdrawn })
	s.due = never
	for _, r := range s.announced {
		s.due = min(s.due, r.begin)
	}
}

const never time.Duration = math.MaxInt64

// enforceDue puts what was announced into force, if it is time to.
func (s *Scheduler) enforceDue() {
	if s.plan(); s.now < s.due {
		return
	}
	all := s.announced
	s.announced, s.due = nil, never
	s.noteWaits(all)
	for _, r := range all {
		switch {
		case !r.enforce(): // it was withdrawn, and is known to nobody any more
		case s.merge(r):
			s.obeyed = append(s.obeyed, r.given)
		default:
			s.group.spend(r.given)
		}
	}
}

// forgetOrders spends all orders that were taken in.
func (s *Scheduler) forgetOrders() {
	for _, x := range s.obeyed {
		s.group.spend(x)
	}
	for _, r := range s.announced {
		s.group.spend(r.given)
	}
	s.obeyed, s.announced, s.due = nil, nil, never
}

// parts is how many moments there are in the second half of the window of an order.
const parts = 1 << 16

// NextLeaveTime returns when an action is to end under the order in force, if all it does is to wait for new work: on the
// scheduler's clock, now if there is no window (see shutdown.Policy). Each call takes the next moment of its second half, which
// is in the middle of the largest gap between those before; so they are spread evenly, however many ask.
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

// newcomer is how long what a peer has sent with the first round trip may be on its way: in that time a segment that was lost
// comes again, on most ways.
const newcomer = time.Second

// FirstLeaveTime is NextLeaveTime for an action that has waited for its first work since the given time, such as a request on a
// connection that was accepted just now: it may be on its way. The action has a second for it in all, or longer if there is a window; but
// at most half of what is left of the order's time, and half of its Inactivity. With a bound of turns there is no such time.
func (t *Task) FirstLeaveTime(since time.Duration) time.Duration {
	s, leave := t.s, t.NextLeaveTime()
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

// beginInactivity is called before the bound of inactivity becomes d. A shorter one counts from now on, unless the one before
// ends earlier.
func (s *Scheduler) beginInactivity(d time.Duration) {
	from := s.now
	if before := s.terms.Inactivity; before > 0 {
		from = min(from, time.Duration(s.progress.Load())+before-d)
	}
	s.progress.Store(int64(from))
}

// noteProgress is called when something happens for which an end waits.
func (s *Scheduler) noteProgress() {
	if s.terms.Inactivity > 0 {
		s.progress.Store(int64(s.now))
	}
}

// inactiveAt returns when Inactivity ends Run, if nothing happens until then: it is no bound of the window.
func (s *Scheduler) inactiveAt() time.Duration {
	latest := max(s.progress.Load(), int64(s.terms.Leave))
	for _, other := range s.group.schedulers {
		latest = max(latest, other.progress.Load())
	}
	return time.Duration(latest) + s.terms.Inactivity
}

// InstallLast is Install for a demon that ends last of all, such as a service for metrics. Under an order it and all that is
// spawned in its turns, and so on, go on without being told, and without a bound of turns, until nothing else is left here
// that keeps Run from returning. Then they are told of the order, and Run waits for them within its bounds.
func (s *Scheduler) InstallLast(d Demon) {
	s.admit(d, isDemon|last)
	s.installed++
}

// endWithOthers is hook.EndWithOthers. Under an order t is told at the beginning of its next turn, which this gives it.
func (s *Scheduler) endWithOthers(t *Task) {
	if t.flags&last == 0 || t.state == abandoned { // one that is abandoned is not counted any more
		return
	}
	t.flags &^= last
	s.lasts--
	if s.order != nil && !s.lastTold {
		t.flags |= untold
		t.left = s.terms.Turns
		t.wake()
	}
}

// tellLast tells those that end last of the order, if nothing else is left.
func (s *Scheduler) tellLast() {
	if s.order == nil || s.lastTold || s.lasts == 0 || s.live+s.installed+s.held-s.exhaustedCount > s.lasts || !s.nothingCame() {
		return
	}
	s.lastTold = true
	s.notify(func(t *Task) bool { return t.flags&last != 0 }, false)
}
