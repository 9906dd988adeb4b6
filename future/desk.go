package future

import (
	"sync"
	"sync/atomic"

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
// A letter goes onto the stack first, then whoever takes the bell rings it. The desk hangs up a fresh
// bell first, then takes the letters. So a letter that the desk has not seen finds a bell, or another's
// hand on it that is going to ring; and no two goroutines ever touch one bell at a time.
type desk struct {
	letters inbox.Stack[*port]
	bell    atomic.Pointer[bell] // nil: it has been taken
}

// bell is the right to wake the desk. It is good for one turn, so that there is a new right in each;
// the boxes go round, to allocate none.
type bell struct{ act.Remote }

var bells = sync.Pool{New: func() any { return new(bell) }}

func (d *desk) Act(t *act.Task) act.Directive {
	b := d.bell.Swap(nil) // that of an earlier turn, if it was not for a letter that there is this one
	if b == nil {
		b = bells.Get().(*bell)
	}
	b.Remote = t.Waker().Remote()
	d.bell.Store(b)
	for n := d.letters.TakeAll(); n != nil; {
		next := n.Next()
		n.Of.receive()
		n = next
	}
	return act.Wait
}

// send delivers n. Any goroutine; after the scheduler's Close there is nobody left to tell.
func (d *desk) send(n *inbox.Node[*port]) {
	if pushed, _ := d.letters.Push(n); !pushed {
		return
	}
	if b := d.bell.Swap(nil); b != nil {
		b.Wake()
		bells.Put(b)
	}
}

// Stop does nothing: those who wait may go on waiting.
func (d *desk) Stop(*act.Task, shutdown.Order) {}

// Close refuses letters from then on.
func (d *desk) Close() error {
	d.letters.Close()
	return nil
}
