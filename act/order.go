package act

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// Shutdown asks the scheduler to shut down, by the policy of o. It may be called from any goroutine and in any turn,
// and returns at once. The scheduler obeys before the next turn; if it sleeps, it wakes up. Outside of Run, the request
// applies to the next Run. After Close it does nothing.
//
// A policy that suspends ends Run at once and leaves everything as it is. With any other policy all tasks and demons
// are told (see [Stopper]), and each that waits is made ready once. After that, a policy that halts ends Run. Any other
// policy lets them go on within its bounds: a task that has used up its turns gets no more, and Run ends when all have
// finished, when only such tasks are left, or when the time is up. What is left is dropped if the policy says so, and
// otherwise stays for a later Run.
//
// A shutdown that is announced (see shutdown.Policy) comes into force later; [Group.Withdraw] can take it back until
// then. Once one is in force, further requests are too, without an announcement.
//
// Several requests merge to the strictest policy, field by field; tasks are told again only if something became
// stricter. When Run returns, the shutdown is over.
func (s *Scheduler) Shutdown(o shutdown.Order) { s.group.give(o, s) }

// given is a shutdown request, from Shutdown until it is spent on all schedulers that it was given to. They share it,
// so that it is withdrawn for all of them or for none.
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

// orders are the requests of a Group that are announced or in force, oldest first.
type orders struct {
	mu  sync.Mutex
	all []*given
}

// give gives a request to some schedulers of g.
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
	s.arrives(x.order)
	if !s.orders.Push(&inbox.Node[*given]{Of: x}) {
		s.group.spend(x) // the scheduler is closed
		return
	}
	s.orderPending.Store(true)
	s.interrupt()
}

// spend is called when a scheduler is done with x.
func (g *Group) spend(x *given) {
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	if x.left--; x.left == 0 {
		g.orders.all = slices.DeleteFunc(g.orders.all, func(y *given) bool { return y == x })
	}
}

// Order returns the latest shutdown request that is announced or in force on a scheduler of the Group. nil means that
// the Group is not shutting down. Any goroutine.
func (g *Group) Order() shutdown.Order {
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	if n := len(g.orders.all); n > 0 {
		return g.orders.all[n-1].order
	}
	return nil
}

// Withdraw takes back, on all schedulers, the shutdown requests that are equal to o and only announced (see
// shutdown.Policy). It reports whether there was one. If o is in force on any scheduler, Withdraw does nothing. It
// panics if o cannot be compared, such as a struct with a slice: pass a pointer to Shutdown and to Withdraw then. Any
// goroutine.
func (g *Group) Withdraw(o shutdown.Order) (was bool) {
	if !reflect.ValueOf(o).Comparable() {
		panic("act: Withdraw of an order that cannot be compared: give it as a pointer")
	}
	g.orders.mu.Lock()
	defer g.orders.mu.Unlock()
	g.orders.all = slices.DeleteFunc(g.orders.all, func(x *given) bool {
		gone := x.order == o && x.stage.CompareAndSwap(announced, withdrawn)
		was = was || gone
		return gone
	})
	return was
}
