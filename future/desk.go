package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// desks has the one of each scheduler that has ever waited for a future.
var desks = act.NewLocal(func(s *act.Scheduler) *desk {
	d := &desk{}
	s.Attach(d)
	return d
})

// desk is the monitor of futures: it opens, on its scheduler's thread, the letters that arrive from
// wherever futures are resolved. It runs none of its users' code. As a monitor it holds nobody, and an
// order leaves it at its post for those who still wait.
//
// A letter goes onto the stack before the bell is rung, and the desk sets the bell before it takes the
// letters: one that it has not seen rings the bell that is set.
type desk struct {
	letters inbox.Stack[*port]
	bell    act.Bell
}

func (d *desk) Act(t *act.Task) act.Directive {
	d.bell.Set(t.Waker())
	for n := d.letters.TakeAll(); n != nil; {
		next := n.Next()
		n.Of.receive()
		n = next
	}
	return act.Wait
}

// send delivers n. Any goroutine; after the scheduler's Close there is nobody left to tell.
func (d *desk) send(n *inbox.Node[*port]) {
	if pushed, _ := d.letters.Push(n); pushed {
		d.bell.Ring()
	}
}

// Stop does nothing: those who wait may go on waiting.
func (d *desk) Stop(*act.Task, shutdown.Order) {}

// Close refuses letters from then on.
func (d *desk) Close() error {
	d.letters.Close()
	return nil
}
