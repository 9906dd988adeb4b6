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
	Of Party
	// Reason is why.
	Reason Reason
	// Err is nil for Normal, Stopped, and Killed; else what the process has failed with, an *act.Panic, or that of
	// the process which it was linked to.
	Err error
}

// Watch is a registration for a Notice.
type Watch struct {
	at, own tie
	notify  func(*reactor, Notice)
}

// watched and watcher are the two ends of a Watch.
type (
	watched Watch
	watcher Watch
)

func (x *watched) ended(r *reactor, n Notice) {
	x.own.remove()
	x.notify(r, n)
}

func (x *watcher) ended(*reactor, Notice) { x.at.remove() }

// newWatch registers notify with of, until own ends; nil: for good.
func newWatch(of, own *core, r *reactor, notify func(*reactor, Notice)) *Watch {
	x := &Watch{notify: notify}
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

// Stop takes the registration back, and reports whether that was still to be done: then no Notice comes. Any
// goroutine.
func (x *Watch) Stop() bool {
	if !x.at.remove() {
		return false
	}
	x.own.remove()
	return true
}

// Monitor has p told of the end of another process, by the message that as makes of it, at once if that has ended
// already, or is nobody: that is Stopped. Each call makes one Notice, which no bound refuses. as is called on any thread,
// and only makes the message.
func Monitor[M any](p *Self[M], of Party, as func(Notice) M) *Watch {
	if of == nil {
		panic("process: Monitor of no Party: nobody is the zero Ref")
	}
	return newWatch(of.process(), &p.core, p.on, func(r *reactor, n Notice) { p.deliver(r, as(n)) })
}

// Strictness says which ends a link carries on.
type Strictness uint8

// The ends that a link carries on.
const (
	Abnormal Strictness = iota // all but Normal and Stopped
	Any
)

// Bond is a link between two processes: the end of either ends the other, as Linked. Several between the same two are
// no more than one, but each has to be taken back.
type Bond struct {
	a, b tie
	rule Strictness
	over word
}

type (
	bondOfA Bond
	bondOfB Bond
)

func (x *bondOfA) ended(r *reactor, n Notice) { (*Bond)(x).carry(r, &x.b, n) }
func (x *bondOfB) ended(r *reactor, n Notice) { (*Bond)(x).carry(r, &x.a, n) }

// carry carries an end on to the other side.
func (x *Bond) carry(r *reactor, other *tie, n Notice) {
	x.over.Store(1)
	if other.remove() {
		x.pass(r, other.of, n)
	}
}

func (x *Bond) pass(r *reactor, c *core, n Notice) {
	if c != nil && (x.rule == Any || n.Reason.Abnormal()) {
		c.kill(r, Linked, n.linked())
	}
}

// Link links two processes, by the Strictness that says which ends count. If one has ended already the other ends as
// it would have. Any goroutine.
func Link(a, b Party, rule Strictness) *Bond {
	if a == nil || b == nil {
		panic("process: Link of no Party: nobody is the zero Ref")
	}
	x := &Bond{rule: rule}
	x.a.ender, x.b.ender = (*bondOfA)(x), (*bondOfB)(x)
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

// Unlink takes the link back, and reports whether that was still to be done. Any goroutine.
func (x *Bond) Unlink() bool {
	removed := x.a.remove()
	return x.b.remove() || removed
}
