package topic

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"sync"

	"github.com/daimon-go/daimon/act"
)

// MaxFilters bounds the filters and followed topics of a subscription.
const MaxFilters = 4096

// maxBrought is how many messages of Add and Follow may wait for the owner before a further call is refused.
const maxBrought = 1 << 16

var (
	// ErrFilters is returned by Add and Follow for a subscription that has [MaxFilters] filters, or whose owner has not taken what
	// earlier calls have brought: 65,536 messages, or the Followed messages of 4,096 calls.
	ErrFilters = errors.New("topic: the subscription has too many filters")
	// ErrSlow is returned by Take when the subscription has ended because its queue was full: see [End].
	ErrSlow = errors.New("topic: the subscription has ended: its owner is too slow")
	// ErrClosed is returned by the methods of a Subscription or a Claim that was closed.
	ErrClosed = errors.New("topic: it is closed")
)

// Overflow says what happens to a message that finds the queue of a subscription full. A publisher never waits for a subscriber.
type Overflow uint8

const (
	DropOldest Overflow = iota // the oldest message in the queue is dropped, but not what Add and Follow bring
	DropNewest                 // the message is dropped
	End                        // the subscription ends with ErrSlow; with a history its owner may recover: see [Subscription.Follow]
)

// Owner is what a subscription or a [Claim] belongs to, and ends with: an *[act.Task], or a *process.Self, which gets a turn when
// a message has come. The task of a WebSocket ends after the close handshake, which may take seconds: an action that is not
// to be present, or to have a name, for so long closes its subscription or claim before it returns.
type Owner interface {
	Scheduler() *act.Scheduler
	Own(io.Closer)
}

// process is an Owner that is not a task: a *process.Self.
type process interface {
	Poke()
	Release(io.Closer) bool
}

// Options configure a subscription.
type Options struct {
	Queue    int // how many messages wait for the owner; 0 means 256
	Overflow Overflow
	// Member, if it has an ID, is present in the topics of the subscription: see [Rule].
	Member Member
}

// Subscription gets the messages of any number of topics, in one queue: each once, even if several of its filters match, and the
// messages of one publisher in the order in which they were published. It has one owner, which alone calls its methods. Make
// it with [Broker.Subscribe].
type Subscription struct {
	lane     *lane
	limit    int32
	overflow Overflow
	ended    bool // as what follows, under mu

	mu      sync.Mutex
	one     *Message // the first of the queue
	rest    *ring    // the others; nil: none
	last    uint64   // the latest message that came
	dropped uint64
	waker   act.Waker // of a task on the lane's scheduler; a task on another one has extra.remote
	first   link
	extra   *extra
	task    *act.Task // its owner; nil: another one
}

// extra is what few subscriptions have.
type extra struct {
	links   []*link    // but for the first
	brought int        // messages of Add and Follow that were not taken yet
	batch   []*Message // comes before kept
	kept    []*Message // comes before the queue: what brings others, which is not dropped
	member  Member
	owner   process       // nil: it is another one
	remote  func()        // for a task on another scheduler
	bell    chan struct{} // for Receive
	err     error         // why it has ended
}

// ring is a part of a queue: n messages from at on, and round the end.
type ring struct {
	messages []*Message
	at, n    int
}

// Subscribe returns a subscription without topics, which ends with its owner. A task or a process gives itself in a turn. A
// goroutine gives nil, calls Receive, and closes the subscription itself.
func (b *Broker) Subscribe(owner Owner, o Options) *Subscription {
	if o.Queue < 0 || o.Queue > math.MaxInt32 || o.Overflow > End {
		panic("topic: wrong Options")
	}
	sub := &Subscription{limit: int32(cmp.Or(o.Queue, 256)), overflow: o.Overflow}
	if p, isProcess := owner.(process); isProcess || o.Member.ID != "" {
		sub.extra = &extra{member: o.Member, owner: p}
	}
	if owner == nil {
		sub.lane, sub.more().bell = b.next(), make(chan struct{}, 1)
		return sub
	}
	s := owner.Scheduler()
	if s.Index() >= len(b.lanes) || b.lanes[s.Index()].s != s {
		panic("topic: the Group of the owner does not have the Broker: see Broker.Setup")
	}
	sub.lane = b.lanes[s.Index()]
	sub.task, _ = owner.(*act.Task)
	owner.Own(sub)
	return sub
}

// Add subscribes to all topics that filter matches: messages that are published after Add has returned come to the
// subscription. Retained messages come first. A filter that was added before brings its retained messages again.
func (sub *Subscription) Add(filter string) error {
	if !ValidFilter(filter) {
		return ErrName
	}
	sub.lane.b.mu.Lock()
	defer sub.lane.b.mu.Unlock()
	return sub.begin(filter, func(b *Broker) (*Message, error) { return b.retained(filter), nil })
}

