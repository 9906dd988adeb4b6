package future

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// port is where one scheduler waits for one future. All but the first and the last line of it belongs
// to that scheduler's thread.
//
//	    a waiter                 whoever resolves
//	idle ──────▶ waited ─────────────────▶ told, by a letter to the scheduler's desk
//	  ╰──────────────────────────────────▶ told: nobody waited, so no letter
type port struct {
	state     atomic.Uint32
	armed     bool              // this thread has turned state to waited
	known     bool              // the letter has come, or none will
	waiters   list              // leaves; each takes itself out
	callbacks list              // in order of registration; each takes itself out as its turn comes
	desk      *desk             // as node, written before state is first waited, or p is in core.away
	node      inbox.Node[*port] // the letter
	next      *port             // in core.away; not changed any more once p is there
}

const (
	idle uint32 = iota
	waited
	told
)

// port returns the one of s. Only the thread of s adds that of s, so there is one.
func (c *core) port(s *act.Scheduler) *port {
	d := desks.Get(s)
	if s == c.s {
		if c.home.desk == nil {
			c.home.belong(d)
		}
		return &c.home
	}
	for p := c.away.Load(); p != nil; p = p.next {
		if p.desk == d {
			return p
		}
	}
	p := new(port)
	p.belong(d)
	for {
		p.next = c.away.Load()
		if c.away.CompareAndSwap(p.next, p) {
			return p
		}
	}
}

func (p *port) belong(d *desk) { p.desk, p.node.Of = d, p }

// arm announces that somebody waits here.
func (p *port) arm() {
	if p.armed || p.known {
		return
	}
	p.armed = p.state.CompareAndSwap(idle, waited)
	p.known = !p.armed
}

// tell is called once, by whoever resolves. What was written before arm's swap is visible after this one.
func (p *port) tell() {
	if p.state.Swap(told) == waited {
		p.desk.send(&p.node)
	}
}

// receive opens the letter.
func (p *port) receive() {
	p.known = true
	p.waiters.wake()
	p.callbacks.wake()
}

// inOrder lets callbacks pass when the outcome is known here, one after the other: that a turn comes
// earlier, after an order or by registering late, does not let one overtake.
func (c *core) inOrder(t *act.Task, w *waiter) act.Directive {
	p := c.port(c.s)
	p.arm()
	switch {
	case !p.known:
		w.waker = t.Waker()
		return act.Wait
	case p.callbacks.first != w:
		return act.Yield
	}
	w.leave()
	return act.Done
}

// waiter is a place in a list, for who wants to be woken; it is a field of its owner.
type waiter struct {
	in         *list
	prev, next *waiter
	waker      act.Waker // the latest
}

// list is a queue of waiters that any of them may leave.
type list struct{ first, last *waiter }

// join appends w, unless it is there.
func (l *list) join(w *waiter) {
	if w.in != nil {
		return
	}
	w.in, w.prev = l, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

// leave takes w out of its list, if it is in one.
func (w *waiter) leave() {
	if w.in == nil {
		return
	}
	if w.prev == nil {
		w.in.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		w.in.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	*w = waiter{}
}

func (l *list) wake() {
	for w := l.first; w != nil; w = w.next {
		w.waker.Wake()
	}
}
