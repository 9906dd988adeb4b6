package future

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// subscription is one scheduler's interest in one future. All fields but state, notifier, node and next belong to
// that scheduler's thread.
//
//	    a waiter arms it         the future is resolved
//	idle ───────────────▶ armed ───────────────────────▶ notified, through the scheduler's notifier
//	  ╰────────────────────────────────────────────────▶ notified: nobody waited, so nothing is sent
type subscription struct {
	state     atomic.Uint32
	pending   bool                      // this thread has set state to armed
	known     bool                      // the outcome is known here: the notification has come, or none will
	waiters   list                      // leaf actions; each leaves by itself
	callbacks list                      // in order of registration; each leaves when its turn comes
	notifier  *notifier                 // written before state is first armed, or before the subscription is in core.remote
	node      inbox.Node[*subscription] // in the notifier's stack
	next      *subscription             // in core.remote; constant once it is there
}

const (
	idle uint32 = iota
	armed
	notified
)

// subscription returns the subscription of s. Only the thread of s adds it, so there is one.
func (c *core) subscription(s *act.Scheduler) *subscription {
	n := notifiers.Get(s)
	if s == c.s {
		if c.local.notifier == nil {
			c.local.init(n)
		}
		return &c.local
	}
	for sub := c.remote.Load(); sub != nil; sub = sub.next {
		if sub.notifier == n {
			return sub
		}
	}
	sub := new(subscription)
	sub.init(n)
	for {
		sub.next = c.remote.Load()
		if c.remote.CompareAndSwap(sub.next, sub) {
			return sub
		}
	}
}

func (sub *subscription) init(n *notifier) { sub.notifier, sub.node.Of = n, sub }

// arm announces that something waits here.
func (sub *subscription) arm() {
	if sub.pending || sub.known {
		return
	}
	sub.pending = sub.state.CompareAndSwap(idle, armed)
	sub.known = !sub.pending
}

// notify is called once, when the future is resolved. Writes before the swap in arm are visible after the swap here.
func (sub *subscription) notify() {
	if sub.state.Swap(notified) == armed {
		sub.notifier.notify(sub)
	}
}

// wake is called on the scheduler's thread when the notification has arrived.
func (sub *subscription) wake() {
	sub.known = true
	sub.waiters.wake()
	sub.callbacks.wake()
}

// inOrder is Done when the outcome is known on the home scheduler and w is the first callback that has not run. A
// callback that has a turn earlier, because of a shutdown or because it was registered late, does not overtake.
func (c *core) inOrder(t *act.Task, w *waiter) act.Directive {
	sub := c.subscription(c.s)
	sub.arm()
	switch {
	case !sub.known:
		w.waker = t.Waker()
		return act.Wait
	case sub.callbacks.first != w:
		return act.Yield
	}
	w.leave()
	return act.Done
}

// waiter is an element of a list; it is a field of its owner.
type waiter struct {
	in         *list
	prev, next *waiter
	waker      act.Waker // of the latest turn
}

// list is a queue of waiters. Any of them may leave it.
type list struct{ first, last *waiter }

// join appends w, unless it is in the list.
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

// leave removes w from its list, if it is in one.
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
