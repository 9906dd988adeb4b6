package topic

import (
	"slices"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// pushesATurn bounds how many subscriptions get a message in one turn of a lane.
const pushesATurn = 512

// lane is a demon that carries what happens to the subscriptions of one scheduler, in one order: messages, and beginnings and
// ends of subscriptions. So a subscription gets all messages that are published after it has begun, and no other.
type lane struct {
	b     *Broker
	s     *act.Scheduler
	waker act.AtomicWaker
	room  inbox.Room

	pending []item // under the lock of b
	closed  bool   // as well
	taken   []item // of the lane's thread
	at      int    // the next of taken
	left    int    // how many links of the next share have not got its message yet; less than 0: it is not begun

	delivered, dropped atomic.Uint64
}

// item is a message to a share; or the beginning of a link, with what was kept for it, or its end.
type item struct {
	to   *share
	m    *Message
	link *link
}

// share is what the subscriptions to a filter on one scheduler have in common.
type share struct {
	lane  *lane
	of    *node
	count int     // links that have not ended, under the lock of the Broker
	links []*link // of the lane's thread
}

// link is a subscription to one filter.
type link struct {
	sub   *Subscription
	to    *share
	index int32 // in to.links, from 1, of the lane's thread; 0: it has not begun, or has ended
	ended bool  // under the lock of the Broker
}

// full reports whether there is no room for a message, with the lock of the Broker.
func (l *lane) full() bool { return len(l.pending) >= l.b.cfg.Pending && !l.closed }

// isFull is full without the lock.
func (l *lane) isFull() bool {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.full()
}

// add appends an item, with the lock of the Broker.
func (l *lane) add(x item) {
	if l.pending = append(l.pending, x); len(l.pending) == 1 {
		l.waker.Wake()
	}
}

// Act implements act.Action.
func (l *lane) Act(t *act.Task) act.Directive {
	for budget := pushesATurn; budget > 0; {
		if l.at == len(l.taken) && !l.take(t) {
			return act.Wait
		}
		budget -= l.do(&l.taken[l.at], budget)
	}
	return act.Yield
}

// Stop implements act.Stopper. A lane stays as long as its scheduler runs.
func (l *lane) Stop(*act.Task, shutdown.Order) {}

// Close lets publishers know that nothing is passed on any more.
func (l *lane) Close() error {
	l.b.mu.Lock()
	l.closed, l.pending, l.taken = true, nil, nil
	l.b.mu.Unlock()
	l.room.Announce()
	return nil
}

// Describe implements act.Describer.
func (l *lane) Describe(d *act.Description) { d.WaitsFor("messages of topics") }

// take takes what is pending.
func (l *lane) take(t *act.Task) bool {
	l.waker.Set(t.Waker())
	clear(l.taken)
	l.at, l.left = 0, -1
	l.b.mu.Lock()
	l.taken, l.pending = l.pending, l.taken[:0]
	l.b.mu.Unlock()
	if cap(l.pending) > 1<<10 {
		l.pending = nil
	}
	l.room.Announce()
	return len(l.taken) > 0
}

// do does an item, or a part of it, and returns what that costs.
func (l *lane) do(x *item, budget int) int {
	switch {
	case x.link != nil && x.m == leaves:
		x.to.remove(x.link)
	case x.link != nil:
		if x.link.index == 0 { // else only what was kept comes again
			x.to.links = append(x.to.links, x.link)
			x.link.index = int32(len(x.to.links))
		}
		if x.m != nil {
			x.link.sub.push(x.m)
		}
	default:
		// From the last to the first: remove moves the last one, which has got the message, to an earlier place.
		if l.left < 0 {
			l.left = len(x.to.links)
		}
		l.left = min(l.left, len(x.to.links))
		n := min(l.left, budget)
		for _, k := range slices.Backward(x.to.links[l.left-n : l.left]) {
			k.sub.push(x.m)
		}
		l.delivered.Add(uint64(n))
		if l.left -= n; l.left > 0 {
			return n
		}
	}
	l.at++
	l.left = -1
	return 1
}

// leaves is the message of an item that ends a link.
var leaves = &Message{}

func (x *share) remove(k *link) {
	last := len(x.links) - 1
	x.links[k.index-1] = x.links[last]
	x.links[k.index-1].index = k.index
	x.links[last] = nil
	x.links = x.links[:last]
	k.index = 0
}
