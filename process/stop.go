package process

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// heed notes whether there is an order.
func (r *reactor) heed(t *act.Task) {
	if r.dropping.Load() {
		r.dropping.Store(false)
	}
	if r.ordered = t.Order() != nil; !r.ordered && r.told != nil {
		r.sys.order.CompareAndSwap(r.told, nil) // it is spent
		r.told = nil
	}
}

// Stop tells the processes that want to be told, those that were made here. All others go on with what they are sent.
// When nothing is ready any more the System holds Run no longer; processes that sleep then go on in a later Run, or
// end when the Group is closed.
func (r *reactor) Stop(_ *act.Task, o shutdown.Order) {
	r.told = r.sys.give(o, &r.orders)
	for _, c := range r.sys.census[r.s.Index()].all() {
		if c.stops && c.call(told) {
			r.enqueue(c)
		}
	}
}

// standing is an order that is in force, with its number: the first that obeys it gives it one.
type standing struct {
	number uint32
	order  shutdown.Order
}

// give puts o in force, which is one more that a reactor obeys, if no other has been faster.
func (sys *System) give(o shutdown.Order, obeyed *uint32) *standing {
	sys.mu.Lock()
	defer sys.mu.Unlock()
	if *obeyed++; *obeyed > sys.orders {
		sys.orders = *obeyed
		sys.order.Store(&standing{sys.orders, o})
	}
	return sys.order.Load()
}

// Account counts and names the processes that are queued here, and under an order that leaves them no time those that
// were made here and sleep.
func (x *place) Account(c *shutdown.Cut) (holds int) {
	r := x.reactor
	if r == nil || !r.holding.Load() {
		return 0
	}
	all := false
	if c.Order != nil {
		kind := c.Order.Policy().Resolved().Kind
		all = kind == shutdown.Halting || kind == shutdown.Suspending
	}
	for i := range r.sys.census {
		for _, p := range r.sys.census[i].all() {
			asleep := p.word.Load()&states == sleeping
			if p == r.next || p.owner.Load() == r.queue.id || all && asleep && i == r.s.Index() {
				c.Processes++
				c.Name(p.String(), 1)
			}
		}
	}
	return 1
}

// Drop ends all processes when the last reactor is told to drop what is left, also those that sleep.
func (x *place) Drop() {
	r := x.reactor
	if r == nil {
		return
	}
	r.dropping.Store(true)
	r.letGo()
	for _, other := range r.sys.reactors {
		if !other.dropping.Load() {
			return
		}
	}
	r.bury()
}

// Close ends all processes when the last reactor is closed.
func (x *place) Close() error {
	r := x.reactor
	if r == nil {
		return nil
	}
	r.sys.closed.Store(1)
	r.shut.Store(true)
	for _, other := range r.sys.reactors {
		if other.present.Load() && !other.shut.Load() {
			return nil
		}
	}
	r.bury()
	return nil
}

// bury ends all processes, now that nobody runs them. The end of one may make others ready: they are queued, which wakes
// nobody here, and forgotten last.
func (r *reactor) bury() {
	if !r.sys.burying.CompareAndSwap(0, 1) {
		return // two may find that they are the last
	}
	defer r.sys.burying.Store(0)
	for i := range r.sys.census {
		for all := r.sys.census[i].all(); len(all) > 0; all = r.sys.census[i].all() {
			for _, c := range all {
				r.end(c, Stopped)
			}
		}
	}
	for _, other := range r.sys.reactors {
		other.next = nil
		other.forget()
	}
}

// forget empties the queue of those who have ended. Others are newer than the end of all: they are for a later Run.
func (r *reactor) forget() {
	for n := r.queue.length(); n > 0; {
		ok, c := r.queue.tryDequeue()
		switch {
		case c != nil && c.word.Load()&states != dead:
			r.sys.scatter(c)
			fallthrough
		case ok:
			n--
		}
	}
}
