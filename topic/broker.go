package topic

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/inbox"
)

var (
	// ErrTooLong is returned by Publish for a message that is longer than Config.MaxMessage.
	ErrTooLong = errors.New("topic: the message is too long")
	// ErrTopics is returned by Publish and Follow when there is no place among Config.Topics.
	ErrTopics = errors.New("topic: too many topics have a history or a retained message")
	// ErrNoHistory is returned by Follow for a topic without history.
	ErrNoHistory = errors.New("topic: the topic has no history")
)

// Config configures a Broker. The zero Config has no history and no presence.
type Config struct {
	// Rules say which topics have a history and presence. The first one whose Filter matches is used. A topic
	// that no rule matches has neither.
	Rules []Rule
	// Topics bounds how many topics have a history, a retained message or members. 0 means 65,536.
	// Beyond it the topic without a message for the longest time is forgotten, unless it has one of the others, or is followed.
	Topics int
	// MaxMessage bounds the Data of a message, in bytes. 0 means 64 KiB.
	MaxMessage int
	// Pending bounds how many messages wait until a scheduler passes them on to its subscriptions. 0 means 65,536.
	Pending int
	// Engine connects this Broker with the Brokers of other machines. nil: it is alone. With an Engine, names of topics and IDs of
	// members have at most 1,000 bytes.
	Engine Engine
}

// Rule says what is kept for the topics that Filter matches.
type Rule struct {
	Filter string
	// History is how many of the latest messages are kept, for at most Age. 0: none. Age 0 means an hour.
	History int
	Age     time.Duration
	// Presence keeps the Members of the subscriptions to a topic. Who comes and goes is published as Joined and Left, in the
	// topic "$presence/" and its name.
	Presence bool
}

// Broker passes messages from publishers to the subscriptions of a Group. Make it with [New] and give its Setup to the Group.
type Broker struct {
	cfg   Config
	lanes []*lane
	clock act.Clock
	rules []rule

	remote *remote // nil: no Engine

	mu      sync.Mutex
	tree    node
	seq     uint64
	records int      // of Config.Topics
	found   []*share // of the present message
	turn    int      // the lane of the next subscription without an owner
	epochs  uint64
}

// New returns a Broker. It panics if a Rule has no valid filter, or a bound is negative.
func New(cfg Config) *Broker {
	rules := make([]rule, len(cfg.Rules))
	for i, r := range cfg.Rules {
		if !ValidFilter(r.Filter) || r.History < 0 || r.Age < 0 {
			panic("topic: a wrong Rule for " + strconv.Quote(r.Filter))
		}
		rules[i].Rule = r
		rules[i].Age = cmp.Or(r.Age, time.Hour)
	}
	if cfg.Topics < 0 || cfg.MaxMessage < 0 || cfg.Pending < 0 {
		panic("topic: a negative bound")
	}
	cfg.Topics, cfg.MaxMessage, cfg.Pending = cmp.Or(cfg.Topics, 1<<16), cmp.Or(cfg.MaxMessage, 64<<10), cmp.Or(cfg.Pending, 1<<16)
	return &Broker{cfg: cfg, rules: rules}
}

// Setup is a set-up function of a Group: it adds the Broker to each scheduler. Subscribe and Publish may be called when
// the set-up functions have returned.
func (b *Broker) Setup(s *act.Scheduler) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lanes == nil {
		b.clock = s.Clock()
		for _, s := range s.Group().Schedulers() {
			b.lanes = append(b.lanes, &lane{b: b, s: s})
		}
	}
	if b.cfg.Engine != nil && s.Index() == 0 {
		b.connect(s)
	}
	locals.Get(s).add(b.lanes[s.Index()])
	s.Attach(b.lanes[s.Index()])
	return nil
}

// next returns the lane for a subscription of a goroutine.
func (b *Broker) next() *lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lanes == nil {
		panic("topic: the Broker has no Group: see Broker.Setup")
	}
	b.turn++
	return b.lanes[b.turn%len(b.lanes)]
}

// Publish passes a message on to the subscriptions that match its topic now. It never waits for a subscription. If a scheduler
// has too many messages to pass on, Publish returns an act.Blocked, and the message was not published; a goroutine that may
// block calls [Broker.PublishWait]. Subscriptions get the messages of one publisher in the order in which they were published,
// and all messages of a topic in the same order. Any goroutine.
//
// With an Engine a message comes to the subscriptions when it is stored. Publish returns an act.Blocked while too many messages
// are to be stored, and [Broker.Confirm] says when this one is.
func (b *Broker) Publish(p Publication) error {
	_, err := b.publish(p, nil)
	return err
}