// Follow subscribes to one topic, and recovers what was published after a Position: that of the last message that the owner
// has got. First comes a Followed message: with Complete if all that was missed comes next. Otherwise the history was
// lost, or is too short; what is left of it after the Position comes next, and the owner should ask elsewhere for the state of
// the topic. After that come messages as they are published. With the zero Position Follow begins with the next message, and
// Followed says where that is. [Earliest] is the position before all that is kept. The topic needs a [Rule] with History.
func (sub *Subscription) Follow(topic string, after Position) error {
	if !ValidName(topic) {
		return ErrName
	}
	b := sub.lane.b
	if !b.rule(topic).history() {
		return ErrNoHistory
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.remote != nil && sub.Err() == nil {
		if ready, err := b.remote.follow(sub, topic, after); !ready || err != nil {
			return err
		}
	}
	return sub.begin(topic, func(b *Broker) (*Message, error) { return b.recall(topic, after) })
}

// begin begins a link, with a message that brings what kept returns; nil: nothing. It is called with the lock of the Broker.
func (sub *Subscription) begin(filter string, kept func(*Broker) (*Message, error)) error {
	b := sub.lane.b
	switch {
	case sub.Err() != nil:
		return ErrClosed
	case sub.behind():
		return ErrFilters
	}
	m, err := kept(b)
	if err != nil {
		return err
	}
	k := sub.link(filter)
	if k == nil {
		if sub.full() {
			return ErrFilters
		}
		if err := b.join(sub, filter); err != nil {
			return err
		}
		k = b.link(sub, filter)
	} else if m == nil {
		return nil
	}
	if m != nil && len(m.more.messages) > 0 {
		sub.mu.Lock()
		sub.more().brought += len(m.more.messages)
		sub.mu.Unlock()
	}
	sub.lane.add(item{k.to, m, k})
	return nil
}

// Remove ends the subscription to a filter or a followed topic, and reports whether there was one. Messages that have come
// before stay in the queue.
func (sub *Subscription) Remove(filter string) bool {
	b := sub.lane.b
	b.mu.Lock()
	defer b.mu.Unlock()
	k := sub.link(filter)
	if k != nil {
		b.unlink(k)
		b.leave(sub, filter)
	}
	return k != nil || b.forgo(sub, filter)
}

// link returns the link to a filter, nil if there is none, with the lock of the Broker.
func (sub *Subscription) link(filter string) *link {
	n := sub.lane.b.tree.find(filter, false)
	if k := &sub.first; k.to != nil && !k.ended && k.to.of == n {
		return k
	}
	sub.mu.Lock() // extra may come into being
	defer sub.mu.Unlock()
	if sub.extra != nil {
		for _, k := range sub.extra.links {
			if k.to.of == n {
				return k
			}
		}
	}
	return nil
}

// full reports whether there are MaxFilters links after the first one, which counts even if it has ended.
func (sub *Subscription) full() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.extra != nil && len(sub.extra.links) >= MaxFilters-1
}

// behind reports whether its owner has not taken too much of what Add and Follow have brought.
func (sub *Subscription) behind() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	x := sub.extra
	return sub.queued() >= int(sub.limit)+MaxFilters || x != nil && len(x.kept)+x.brought > maxBrought
}

// Close ends the subscription, and drops what is in its queue. A goroutine needs it, and a task that subscribes again after
// [ErrSlow]: until then the task keeps the subscription that has ended. See [Owner].
func (sub *Subscription) Close() error {
	sub.end(ErrClosed)
	switch {
	case sub.task != nil:
		sub.task.Release(sub)
	case sub.extra != nil && sub.extra.owner != nil:
		sub.extra.owner.Release(sub)
	}
	return nil
}

// end ends the subscription. Take returns err from then on.
func (sub *Subscription) end(err error) {
	b := sub.lane.b
	b.mu.Lock()
	defer b.mu.Unlock()
	sub.mu.Lock()
	if sub.ended {
		sub.mu.Unlock()
		return
	}
	sub.ended, sub.one, sub.rest = true, nil, nil
	if err != ErrClosed { // then its owner knows
		sub.more().err = err
		sub.wake()
	}
	var links []*link
	if x := sub.extra; x != nil {
		links, x.links, x.batch, x.kept = x.links, nil, nil, nil
	}
	sub.mu.Unlock()
	if sub.first.to != nil && !sub.first.ended {
		links = append(links, &sub.first)
	}
	for _, k := range links {
		b.leave(sub, k.to.of.path())
		b.unlink(k)
	}
}

// Err returns nil, or why the subscription has ended: [ErrSlow] or [ErrClosed].
func (sub *Subscription) Err() error {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.reason()
}

// reason is Err with the lock.
func (sub *Subscription) reason() error {
	switch {
	case !sub.ended:
		return nil
	case sub.extra != nil && sub.extra.err != nil:
		return sub.extra.err
	}
	return ErrClosed
}

func (sub *Subscription) more() *extra {
	if sub.extra == nil {
		sub.extra = &extra{}
	}
	return sub.extra
}

