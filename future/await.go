package future

import "github.com/daimon-go/daimon/act"

// Await returns an action that waits until f is resolved. It is then Done, or fails with f's error; read the value with
// [Future.Value]. The action may be made on any goroutine and used by one task of any scheduler; any number of actions
// may wait for one future. Closing the action ends the wait, as act.First and listener.Within do.
//
// During shutdown the action goes on waiting: f may still be resolved within the bounds of the policy.
func (f *Future[T]) Await() act.Action { return &await{core: &f.core} }

type await struct {
	*core
	waiter
}

func (a *await) Act(t *act.Task) act.Directive {
	if !a.resolved() {
		a.bell.Set(t.Waker())
		a.join(&a.waiters, &a.waiter)
		if !a.resolved() {
			return act.Wait
		}
	}
	a.leave(&a.waiter)
	if a.failed != nil {
		return t.Fail(a.failed.see())
	}
	return act.Done
}

func (a *await) Describe(d *act.Description) {
	if a.core != nil && !a.resolved() {
		d.WaitsFor("a future")
	}
}

// Close ends the wait.
func (a *await) Close() error {
	if a.core != nil {
		a.leave(&a.waiter)
	}
	return nil
}

// inOrder is Done when the future is resolved and w is the first callback that has not run. A callback that has a turn
// earlier, because of a shutdown or because it was registered late, does not overtake.
func (c *core) inOrder(t *act.Task, w *waiter) act.Directive {
	w.bell.Set(t.Waker())
	if !c.resolved() {
		return act.Wait
	}
	c.mu.Lock()
	w.early = c.callbacks.first != w
	c.mu.Unlock()
	if w.early {
		return act.Wait
	}
	c.leave(w)
	return act.Done
}

// waiter is an element of a list; it is a field of its owner.
type waiter struct {
	bell       act.AtomicWaker
	early      bool // a callback that has had a turn before those in front of it
	in         *list
	prev, next *waiter
}

// list is a queue of waiters, under the lock of its future. Any of them may leave it.
type list struct{ first, last *waiter }

// join appends w to l, unless it is in a list.
func (c *core) join(l *list, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
func (c *core) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	if next := w.in.first; next != nil && next.early {
		next.bell.Wake()
	}
	w.in, w.prev, w.next = nil, nil, nil
}
