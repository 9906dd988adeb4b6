package process

import (
	"math"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// After sends m to the process itself after d, never earlier. The bound of the mailbox does not apply. After reads the
// clock. The message does not come if the process ends before, or if the Operation is cancelled, which only the turns of
// the process may do.
func (p *Self[M]) After(d time.Duration, m M) Operation {
	x := &timer{at: p.on, fire: func(r *runner) { p.deliver(r, m) }}
	x.node.Of, x.by = x, observe(&p.core, x)
	p.sys.pending.Add(1)
	x.by.add()
	now := x.at.s.Clock().Monotonic()
	x.at.s.CallAt(&x.timer, now+min(d, math.MaxInt64-now), x)
	return x
}

// timer belongs to the runner on which its process was when it was set. The process may be elsewhere when it is due, or
// when it is stopped.
type timer struct {
	by    observation // the end of the process stops it
	at    *runner
	timer act.Timer
	over  word // 1: due, or stopped
	fire  func(r *runner)
	node  inbox.Node[*timer]
}

// Expire is called by the scheduler.
func (x *timer) Expire() {
	if x.finish() {
		defer x.at.sys.done()
		x.by.remove()
		x.fire(x.at)
	}
}

// Cancel implements Operation. It is for the turns of the process.
func (x *timer) Cancel() bool { return x.stop(x.by.of.on) }

// stop is called on the thread of r, or on no runner's if r is nil.
func (x *timer) stop(r *runner) bool {
	if !x.finish() {
		return false
	}
	x.by.remove()
	if r == x.at {
		x.timer.Stop()
	} else {
		x.at.disarmed.Push(&x.node)
		x.at.wake()
	}
	x.at.sys.done()
	return true
}

func (x *timer) finish() bool { return x.over.CompareAndSwap(0, 1) }

func (x *timer) ended(r *runner, _ Notice) { x.stop(r) }

// stopTimers stops the timers of this thread that were stopped elsewhere: those from n on.
func stopTimers(n *inbox.Node[*timer]) {
	for n != nil {
		next := n.Next()
		n.Of.timer.Stop()
		n = next
	}
}
