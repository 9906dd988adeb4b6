package process

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// heed notes that there is a turn, and whether there is an order.
func (r *reactor) heed(t *act.Task) {
	if !r.inRun.Load() { // who Steps goes on behind an order
		r.inRun.Store(true)
	}
	if r.dropping.Load() {
		r.dropping.Store(false)
	}
	if r.ordered = t.Order() != nil; !r.ordered && r.order.Load() != nil {
		r.order.Store(nil) // it is spent
	}
}

// Stop tells the processes that want to be told, those that are listed here. All others go on with what they are sent.
// When nothing is ready any more the System holds Run no longer; processes that sleep then go on in a later Run, or
// end when the Group is closed.
func (r *reactor) Stop(_ *act.Task, o shutdown.Order) {
	r.orders++
	r.order.Store(&standing{r.orders, o})
	for _, c := range r.sys.census[r.s.Index()].all() {
		if c.stops {
			c.call(unheard, r)
		}
	}
}

// standing is an order that is in force on a reactor, with its number there. Two that are given at once may be obeyed
// in this order on one reactor and in that on another, where the second is one more or none; so a process hears of
// those of one: where it is listed.
type standing struct {
	number uint32
	order  shutdown.Order
}

// Account counts and names the processes that are queued here, and under an order that leaves them no time those that
// are listed here and sleep.
func (x *place) Account(c *shutdown.Cut) (holds int) {
	r := x.reactor
	if r == nil || !r.holding.Load() {
		return 0
	}
	all := r.queue.all()
	if r.next != nil {
		all = append(all, r.next)
	}
	if leavesNoTime(c.Order) {
		for _, p := range r.sys.census[r.s.Index()].all() {
			if p.word.Load()&states == sleeping {
				all = append(all, p)
			}
		}
	}
	for _, p := range all {
		c.Processes++
		c.Add(&shutdown.Cut{Names: []shutdown.Count{{Name: p.String(), N: 1}}})
	}
	return 1
}

func leavesNoTime(o shutdown.Order) bool {
	if o == nil {
		return false
	}
	kind := o.Policy().Resolved().Kind
	return kind == shutdown.Halting || kind == shutdown.Suspending
}

// Leave is the end of Run here. The others, if they go on, see to what is in the queue, and may find that nothing is
// left to do.
func (x *place) Leave() {
	r := x.reactor
	if r == nil {
		return
	}
	r.inRun.Store(false)
	r.sys.idle.remove(r)
	for _, other := range r.sys.reactors {
		if other.inRun.Load() {
			other.ring()
		}
	}
}

// Drop ends all processes when the last reactor in Run is told to drop what is left, also those that sleep.
func (x *place) Drop() {
	r := x.reactor
	if r == nil {
		return
	}
	r.dropping.Store(true)
	r.letGo()
	for _, other := range r.sys.reactors {
		if other.inRun.Load() && !other.dropping.Load() {
			return
		}
	}
	r.sys.endAll(r)
}

// Close ends all processes when the last reactor is closed.
func (x *place) Close() error {
	r := x.reactor
	if r == nil {
		return nil
	}
	r.sys.closed.Store(1)
	r.shut.Store(true)
	if r.sys.over() {
		r.sys.endAll(r)
		r.sys.resolve(func() bool { return true })
	}
	return nil
}

// over tells whether all reactors that have been set up are closed.
func (sys *System) over() bool {
	for _, r := range sys.reactors {
		if r.present.Load() && !r.shut.Load() {
			return false
		}
	}
	return sys.closed.Load() != 0
}

// endAll ends all processes, while no reactor has a turn: those that one has in its hands, those that are queued, and
// those that are listed. What the ends make ready meanwhile ends as well; what is spawned meanwhile, by goroutines or by
// those who are closed, is there for a later Run.
func (sys *System) endAll(by *reactor) {
	sys.graves.Lock() // two may find that they are the last
	defer sys.graves.Unlock()
	sys.burying.Store(1)
	defer sys.burying.Store(0)
	defer by.count()
	for i, r := range sys.reactors {
		all := append(r.queue.takeAll(), sys.census[i].all()...)
		for _, c := range append(all, r.current, r.next) {
			if c != nil {
				by.end(c, Stopped)
			}
		}
		r.current, r.next = nil, nil
	}
}

// tooLate ends a process that was spawned when all reactors were closed, unless the end of all has.
func (sys *System) tooLate(c *core) {
	for looks := 0; ; looks++ {
		owner := c.owner.Load()
		if owner == 0 {
			return
		}
		if sys.reactors[owner-1].queue.tryDequeueEntry(c) {
			break
		}
		patience(looks)
	}
	action := c.body.action()
	c.die(Stopped)
	c.body.empty()
	sys.foreign.ended.Add(1)
	if x, ok := action.(io.Closer); ok {
		sys.reactors[0].close(c, x)
	}
}
