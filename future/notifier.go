package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// notifiers holds the notifier of each scheduler that has ever waited for a future.
var notifiers = act.NewLocal(func(s *act.Scheduler) *notifier {
	n := &notifier{}
	s.Attach(n)
	return n
})

// notifier is the monitor of futures on one scheduler. Futures are resolved on any goroutine; the notifier receives the
// notifications on its scheduler's thread and wakes the waiters. It runs no user code. As a monitor it does not keep
// Run from returning, and it goes on during shutdown, for tasks that still wait.
//
// A notification is pushed before the bell is rung, and the bell is set before notifications are taken. So a
// notification that was not taken rings a bell that is set.
type notifier struct {
	arrived inbox.Stack[*subscription]
	bell    act.AtomicWaker
}

func (n *notifier) Act(t *act.Task) act.Directive {
	n.bell.Set(t.Waker())
	for node := n.arrived.TakeAll(); node != nil; {
		next := node.Next()
		node.Of.wake()
		node = next
	}
	return act.Wait
}

// notify delivers a notification. Any goroutine. After the scheduler's Close it does nothing.
func (n *notifier) notify(sub *subscription) {
	if n.arrived.Push(&sub.node) {
		n.bell.Wake()
	}
}

func (n *notifier) Describe(d *act.Description) { d.WaitsFor("a future that is resolved") }

// Stop does nothing: tasks may go on waiting.
func (n *notifier) Stop(*act.Task, shutdown.Order) {}

// Close refuses further notifications.
func (n *notifier) Close() error {
	n.arrived.Close()
	return nil
}
