package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
)

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
	w.early = c.callbacks.First != &w.node
	c.mu.Unlock()
	if w.early {
		return act.Wait
	}
	c.leave(w)
	return act.Done
}

// waiter is a task that waits; it is a field of its action.
type waiter struct {
	bell  act.AtomicWaker
	early bool // a callback that has had a turn before those in front of it
	node  chain.Node[*waiter]
}

// join appends w to l, unless it is in a list.
func (c *core) join(l *chain.List[*waiter], w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.node.Of = w
	l.Append(&w.node)
}

// leave removes w from its list, if it is in one.
func (c *core) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.node.Remove()
	if next := c.callbacks.First; next != nil && next.Of.early {
		next.Of.bell.Wake()
	}
}
