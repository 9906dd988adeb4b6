package process

import (
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/chain"
)

// endObserver is told of the end of a process.
type endObserver interface {
	// ended is called once, on any thread.
	ended(r *runner, n Notice)
}

// observation is the entry of an observer with a process. Operations that end with a process, such as timers, observe
// it too.
type observation struct {
	of   *core // set before other threads know the observation; nil: nobody
	node chain.Node[endObserver]
}

func observe(of *core, by endObserver) observation {
	return observation{of, chain.Node[endObserver]{Of: by}}
}

// add registers the observer. It reports false if the process has ended. Observers are told in the order of their adds,
// links last.
func (x *observation) add() bool {
	c := x.of
	w := c.lock()
	defer c.unlock(w)
	if w&states == dead {
		return false
	}
	c.more().observers.Append(&x.node)
	return true
}

// remove undoes add, and reports whether the observer was still registered. It is then never told.
func (x *observation) remove() bool {
	c := x.of
	if c == nil {
		return false
	}
	w := c.lock()
	defer c.unlock(w)
	return x.node.Remove()
}

// Operation is something that was begun for a process: a timer, an action, a function that is offloaded, a Watch, or a
// Link. It ends with the process.
type Operation interface {
	// Cancel ends the operation, and reports whether it was still under way: then its message never comes. Any
	// goroutine may call it, except for a timer: see Self.After.
	Cancel() bool
}

// Watch sends p a message when another process ends, or at once if it has ended already; Cancel of the Operation stops
// that. as makes the message of the Notice; it is called on any thread, and must do nothing else. Each call of Watch
// sends one message, to which the bound of the mailbox does not apply. The zero Ref has ended as Stopped. For the order
// of several Notices see [Link].
func Watch[M any](p *Self[M], of AnyRef, as func(Notice) M) Operation {
	if of == nil {
		panic("process: Watch without a process: the zero Ref is nobody")
	}
	x := &watch{notify: func(r *runner, n Notice) { p.deliver(r, as(n)) }}
	return x.begin(of, &p.core, p.on)
}

// watch calls notify at the end of one process, unless another one ends before.
type watch struct {
	of, by observation
	notify func(*runner, Notice)
	isLink bool // the others are notified before
	each   bool // it is also notified of a failure after which the process goes on
}

type (
	watched watch
	watcher watch
)

func (x *watched) ended(r *runner, n Notice) {
	x.by.remove()
	x.notify(r, n)
}

func (x *watcher) ended(*runner, Notice) { x.of.remove() }

// begin watches of until by ends; by may be nil.
func (x *watch) begin(of AnyRef, by *core, r *runner) *watch {
	c := of.process()
	x.of, x.by = observe(c, (*watched)(x)), observe(by, (*watcher)(x))
	switch {
	case by != nil && !x.by.add(): // there is nothing to notify
	case c == nil:
		x.by.remove()
		x.notify(r, Notice{Of: of, Reason: Stopped})
	case !x.of.add():
		x.by.remove()
		x.notify(r, c.notice())
	}
	return x
}

// Cancel implements Operation.
func (x *watch) Cancel() bool {
	if !x.of.remove() {
		return false
	}
	x.by.remove()
	return true
}

// Link links two processes: the end of either ends the other, with the Reason Linked. Unless always is set, an end that
// is Normal or Stopped does not count. If one process has ended already, the other ends at once, under the same rule.
// Several links between the same two processes act as one, but each has to be cancelled. Any goroutine may call Link.
//
// The Notices of a process, and the future of [Ended], come before its links end others. So a process that watches several
// linked ones hears first of the one that was not ended by a link, and of each other one after the one that has ended it.
func Link(a, b AnyRef, always bool) Operation {
	if a == nil || b == nil {
		panic("process: Link without a process: the zero Ref is nobody")
	}
	one, two := a.process(), b.process()
	if one == two {
		return &link{}
	}
	if two == nil {
		a, b, one, two = b, a, two, one
	}
	direction := func(of AnyRef, by *core) *watch {
		x := &watch{isLink: true, notify: func(r *runner, n Notice) {
			if by != nil && (always || n.Reason != Normal && n.Reason != Stopped) {
				by.kill(r, Linked, n.linked())
			}
		}}
		return x.begin(of, by, nil)
	}
	x := &link{direction(a, two)}
	if one != nil {
		x[1] = direction(b, one)
	}
	return x
}

// link watches two processes. Both watches end with the first of them.
type link [2]*watch

// Cancel implements Operation.
func (x *link) Cancel() bool {
	if x[1] == nil {
		return false
	}
	both := x[0].Cancel()
	return x[1].Cancel() && both // one of them may be about to carry the end
}

// Ended returns a future that is resolved when the process has ended, or at once if it has already. While the process
// is alive, all calls return the same future. That of the zero Ref is resolved and has no scheduler, so it takes no
// callbacks. On shutdown a process that sleeps ends only after all tasks; so a task that awaits the future, and is not
// a Stopper, waits as long as the shutdown policy lets it. Any goroutine may call Ended.
func Ended(of AnyRef) *future.Future[Notice] {
	if of == nil {
		panic("process: Ended without a process: the zero Ref is nobody")
	}
	c := of.process()
	if c == nil {
		f := &future.Future[Notice]{}
		_ = f.Resolve(Notice{Of: of, Reason: Stopped})
		return f
	}
	f, isNew := c.endFuture()
	if isNew {
		(&watch{notify: func(_ *runner, n Notice) { _ = f.Resolve(n) }}).begin(of, nil, nil)
	}
	return f
}

func (c *core) endFuture() (f *future.Future[Notice], isNew bool) {
	w := c.lock()
	defer c.unlock(w)
	if c.rare != nil && c.rare.end != nil {
		return c.rare.end, false
	}
	f = future.New[Notice](c.sys.group.Schedulers()[0])
	if w&states != dead {
		c.more().end = f
	}
	return f, true
}
