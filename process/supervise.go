package process

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Supervision configures a supervisor: see [Supervise].
type Supervision struct {
	Name     string        // for logs, notices and the pages of package inspect, as the Name of Options is
	Parent   Supervisor    // starts this supervisor again, with its children, when it has given up; the zero Supervisor means none
	Rest     bool          // when a child has failed, the children spawned after it are ended, and start again after it, in order
	Restarts int           // failures that are borne within the time Within; the next one ends the supervisor. 0 means 5, -1 no bound
	Within   time.Duration // 0 means one minute
	// Wait is the time from the first failure of a child to its restart. It doubles with each further failure, up to Within.
	// After a child has run for the time Within, its next failure counts as the first. 0 means 100 ms.
	Wait time.Duration
}

// Supervisor is the address of a process that starts others again when they fail: see [Supervise]. It is used as any Ref,
// and has messages of its children only.
type Supervisor = Ref[report]

// Supervise starts a supervisor, whose children are spawned by [SpawnChild]. A child that fails, panics or is killed, also by
// a link, goes on as the same process: its Ref and its mailbox stay, and a new [Action] replaces the failed one. A child that
// ends as Normal has ended.
//
//   - Messages that were still in the mailbox, and those sent before the restart, are for the new Action. They count for the
//     bound of the mailbox, so senders may have to wait.
//   - Messages that the failed Action has received are lost. All questions that were asked before the failure fail with
//     ErrDead: if such a message is still in the mailbox, its Reply is no longer open.
//   - Timers, watches of others and other operations of the failed Action end. What it owned is closed, and then the Action
//     itself, if it is an io.Closer.
//   - A [Watch] of the child, its links and [Ended] wait for its end.
//
// A supervisor ends, for any reason, after its children, which end as Stopped. If it gives up it ends as Failed, with an error
// that names the child and wraps that of the child. With a Parent, a supervisor that gives up or is killed is a child that
// has failed: its own children wait for its restart. Children are told to end last first, and each starts after those before it
// have started. Each failure and each end takes time in proportion to the number of children. The Sender is as for [Spawn].
func Supervise(from Sender, s Supervision) Supervisor {
	s.Restarts, s.Within, s.Wait = cmp.Or(s.Restarts, 5), cmp.Or(s.Within, time.Minute), cmp.Or(s.Wait, 100*time.Millisecond)
	x := &supervisor{Supervision: s}
	sys, _ := systemOf(from)
	return Supervisor{adopt(sys, s.Parent, &x.child, x, Options{Name: s.Name, Limit: -1})}
}

// SpawnChild spawns a process that its supervisor starts again when it fails. make returns its [Action]. It is called in the
// first turn of the process, and in the first turn after each failure, and must return a new Action each time. If the
// supervisor has ended, the child ends at once, as Stopped. Any goroutine may call SpawnChild.
func SpawnChild[M any](of Supervisor, make func() Action[M], o Options) Ref[M] {
	if of.p == nil || make == nil {
		panic("process: a child needs a supervisor, and a function that makes its action")
	}
	x := &incarnations[M]{make: make}
	return Ref[M]{adopt(of.p.sys, of, &x.child, x, o)}
}

// child is a process that may outlast what ends others: a child, or a supervisor.
type child struct {
	core   *core
	parent Supervisor
	starts int // under the lock

	// For the turns of the parent.
	state int
	since time.Duration // up: when it was started; down: it must not start before
	wait  time.Duration // from its last failure to the restart; 0: it had none
}

// The states of a child.
const (
	down     = iota // it is parked, and has no Action
	stopping        // it was told to end
	starting        // it has not said yet that it is up
	up
)

// report is a message to a supervisor, which calls it in its turn.
type report func(s *supervisor, p *Self[report])

// recalled is why a child is parked that has not failed.
const recalled = Stopped + 1

