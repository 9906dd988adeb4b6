package topic

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// pushesATurn bounds how many subscriptions get a message in one turn of a lane, which then takes some 0.2 ms. With less, a task
// gets messages that were published together in several turns, and sends each part by itself.
const pushesATurn = 4096

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
	done    int    // how many links have got the next message

	subscribed int // links that have not ended, under the lock of b

	// Counts of the lane's thread.
	delivered, dropped uint64 // messages
	slow               uint64 // subscriptions that have ended with ErrSlow
	noted              loss   // in the log
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
	if l.queue(x) {
		l.waker.Wake()
	}
}

// queue appends an item, with the lock of the Broker, and reports whether the caller has to wake the lane.
func (l *lane) queue(x item) (wake bool) {
	if !l.closed {
		l.pending = append(l.pending, x)
	}
	return len(l.pending) == 1
}

// Act implements act.Action.
func (l *lane) Act(t *act.Task) act.Directive {
	defer l.note()
	for budget := pushesATurn; budget > 0; {
		if l.at == len(l.taken) && !l.take(t) {
			return act.Wait
		}
		budget -= l.do(budget)
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

// take takes what is pending, and reports whether that is anything.
func (l *lane) take(t *act.Task) bool {
	l.waker.Set(t.Waker())
	clear(l.taken)
	if l.at = 0; cap(l.taken) > 1<<10 {
		l.taken = nil
	}
	l.b.mu.Lock()
	l.taken, l.pending = l.pending, l.taken[:0]
	l.b.mu.Unlock()
	l.room.Announce()
	return len(l.taken) > 0
}

// do does the next item, or a part of it that the budget allows, and returns what that has cost.
func (l *lane) do(budget int) (cost int) {
	switch x := &l.taken[l.at]; {
	case x.m == leaves:
		x.to.remove(x.link)
	case x.link != nil:
		x.to.add(x.link)
		if x.m != nil {
			x.link.sub.push(x.m)
		}
	default:
		rest := x.to.links[l.done:]
		cost = min(len(rest), budget)
		for _, k := range rest[:cost] {
			k.sub.push(x.m)
		}
		l.delivered += uint64(cost)
		if cost < len(rest) {
			l.done += cost
			return cost
		}
	}
	l.at++
	l.done = 0
	return cost + 1
}

// leaves is the message of an item that ends a link.
var leaves = &Message{}

// add begins k, unless it has begun before.
func (x *share) add(k *link) {
	if k.index == 0 {
		x.links = append(x.links, k)
		k.index = int32(len(x.links))
	}
}

func (x *share) remove(k *link) {
	last := len(x.links) - 1
	x.links[k.index-1] = x.links[last]
	x.links[k.index-1].index = k.index
	x.links[last] = nil
	x.links = x.links[:last]
	k.index = 0
}