// push adds a message to the queue and wakes the owner. It is called on the lane's thread.
func (sub *Subscription) push(m *Message) {
	sub.mu.Lock()
	switch {
	case sub.ended || m.seq != 0 && m.seq <= sub.last: // another filter has matched, too
		sub.mu.Unlock()
		return
	case m.seq != 0:
		sub.last = m.seq
	}
	slow := false
	switch {
	case sub.one == nil || m.seq == 0 || sub.queued() < int(sub.limit):
		sub.append(m)
	case sub.overflow == DropOldest:
		sub.dropOldest()
		sub.append(m)
	case sub.overflow == DropNewest:
		sub.drop()
	default:
		slow = true
	}
	if !slow {
		sub.wake()
	}
	sub.mu.Unlock()
	if slow {
		sub.lane.slow++
		sub.end(ErrSlow)
	}
}

// wake wakes the owner, with the lock.
func (sub *Subscription) wake() {
	sub.waker.Wake()
	if x := sub.extra; x != nil {
		if x.owner != nil {
			x.owner.Poke()
		}
		if x.remote != nil {
			x.remote()
		}
		if x.bell != nil {
			select {
			case x.bell <- struct{}{}:
			default:
			}
		}
	}
}

// queued returns how many messages are in the queue, 1 for an empty one, with the lock.
func (sub *Subscription) queued() int {
	if sub.rest == nil {
		return 1
	}
	return 1 + sub.rest.n
}

func (sub *Subscription) append(m *Message) {
	if sub.one == nil {
		sub.one = m
		return
	}
	if sub.rest == nil {
		sub.rest = &ring{messages: make([]*Message, 4)}
	}
	r := sub.rest
	if r.n == len(r.messages) {
		more := make([]*Message, 2*r.n)
		copy(more[copy(more, r.messages[r.at:]):], r.messages[:r.at])
		r.messages, r.at = more, 0
	}
	r.messages[(r.at+r.n)%len(r.messages)] = m
	r.n++
}

// pop removes the first message of the queue.
func (sub *Subscription) pop() *Message {
	m := sub.one
	sub.one = nil
	if r := sub.rest; r != nil {
		sub.one, r.messages[r.at] = r.messages[r.at], nil
		r.at = (r.at + 1) % len(r.messages)
		if r.n--; r.n == 0 {
			sub.rest = nil
		}
	}
	return m
}

// dropOldest drops the first message of the queue that was published since a beginning. What Add and Follow bring stays: they
// promise it, and the history shares its memory.
func (sub *Subscription) dropOldest() {
	for m := sub.pop(); m != nil; m = sub.pop() {
		if m.seq != 0 {
			sub.drop()
			return
		}
		sub.more().kept = append(sub.extra.kept, m)
	}
}

func (sub *Subscription) drop() {
	sub.dropped++
	sub.lane.dropped++
}

// Take removes the oldest message from the queue. If there is none it returns an act.Blocked, which wakes a task on any
// scheduler; [ErrSlow] or [ErrClosed] if the subscription has ended.
func (sub *Subscription) Take() (*Message, error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for {
		var m *Message
		switch x := sub.extra; {
		case x != nil && len(x.batch) > 0:
			m, x.batch = x.batch[0], x.batch[1:]
			x.brought--
			return m, nil
		case x != nil && len(x.kept) > 0:
			m, x.kept = x.kept[0], x.kept[1:]
		default:
			m = sub.pop()
		}
		switch {
		case m == nil && sub.ended:
			return nil, sub.reason()
		case m == nil:
			return nil, (*empty)(sub)
		default:
			if m.more != nil && len(m.more.messages) > 0 {
				sub.more().batch = m.more.messages
			}
			if m.Kind != batch {
				return m, nil
			}
		}
	}
}

// Receive is Take for a goroutine that may block, never for the thread of a scheduler: it waits for a message, until ctx ends.
func (sub *Subscription) Receive(ctx context.Context) (*Message, error) {
	for {
		m, err := sub.Take()
		if _, ok := err.(act.Blocked); !ok {
			return m, err
		}
		select {
		case <-sub.extra.bell:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Dropped returns how many messages were dropped since the queue was full. Any goroutine.
func (sub *Subscription) Dropped() uint64 {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.dropped
}

// Describe implements act.Describer, for an action that waits for Take.
func (sub *Subscription) Describe(d *act.Description) { d.WaitsFor("a message of a topic") }

// empty is a Subscription as the error that its queue is empty.
type empty Subscription

func (e *empty) Error() string { return "topic: no message" }

func (e *empty) Describe(d *act.Description) { (*Subscription)(e).Describe(d) }

// Arm implements act.Blocked.
func (e *empty) Arm(t *act.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waker = act.Waker{}
	if e.extra != nil {
		e.extra.remote = nil
	}
	switch {
	case e.one != nil || e.ended:
		t.Waker().Wake()
	case t.Scheduler() == e.lane.s:
		e.waker = t.Waker()
	default:
		(*Subscription)(e).more().remote = t.Waker().Remote()
	}
}