// publish is Publish. stored is resolved by the Engine.
func (b *Broker) publish(p Publication, stored *future.Future[Position]) (at Position, err error) {
	if err := b.check(p); err != nil {
		return at, err
	}
	m := &Message{Topic: p.Topic, Data: p.Data, Tag: p.Tag}
	var lanes [8]*lane
	wake := lanes[:0]
	b.mu.Lock()
	if b.remote != nil {
		err = b.remote.publish(outgoing{p, stored})
	} else if err = b.route(m); err == nil {
		if err = b.keep(m, p.Retain); err == nil {
			wake = b.enqueue(m, wake)
		}
	}
	b.mu.Unlock()
	for _, l := range wake { // without the lock: it may be a system call
		l.waker.Wake()
	}
	return m.Position, err
}

// PublishWait is Publish for a goroutine that may block, never for the thread of a scheduler: it waits, until ctx ends, while a
// scheduler has too many messages to pass on.
func (b *Broker) PublishWait(ctx context.Context, p Publication) error {
	for {
		err := b.Publish(p)
		full, ok := err.(*full)
		if !ok {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		full.wait(ctx)
	}
}

func (b *Broker) check(p Publication) error {
	switch {
	case !ValidName(p.Topic) || b.tooLong(p.Topic):
		return ErrName
	case len(p.Data) > b.cfg.MaxMessage:
		return ErrTooLong
	}
	return nil
}

// route finds the subscriptions of m's topic. The error is that a lane has no room, or is closed.
func (b *Broker) route(m *Message) error {
	b.found = b.tree.match(b.found[:0], m.Topic)
	for _, x := range b.found {
		switch {
		case x.lane.closed:
			return act.ErrClosed
		case x.lane.full():
			return &full{"scheduler " + strconv.Itoa(x.lane.s.Index()), &x.lane.room, x.lane.isFull}
		}
	}
	return nil
}

// deliver passes m on to what route has found, with the lock.
func (b *Broker) deliver(m *Message) {
	for _, l := range b.enqueue(m, nil) {
		l.waker.Wake()
	}
}

// enqueue is deliver, and appends the lanes that the caller has to wake.
func (b *Broker) enqueue(m *Message, wake []*lane) []*lane {
	b.seq++
	m.seq = b.seq
	for _, x := range b.found {
		if x.lane.queue(item{to: x, m: m}) {
			wake = append(wake, x.lane)
		}
	}
	return wake
}

// link makes a link of sub to a filter, with the lock.
func (b *Broker) link(sub *Subscription, filter string) *link {
	n := b.tree.find(filter, true)
	var to *share
	for _, x := range n.shares {
		if x.lane == sub.lane {
			to = x
		}
	}
	if to == nil {
		to = &share{lane: sub.lane, of: n}
		n.shares = append(n.shares, to)
	}
	to.count++
	to.lane.subscribed++
	if sub.first.to == nil { // it is used once, since the lane may not know yet of its end
		sub.first = link{sub: sub, to: to}
		return &sub.first
	}
	k := &link{sub: sub, to: to}
	sub.mu.Lock()
	sub.more().links = append(sub.more().links, k)
	sub.mu.Unlock()
	return k
}

// unlink ends k, with the lock.
func (b *Broker) unlink(k *link) {
	k.ended = true
	k.to.lane.subscribed--
	if sub := k.sub; k != &sub.first {
		sub.extra.links = slices.DeleteFunc(sub.extra.links, func(x *link) bool { return x == k })
	}
	k.to.lane.add(item{to: k.to, m: leaves, link: k})
	if k.to.count--; k.to.count == 0 {
		n := k.to.of
		n.shares = slices.DeleteFunc(n.shares, func(x *share) bool { return x == k.to })
		n.prune()
	}
}

// full is the error that there is no room for a message.
type full struct {
	waits string // what the messages wait for that there are
	room  *inbox.Room
	is    func() bool // whether there is no room; any goroutine
}

func (f *full) Error() string { return "topic: too many messages wait for " + f.waits }

// Describe implements act.Describer.
func (f *full) Describe(d *act.Description) { d.WaitsFor("room for a message of a topic") }

// Arm implements act.Blocked.
func (f *full) Arm(t *act.Task) { f.room.Add(t.Waker().Remote(), f.is) }

// wait waits for room, until ctx ends.
func (f *full) wait(ctx context.Context) {
	stop := context.AfterFunc(ctx, f.room.Announce)
	f.room.Wait(func() bool { return ctx.Err() == nil && f.is() })
	stop()
}
