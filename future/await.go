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
		a.waker = t.Waker()
		sub := a.subscription(t.Scheduler())
		sub.waiters.join(&a.waiter)
		sub.arm()
		if !a.resolved() {
			return act.Wait
		}
	}
	a.leave()
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
	a.leave()
	return nil
}