// adopt makes a process: the child of a supervisor is parked until it is started. One registry has them all, each supervisor
// before its children: endAll begins with the last one.
func adopt[M any](sys *System, of Supervisor, x *child, a Action[M], o Options) *Self[M] {
	p := newSelf(sys, a, o)
	c := &p.core
	x.core, x.parent = c, of
	c.more().child = x
	c.lasting, c.home = true, 1
	c.word.Store(sleeping | parked)
	sys.number(c, nil)
	sys.registries[0].add(c)
	if of.p == nil {
		x.start(nil)
	} else {
		(&watch{isLink: true, notify: func(r *runner, _ Notice) { x.stop(r, Stopped) }}).begin(of, c, nil)
		left := func(s *supervisor, _ *Self[report]) {
			s.children = slices.DeleteFunc(s.children, func(y *child) bool { return y == x })
		}
		(&watch{notify: func(r *runner, _ Notice) { of.p.deliver(r, left) }}).begin(p.Ref(), nil, nil)
		of.p.deliver(nil, func(s *supervisor, _ *Self[report]) { s.children = append(s.children, x) })
	}
	if sys.closed.Load() != 0 {
		sys.endLate(c)
	}
	return p
}

// start gives x a turn, in which its Action is made.
func (x *child) start(r *runner) {
	w := x.core.lock()
	x.starts++
	x.core.activate(w&^parked|orderPending, r) // it is told of the order, if there is one
}

// begins tells the parent that x is up.
func (x *child) begins(r *runner) {
	x.parent.p.deliver(r, func(*supervisor, *Self[report]) {
		if x.state == starting {
			x.state = up
		}
	})
}

// stop ends x before its next turn: as Stopped, or recalled until it is started again.
func (x *child) stop(r *runner, why Reason) {
	w := x.core.lock()
	if w&states != dead && (why == Stopped || w&killed == 0) {
		x.core.why = why
	}
	x.core.activate(w|killed, r)
}

// outlasts reports whether x goes on after what ends other processes: parked, or until its own children have ended.
func (x *child) outlasts(r *runner, why Reason) bool {
	c, atOnce := x.core, why == Stopped
	s, _ := c.body.action().(*supervisor)
	w := c.lock()
	if why == 0 {
		why = c.why
	}
	if atOnce || w&states == dead || why == Normal || why == Stopped && s == nil {
		c.unlock(w)
		return false
	}
	operations := c.rare.takeOperations()
	c.unlock(w&^killed | parked)
	c.over = why
	n := c.notice()
	c.over, c.lastOrder, r.current = 0, 0, nil
	for _, o := range operations {
		r.protect(c, func() { o.ended(r, n) })
	}
	switch {
	case s != nil && s.leaves(r, why):
		c.unlock(c.lock() &^ parked)
	case why == Stopped || x.parent.p == nil:
		return false
	default:
		r.closeOwned(c)
		r.close(c, c.body.action().(io.Closer))
		if w&parked == 0 { // else there was nothing to kill
			x.parent.p.deliver(r, func(s *supervisor, p *Self[report]) { s.lost(p, x, n) })
		}
	}
	r.suspend(c, act.Yield)
	return true
}

// takeOperations takes out the observers that belong to an Action, and not to the process. Under the lock.
func (x *rare) takeOperations() (all []endObserver) {
	for e := x.observers.TakeAll(); e != nil; {
		next := e.Next
		of, isOf := e.Of.(*watched)
		by, isBy := e.Of.(*watcher)
		if isOf && !of.each || isBy && by.isLink {
			x.observers.Append(e)
		} else {
			all = append(all, e.Of)
		}
		e = next
	}
	return all
}

// incarnations is the Action of a child: one Action after the other.
type incarnations[M any] struct {
	child
	make func() Action[M]
	now  Action[M] // nil: none
}

func (x *incarnations[M]) Act(p *Self[M]) act.Directive { return x.begun(p.on).Act(p) }

func (x *incarnations[M]) Stop(p *Self[M], o shutdown.Order) {
	if s, ok := x.begun(p.on).(Stopper[M]); ok {
		s.Stop(p, o)
	}
}

