package process

import (
	"math"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// timer is a timer of the reactor on which its process was when it was set. The process may be elsewhere when it is
// due, or is to be stopped.
type timer struct {
	own   tie // the end of the process stops it
	at    *reactor
	timer act.Timer
	over  word // 1: fired or stopped
	fire  func(r *reactor)
	node  inbox.Node[*timer]
}

// After sends m to the process itself after d, never earlier. The bound of the mailbox does not apply. After reads the
// clock. The message does not come if the process ends before, or if the Operation is cancelled, which only the turns of
// the process may do.
func (p *Self[M]) After(d time.Duration, m M) Operation {
	x := &timer{}
	x.set(&p.core, d, func(r *reactor) { p.deliver(r, m) })
	return x
}

// Cancel implements Operation. It is for the turns of the process.
func (x *timer) Cancel() bool { return x.stop(x.own.of.on) }

// set has fire called on the present reactor of c when d is over, unless c ends before.
func (x *timer) set(c *core, d time.Duration, fire func(r *reactor)) {
	x.at, x.fire, x.node.Of, x.own.of, x.own.ender = c.on, fire, x, c, x
	c.sys.pending.Add(1)
	x.own.add()
	now := x.at.s.Clock().Monotonic()
	x.at.s.CallAt(&x.timer, now+min(d, math.MaxInt64-now), x)
}

// Expire is the timer's.
func (x *timer) Expire() {
	if x.finish() {
		defer x.at.sys.done()
		x.own.remove()
		x.fire(x.at)
	}
}

// stop is called on the thread of r, or of none.
func (x *timer) stop(r *reactor) bool {
	if !x.finish() {
		return false
	}
	x.own.remove()
	if r == x.at {
		x.timer.Stop()
	} else {
		x.at.disarmed.Push(&x.node)
		x.at.ring()
	}
	x.at.sys.done()
	return true
}

func (x *timer) finish() bool { return x.over.CompareAndSwap(0, 1) }

func (x *timer) ended(r *reactor, _ Notice) { x.stop(r) }

// stopAlarms stops those that were stopped elsewhere.
func (r *reactor) stopAlarms() {
	for n := r.disarmed.TakeAll(); n != nil; {
		next := n.Next()
		n.Of.timer.Stop()
		n = next
	}
}
