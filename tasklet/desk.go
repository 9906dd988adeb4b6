package tasklet

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// desk is the monitor of one core on one scheduler: it settles, on the thread, what was said from elsewhere.
// It runs no code of users and holds nobody: the members do. It sets its bell before it looks, and others
// leave something to see before they ring.
type desk struct {
	c    *core
	s    *act.Scheduler
	bell act.Bell

	// Guarded by core.mu.
	left []*entry // handed to the executor in an earlier Run, and not begun
	open bool     // the bell is set
	rung bool     // since the last time somebody settled
}

func (d *desk) Act(t *act.Task) act.Directive {
	d.bell.Set(t.Waker())
	c := d.c
	c.mu.Lock()
	c.order = origin(t.Order())
	for _, e := range d.left {
		if e.place == handed {
			c.launch(e)
		}
	}
	d.left, d.open = nil, true
	c.settle()
	return act.Wait
}

// ring has the desk take a turn. Before its first a posted function has to see to it that there is one; if
// there is no room for it, others do.
func (d *desk) ring(open bool) {
	if open {
		d.bell.Ring()
	} else {
		d.s.Post(func(*act.Scheduler) {})
	}
}

// Stop notes the order for those who are in a phase elsewhere.
func (d *desk) Stop(_ *act.Task, o shutdown.Order) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.c.order = origin(o)
}

// Close is the end of a guest. An owner has detached before. Of the members, act has counted and dropped those
// that had a task; the others are reported here.
func (d *desk) Close() error {
	c := d.c
	var late []Tasklet
	c.mu.Lock()
	if c.desk == d {
		c.closed = true
		for _, e := range c.members() {
			late = append(late, e.tasklet)
			c.forget(e, nil)
		}
		c.desk, c.order = nil, nil
	}
	c.mu.Unlock()
	for _, t := range late {
		report(c.logger, t, act.ErrDropped)
	}
	return nil
}

// attach puts the members on s. It belongs to the thread of s.
func (c *core) attach(s *act.Scheduler) {
	d := &desk{c: c, s: s}
	s.Attach(d)
	c.mu.Lock()
	c.desk, c.logger, c.refused, c.offloads = d, s.Logger(), nil, 0
	for e := c.queue.head; e != nil; e = e.next {
		c.touch(e)
	}
	for _, e := range c.members() {
		c.touch(e)
		if e.place == handed {
			d.left = append(d.left, e)
		}
	}
	c.start()
}

// more tells whether somebody became a member while act.Run was about to return, and lets Run go on with
// those, under what is left of the orders that it has been given.
func (c *core) more() bool {
	c.mu.Lock()
	if len(c.known) == 0 {
		c.mu.Unlock()
		return false
	}
	c.start()
	return true
}

// start settles, and gives the orders: for the first time, or what is left of them.
func (c *core) start() {
	s, orders := c.desk.s, slices.Clone(c.orders)
	c.settle()
	now := s.Clock().Monotonic()
	for _, g := range orders {
		if !g.terms.Given {
			g.terms, _ = g.terms.Merge(g.order.Policy(), now)
			s.Shutdown(g.order)
			continue
		}
		p := g.order.Policy().Resolved()
		switch left := g.terms.Until - now; {
		case p.Time == 0:
		case left > 0:
			p.Time = min(p.Time, left)
		case p.Kind < shutdown.Halting:
			p.Kind = shutdown.Halting // the time is up: no further turn
		}
		s.Shutdown(rest{g.order, p})
	}
}

// given is an order to a Run.
type given struct {
	order shutdown.Order
	terms shutdown.Terms // when that was, on the clock of the scheduler beneath; the zero Terms: before Run
}

// rest is an order that is given again, after it was spent with an act.Run that turned out not to be the last of
// its Run: its bound in time does not begin afresh. Tasklets see the order itself.
type rest struct {
	shutdown.Order
	left shutdown.Policy
}

// Policy is what is left.
func (r rest) Policy() shutdown.Policy { return r.left }

// origin is o as it was given first.
func origin(o shutdown.Order) shutdown.Order {
	if r, again := o.(rest); again {
		return r.Order
	}
	return o
}

// detach takes the members off again. Their tasks are about to be closed, and must not take that for their
// end.
func (c *core) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.desk, c.turning, c.order, c.orders = nil, nil, nil, nil
	for _, e := range c.known {
		e.tasked, e.untold, e.waker = false, nil, act.Waker{}
	}
	for _, e := range c.changed {
		e.changed = false
	}
	c.changed, c.work, c.given, c.dirty = nil, nil, nil, false // entries keep the scheduler beneath
}

// account says what Run has to say: it adds to a Cut the members that had no task yet, and the phases that
// are still running elsewhere.
func (c *core) account(err error) error {
	var cut *shutdown.Cut
	var late []Tasklet
	c.mu.Lock()
	if errors.As(err, &cut) {
		cut.Order = origin(cut.Order)
		cut.Offloads += c.offloads
		for _, e := range c.members() {
			if !e.tasked {
				late = append(late, e.tasklet)
			}
			if e.place == inPhase {
				cut.Offloads++
			}
			if cut.Dropped {
				c.forget(e, nil)
			}
		}
	}
	if c.refused != nil {
		err = errors.Join(err, c.refused)
	}
	c.mu.Unlock()
	for _, t := range late {
		cut.Tasks++
		cut.Name(name(t), 1)
	}
	return err
}

// members returns them in the order in which they became that.
func (c *core) members() []*entry {
	return slices.SortedFunc(maps.Values(c.known), func(a, b *entry) int { return cmp.Compare(a.born, b.born) })
}

// here tells whether the caller is on the thread in Run.
func (c *core) here() bool {
	c.mu.Lock()
	d := c.desk
	c.mu.Unlock()
	return d != nil && d.s.Here()
}