func (x *incarnations[M]) begun(r *runner) Action[M] {
	if x.now == nil {
		x.now = x.make()
		x.begins(r)
	}
	return x.now
}

// Close ends an incarnation.
func (x *incarnations[M]) Close() error {
	a, ok := x.now.(io.Closer)
	if x.now = nil; !ok {
		return nil
	}
	return a.Close()
}

func (x *incarnations[M]) kind() string { return act.Name(x.make) }

// supervisor is the Action of a Supervisor.
type supervisor struct {
	Supervision
	child
	children []*child
	failures []time.Duration // when
	leaving  Reason          // why it ends when its children have; 0: it does not
	told     bool            // its parent: that all have started
}

func (s *supervisor) Act(p *Self[report]) act.Directive {
	for hear, ok := p.Receive(); ok; hear, ok = p.Receive() {
		hear(s, p)
	}
	if p.over == 0 {
		s.advance(p)
	}
	return act.Wait
}

// Stop implements Stopper: children may fail during a shutdown too.
func (s *supervisor) Stop(*Self[report], shutdown.Order) {}

// lost says when x is to start again, or gives up.
func (s *supervisor) lost(p *Self[report], x *child, n Notice) {
	failed := x.state >= starting
	if x.state = down; !failed {
		return
	}
	now := p.on.s.Clock().Monotonic()
	s.failures = append(slices.DeleteFunc(s.failures, func(at time.Duration) bool { return now-at >= s.Within }), now)
	switch {
	case s.Restarts >= 0 && len(s.failures) > s.Restarts:
		p.Fail(fmt.Errorf("process: %v has failed too often: failure %d within %v: %w",
			x.core, len(s.failures), s.Within, cmp.Or(n.Err, n.linked())))
		return
	case x.wait == 0 || now-x.since >= s.Within:
		x.wait = s.Wait
	default:
		x.wait = min(2*x.wait, s.Within)
	}
	x.since = now + x.wait
	p.After(x.wait, func(*supervisor, *Self[report]) {})
	p.on.s.Logger().Warn("a process has failed, and will be started again", zap.Stringer("process", x.core),
		zap.Stringer("reason", n.Reason), zap.Error(n.Err), zap.Duration("after", x.wait))
}

// advance ends and starts children.
func (s *supervisor) advance(p *Self[report]) {
	if s.leaving != 0 {
		if !s.leaves(p.on, s.leaving) {
			p.over = s.leaving
		}
		return
	}
	i := slices.IndexFunc(s.children, func(x *child) bool { return x.state < starting })
	if s.Rest && i >= 0 && s.stopFrom(p.on, i, recalled) {
		return
	}
	now := p.on.s.Clock().Monotonic()
	for _, x := range s.children {
		late := x.state == down && now >= x.since
		if late {
			x.state, x.since = starting, now
			x.start(p.on)
		}
		if late || x.state == starting || x.state == down && s.Rest {
			return
		}
	}
	if s.parent.p != nil && !s.told {
		s.told = true
		s.begins(p.on)
	}
}

// stopFrom ends the children from i on, and reports whether some have not ended yet.
func (s *supervisor) stopFrom(r *runner, i int, why Reason) (some bool) {
	for _, x := range slices.Backward(s.children[i:]) {
		if x.state >= starting || x.state == down && why == Stopped {
			x.state = stopping
			x.stop(r, why)
		}
		some = some || x.state == stopping
	}
	return some
}

// leaves ends all children, and reports whether s has to wait for that: they end with it, or wait for its restart.
func (s *supervisor) leaves(r *runner, why Reason) bool {
	s.leaving = cmp.Or(s.leaving, why)
	how := recalled
	if s.parent.p == nil || s.leaving == Stopped {
		how = Stopped
	}
	return s.stopFrom(r, 0, how)
}

// Close ends an incarnation. Its children are parked.
func (s *supervisor) Close() error {
	s.failures, s.leaving, s.told = nil, 0, false
	for _, x := range s.children {
		x.since, x.wait = 0, 0
	}
	return nil
}
