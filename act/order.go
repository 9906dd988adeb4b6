package act

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
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

// Order returns the latest order that was announced or is in force on a scheduler of the Group, nil if there is none: then
// the Group is not about to end. Any goroutine.
func (g *Group) Order() shutdown.Order {
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
