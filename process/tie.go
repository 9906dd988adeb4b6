package process

// tie is something that ends with a process, or wants to know of the end: an entry in its list.
type tie struct {
	of         *core // set before anybody else can have x
	prev, next *tie
	in         bool // in the list; under the lock of of
	ender      ender
}

// ender hears of the end of the process to which it was tied, once, on any thread.
type ender interface {
	ended(r *reactor, n Notice)
}

// ties are those of one process, in the order in which they were made.
type ties struct{ first, last *tie }

// add ties x to the process that it is of. It reports false if that has ended.
func (x *tie) add() bool {
	c := x.of
	w := c.lock()
	defer c.unlock(w)
	if w&states == dead {
		return false
	}
	list := &c.more().ties
	x.in = true
	if x.prev = list.last; x.prev != nil {
		x.prev.next = x
	} else {
		list.first = x
	}
	list.last = x
	return true
}

// remove undoes add, and reports whether that was still to be done: x then never hears of an end.
func (x *tie) remove() bool {
	c := x.of
	if c == nil {
		return false
	}
	w := c.lock()
	defer c.unlock(w)
	if !x.in {
		return false
	}
	list := &c.rare.ties
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		list.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		list.last = x.prev
	}
	x.prev, x.next, x.in = nil, nil, false
	return true
}

// takeTies empties the list, under the lock.
func (c *core) takeTies() *tie {
	first := c.rare.ties.first
	c.rare.ties = ties{}
	for x := first; x != nil; x = x.next {
		x.in = false
	}
	return first
}

// Notice tells of the end of a process.
type Notice struct {
	// Of is who has ended: a Ref.
	Of AnyRef
	// Reason is why.
	Reason Reason
	// Err is nil for Normal, Stopped, and Killed; else what the process has failed with, an *act.Panic, or that of
	// the process which it was linked to.
	Err error
}

// watch is a registration for a Notice.
type watch struct {
	at, own tie
	notify  func(*reactor, Notice)
}

// watched and watcher are the two ends of a watch.
type (
	watched watch
	watcher watch
)

func (x *watched) ended(r *reactor, n Notice) {
	x.own.remove()
	x.notify(r, n)
}

func (x *watcher) ended(*reactor, Notice) { x.at.remove() }

// newWatch registers notify with of, until own ends; nil: for good.
func newWatch(of, own *core, r *reactor, notify func(*reactor, Notice)) *watch {
	x := &watch{notify: notify}
	x.at.of, x.own.of = of, own
	x.at.ender, x.own.ender = (*watched)(x), (*watcher)(x)
	if own != nil {
		x.own.add()
	}
	switch {
	case of == nil:
		x.own.remove()
		notify(r, of.notice())
	case !x.at.add():
		x.own.remove()
		notify(r, of.notice())
	}
	return x
}

// Cancel implements Operation.
func (x *watch) Cancel() bool {
	if !x.at.remove() {
		return false
	}
	x.own.remove()
	return true
}

// Watch sends p a message when another process ends, or at once if that has ended already. as makes the message of the
// Notice; it is called on any thread and must do nothing else. Each call of Watch sends one message, to which the bound
// of the mailbox does not apply. The zero Ref has ended as Stopped.
func Watch[M any](p *Self[M], of AnyRef, as func(Notice) M) Operation {
	if of == nil {
		panic("process: Watch without a process: the zero Ref is nobody")
	}
	return newWatch(of.process(), &p.core, p.on, func(r *reactor, n Notice) { p.deliver(r, as(n)) })
}

// link is between two processes: see Link.
type link struct {
	a, b   tie
	always bool
	over   word
}

type (
	endA link
	endB link
)

func (x *endA) ended(r *reactor, n Notice) { (*link)(x).carry(r, &x.b, n) }
func (x *endB) ended(r *reactor, n Notice) { (*link)(x).carry(r, &x.a, n) }

// carry carries an end on to the other side.
func (x *link) carry(r *reactor, other *tie, n Notice) {
	x.over.Store(1)
	if other.remove() {
		x.pass(r, other.of, n)
	}
}

func (x *link) pass(r *reactor, c *core, n Notice) {
	if c != nil && (x.always || n.Reason.abnormal()) {
		c.kill(r, Linked, n.linked())
	}
}

// Link links two processes: the end of either ends the other, with the Reason Linked. Unless always is set, an end that
// is Normal or Stopped does not count. If one process has ended already, the other ends at once as it would have. Several
// links between the same two processes act as one, but each has to be cancelled. Any goroutine may call Link.
func Link(a, b AnyRef, always bool) Operation {
	if a == nil || b == nil {
		panic("process: Link without a process: the zero Ref is nobody")
	}
	x := &link{always: always}
	x.a.ender, x.b.ender = (*endA)(x), (*endB)(x)
	one, two := a.process(), b.process()
	x.a.of, x.b.of = one, two
	switch {
	case one == two:
	case one == nil || !x.a.add():
		x.pass(nil, two, one.notice())
	case two == nil || !x.b.add():
		if x.a.remove() {
			x.pass(nil, one, two.notice())
		}
	case x.over.Load() != 0 && x.b.remove(): // a has ended between, and has not seen b
		x.pass(nil, two, one.notice())
	}
	return x
}

// Cancel implements Operation.
func (x *link) Cancel() bool {
	removed := x.a.remove()
	return x.b.remove() || removed
}
