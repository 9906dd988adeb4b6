package process

import (
	"io"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

// standingOrder is a shutdown request that is in force on a runner, with its number there. Runners may obey two
// concurrent requests in either sequence, so their numbers differ; therefore a process hears the requests of one runner
// only: where it is registered.
type standingOrder struct {
	number uint32
	order  shutdown.Order
}

// noteOrder begins a turn of the runner.
func (r *runner) noteOrder(t *act.Task) {
	if !r.inRun.Load() { // Step goes on after a shutdown request
		r.inRun.Store(true)
	}
	if r.dropping.Load() {
		r.dropping.Store(false)
	}
	if r.ordered = t.Order() != nil; !r.ordered && r.order.Load() != nil {
		r.order.Store(nil) // it is no longer in force
	}
}

// Stop implements act.Stopper: it tells the Stoppers among the processes registered here of the shutdown. All others go
// on with their messages. When nothing is ready any more the System lets Run return. Processes that sleep then go on in
// a later Run, or end when the Group is closed.
func (r *runner) Stop(_ *act.Task, o shutdown.Order) {
	r.orders++
	r.order.Store(&standingOrder{r.orders, o})
	for _, c := range r.sys.registries[r.s.Index()].processes() {
		if c.stops {
			c.signal(orderPending, r)
		}
	}
}

// checkOrder signals c, whose turn it is, if c is to be told of a shutdown.
func (c *core) checkOrder() {
	if c.stops && c.untoldOrder() != nil {
		c.signal(orderPending, nil)
	}
}

// untoldOrder returns the order in force where c is registered, or has its first turn, if c was not told. It is for the
// turns of c.
func (c *core) untoldOrder() *standingOrder {
	r := c.on
	if c.home > 0 {
		r = c.sys.runners[c.home-1]
	}
	if o := r.order.Load(); o != nil && c.lastOrder != o.number {
		return o
	}
	return nil
}

var _ interface {
	facts.Accounter
	facts.Leaver
	facts.Dropper
} = (*local)(nil)

// Account adds to a Cut the processes that are queued here and, if the policy leaves them no time, the sleeping
// processes that are registered here.
func (x *local) Account(c *shutdown.Cut) (holds int) {
	r := x.runner
	if r == nil || !r.keepsRun.Load() {
		return 0
	}
	all := r.queue.processes()
	if r.next != nil {
		all = append(all, r.next)
	}
	if c.Order != nil && c.Order.Policy().Resolved().Kind >= shutdown.Halt {
		for _, p := range r.sys.registries[r.s.Index()].processes() {
			if p.word.Load()&states == sleeping {
				all = append(all, p)
			}
		}
	}
	for _, p := range all {
		c.Processes++
		merge.Add(c, &shutdown.Cut{Names: []shutdown.Count{{Name: p.String(), N: 1}}})
	}
	return 1
}

// Leave is called when the scheduler leaves Run. If others go on, they take over the queue, and may find that nothing is
// left to do.
func (x *local) Leave() {
	r := x.runner
	if r == nil {
		return
	}
	r.inRun.Store(false)
	r.sys.idle.remove(r)
	for _, other := range r.sys.runners {
		if other.inRun.Load() {
			other.wake()
		}
	}
}

// Drop is called when the scheduler drops what is left. The last one in Run ends all processes, even sleeping ones.
func (x *local) Drop() {
	r := x.runner
	if r == nil {
		return
	}
	r.dropping.Store(true)
	r.releaseRun()
	for _, other := range r.sys.runners {
		if other.inRun.Load() && !other.dropping.Load() {
			return
		}
	}
	r.sys.endAll(r)
}

// Close is called when the scheduler is closed. The last one ends all processes.
func (x *local) Close() error {
	r := x.runner
	if r == nil {
		return nil
	}
	r.sys.closed.Store(1)
	r.isClosed.Store(true)
	if r.sys.allClosed() {
		r.sys.endAll(r)
		r.sys.resolve(func() bool { return true })
		for _, other := range r.sys.runners { // a Ref may keep the System: nothing in it may keep memory of ended processes
			stopTimers(other.disarmed.Close())
			other.order.Store(nil)
		}
	}
	return nil
}

// allClosed reports whether all runners that have been set up are closed.
func (sys *System) allClosed() bool {
	for _, r := range sys.runners {
		if r.isSetUp.Load() && !r.isClosed.Load() {
			return false
		}
	}
	return sys.closed.Load() != 0
}

// endAll ends all processes, while no runner has a turn: the current and next ones of the runners, the queued and the
// registered ones. Processes that become ready by these ends end as well. A process that a goroutine or a Close method
// spawns meanwhile stays for a later Run.
func (sys *System) endAll(by *runner) {
	sys.endMu.Lock() // two may find that they are the last
	defer sys.endMu.Unlock()
	sys.endingAll.Store(1)
	defer sys.endingAll.Store(0)
	defer by.publishCounts()
	for i, r := range sys.runners {
		all := append([]*core{r.current, r.next}, r.queue.takeAll()...)
		for _, c := range slices.Backward(append(all, sys.registries[i].processes()...)) {
			if c != nil {
				by.end(c, Stopped)
			}
		}
		r.current, r.next = nil, nil
	}
}

// endLate ends a process that was spawned when all runners were closed, unless endAll has.
func (sys *System) endLate(c *core) {
	for sys.allClosed() {
		owner := c.owner.Load()
		if owner == 0 {
			return
		}
		if sys.runners[owner-1].queue.tryDequeueEntry(c) {
			break
		}
		backOff()
	}
	action := c.body.action()
	c.die(Stopped)
	c.body.empty()
	sys.outside.ended.Add(1)
	if x, ok := action.(io.Closer); ok {
		sys.runners[0].close(c, x)
	}
}
