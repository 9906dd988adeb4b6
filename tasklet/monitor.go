package tasklet

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

// monitor connects a core with the act.Scheduler that runs it: a demon that settles, on the thread in Run, changes by
// other goroutines. It runs no user code and does not keep Run from returning; the members do. It sets its bell before
// it settles, and others make their change before they ring.
type monitor struct {
	c    *core
	s    *act.Scheduler
	bell act.AtomicWaker

	// Guarded by core.mu.
	left []*entry // handed to the executor in an earlier Run and not begun
	open bool     // the bell is set
	rung bool     // since settle was last called
}

func (m *monitor) Act(t *act.Task) act.Directive {
	m.bell.Set(t.Waker())
	c := m.c
	c.mu.Lock()
	for _, e := range m.left {
		if e.place == handed {
			c.launch(e)
		}
	}
	m.left, m.open = nil, true
	c.settle()
	return act.Wait
}

func (m *monitor) Describe(d *act.Description) { d.WaitsFor("a directive from another goroutine") }

// ring gives the monitor a turn. Before its first turn the bell is not set, and an empty posted function wakes the
// scheduler. If the inbox is full, the scheduler is awake anyway.
func (m *monitor) ring(open bool) {
	if open {
		m.bell.Wake()
	} else {
		m.s.Post(func(*act.Scheduler) {})
	}
}

// Stop gives members that have no task yet one, so that the request reaches them, and a Cut counts them.
func (m *monitor) Stop(*act.Task, shutdown.Order) {
	m.c.mu.Lock()
	m.c.settle()
}

// Close ends a guest; an owner has detached before. Package act has counted and dropped the members that had a task.
// Close reports the others.
func (m *monitor) Close() error {
	c := m.c
	var late []Tasklet
	c.mu.Lock()
	if c.monitor == m {
		c.closed = true
		for _, e := range c.members() {
			late = append(late, e.tasklet)
			c.forget(e, nil)
		}
		c.monitor = nil
	}
	c.mu.Unlock()
	for _, t := range late {
		report(c.logger, t, act.ErrDropped)
	}
	return nil
}

// attach makes s run the members. It is called on the thread of s.
func (c *core) attach(s *act.Scheduler) {
	m := &monitor{c: c, s: s}
	s.Attach(m)
	c.mu.Lock()
	c.monitor, c.logger, c.refused, c.offloads = m, s.Logger(), nil, 0
	for n := c.queue.First; n != nil; n = n.Next {
		c.touch(n.Of)
	}
	for _, e := range c.members() {
		c.touch(e)
		if e.place == handed {
			m.left = append(m.left, e)
		}
	}
	c.start()
}

// more reports whether tasklets were scheduled while act.Scheduler.Run was about to return. Run then goes on with them,
// within the bounds that are left of its shutdown.
func (c *core) more() bool {
	c.mu.Lock()
	if len(c.known) == 0 {
		c.mu.Unlock()
		return false
	}
	c.start()
	return true
}

// start settles and gives the scheduler the requests: new ones, and the others with the time that they have left.
func (c *core) start() {
	s, orders := c.monitor.s, slices.Clone(c.orders)
	c.settle()
	now := s.Clock().Monotonic()
	for _, g := range orders {
		if !g.begun {
			g.begin(now)
			s.Shutdown(g.order)
			continue
		}
		p, passed := g.order.Policy().Resolved(), now-g.at
		p.Announce = max(0, p.Announce-passed)
		switch {
		case p.Time == 0:
		case p.Time > passed:
			p.Time -= passed
		case p.Kind < shutdown.Halt:
			p.Kind = shutdown.Halt // the time is over: no further turn
		}
		s.Shutdown(rest{g.order, p})
	}
}

// given is a shutdown request to a Run.
type given struct {
	order shutdown.Order
	begun bool          // false: it was given before Run, and its time is not counted yet
	at    time.Duration // from then on, on the clock of the act.Scheduler
}

// begin begins to count the time of g.
func (g *given) begin(now time.Duration) { g.begun, g.at = true, now }

// rest is a request that is given again, because Run goes on after an act.Scheduler.Run that obeyed it. Its bound in
// time does not begin anew. Tasklets see the original request.
type rest struct {
	shutdown.Order
	left shutdown.Policy
}

// Policy returns the policy with the time that is left.
func (r rest) Policy() shutdown.Policy { return r.left }

// origin returns the original of o.
func origin(o shutdown.Order) shutdown.Order {
	if r, again := o.(rest); again {
		return r.Order
	}
	return o
}

// detach separates the members from their tasks, which are about to be closed: the members live on.
func (c *core) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.monitor, c.turning, c.orders = nil, nil, nil
	for _, e := range c.known {
		e.tasked, e.untold, e.waker = false, nil, act.Waker{}
	}
	for _, e := range c.changed {
		e.changed = false
	}
	c.changed, c.work, c.given, c.dirty = nil, nil, nil, false // entries keep the act.Scheduler reachable
}

// account returns the error of Run. It adds to a Cut the members that had no task yet and the ASYNC phases that still run.
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
		merge.Add(cut, &shutdown.Cut{Names: []shutdown.Count{{Name: act.Name(t), N: 1}}})
	}
	return err
}

// members returns the members in order of admission.
func (c *core) members() []*entry {
	return slices.SortedFunc(maps.Values(c.known), func(a, b *entry) int { return cmp.Compare(a.born, b.born) })
}

// here reports whether the caller is on the thread in Run.
func (c *core) here() bool {
	c.mu.Lock()
	m := c.monitor
	c.mu.Unlock()
	return m != nil && m.s.Internals().Here()
}
