package client

import (
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/shutdown"
)

// keeper is a demon that closes connections which have been idle for too long, or have ended. It looks at all idle connections of its
// scheduler when one has ended, when the time of one is over, and a second after the first one has become idle since the last look:
// so a busy connection costs nothing here.
type keeper struct {
	desk    *desk
	waker   act.Waker
	bell    act.AtomicWaker // for other schedulers
	timer   timeout.Timer
	next    time.Duration // when it looks; 0: never
	ordered bool          // shutdown has begun: no connection is kept
}

// often is how soon the keeper looks at a connection that has become idle.
const often = time.Second

// note has the keeper look at a connection that has become idle, and is kept until then.
func (k *keeper) note(now, until time.Duration) {
	at := min(until, now+often)
	if k.next != 0 && k.next <= at {
		return
	}
	k.next = at
	k.waker.Wake()
}

// Act looks at all idle connections, and waits for the end of one.
func (k *keeper) Act(t *act.Task) act.Directive {
	k.waker = t.Waker()
	k.bell.Set(k.waker)
	now, next := t.Scheduler().Now(), timeout.Never
	for _, p := range slices.Backward(k.desk.inOrder) { // attend may remove it
		p.attend()
		next = min(next, p.sweep(t, now))
	}
	if k.next > now { // a connection has become idle a moment ago
		next = min(next, k.next)
	}
	k.next = 0
	if next < timeout.Never {
		k.next = next
		k.timer.WakeAt(t, next)
	}
	return act.Wait
}

// sweep closes idle connections that are of no use any more, and returns when the time of the next one is over.
func (p *pool) sweep(t *act.Task, now time.Duration) (next time.Duration) {
	kept := p.idle[:0]
	next = timeout.Never
	for _, x := range p.idle {
		ended, err := x.Conn.Ended(t)
		if ended || err != nil || now >= x.until || p.keeper.ordered {
			p.drop(x)
			continue
		}
		kept = append(kept, x)
		next = min(next, x.until)
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	return next
}

// Stop implements act.Stopper. Calls go on during a shutdown, but no connection is kept after them.
func (k *keeper) Stop(*act.Task, shutdown.Order) {
	k.ordered = true
	k.waker.Wake()
}

// Describe implements act.Describer.
func (k *keeper) Describe(d *act.Description) { d.WaitsFor("the end of idle connections") }
