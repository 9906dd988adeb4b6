package future

import "github.com/daimon-go/daimon/act"

// Await returns a leaf that waits until f is resolved, and then is Done, or Failed with f's failure. It
// is for one task, on any scheduler; several may wait for f. It may be made on any goroutine. Closing it
// gives up waiting; First and Within do that with their losers.
//
// On an order it goes on waiting: within the order's bounds somebody may still resolve f.
func (f *Future[T]) Await() act.Action { return &await{core: &f.core} }

type await struct {
	*core
	waiter
}

func (a *await) Act(t *act.Task) act.Directive {
	if !a.resolved() {
		a.waker = t.Waker()
		p := a.port(t.Scheduler())
		p.waiters.join(&a.waiter)
		p.arm()
		if !a.resolved() {
			return act.Wait
		}
	}
	a.leave()
	if a.failed != nil {
		return t.Fail(a.failed.look())
	}
	return act.Done
}

// Close gives up waiting.
func (a *await) Close() error {
	a.leave()
	return nil
}
