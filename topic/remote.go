package topic

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

const (
	// readsAtOnce bounds how many topics are read from an Engine at a time.
	readsAtOnce = 4
	// A batch of messages to store has at most so many messages, and begins no other one after so many bytes.
	batchMessages, batchBytes = 1000, 1 << 20
	// beginsAtOnce bounds how many subscriptions begin, after a read, while others wait for the lock.
	beginsAtOnce = 100
)

// remote is the demon that connects a Broker with its Engine. What is published goes to the Engine, and comes to the
// subscriptions from there, as what other machines have published. Its fields belong to the lock of the Broker.
type remote struct {
	b      *Broker
	engine Engine
	ctx    context.Context // of all calls
	end    context.CancelFunc
	stores act.Executor
	reads  act.Executor
	waker  act.AtomicWaker

	feeds   int  // how often Feed has begun; 0: what is stored would not come back
	storing bool // a task stores
	queue   []outgoing
	room    inbox.Room           // in queue
	changes map[[2]string]Change // to be stored, by topic and ID
}

// outgoing is a message that is to be stored.
type outgoing struct {
	Publication
	stored *future.Future[Position] // nil: nobody asks
}

// connect attaches a remote to the first scheduler.
func (b *Broker) connect(s *act.Scheduler) {
	r := &remote{b: b, engine: b.cfg.Engine, stores: s.Internals().Reserve(1), reads: s.Internals().Reserve(readsAtOnce)}
	r.ctx, r.end = context.WithCancel(context.Background())
	b.remote = r
	s.Attach(r)
	s.Internals().Reserve(1).Execute(r.feed)
}

// Act has a task store what is to be stored. The task keeps the Group's Run from returning before that is done.
func (r *remote) Act(t *act.Task) act.Directive {
	r.waker.Set(t.Waker())
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if r.feeds > 0 && !r.storing && len(r.queue)+len(r.changes) > 0 {
		r.storing = true
		t.Scheduler().Spawn(&act.Call[struct{}]{F: r.store, On: r.stores})
	}
	return act.Wait
}

// Stop implements act.Stopper. A remote stays as long as its scheduler runs.
func (r *remote) Stop(*act.Task, shutdown.Order) {}

// Describe implements act.Describer.
func (r *remote) Describe(d *act.Description) { d.WaitsFor("messages of topics for other machines") }

// Close ends all calls of the Engine.
func (r *remote) Close() error {
	r.end()
	r.room.Announce()
	return nil
}

// Confirm is [Broker.Publish] with a future that is resolved when the message is stored: with an Engine when that has it, else at
// once. Its value is the Position of the message, zero without a history. It fails if it is not known whether the message
// was stored. Any goroutine; one that may block calls Wait of the future.
func (b *Broker) Confirm(p Publication) (*future.Future[Position], error) {
	stored := future.New[Position](b.lanes[0].s)
	at, err := b.publish(p, stored)
	if err != nil {
		return nil, err
	}
	if b.remote == nil {
		_ = stored.Resolve(at)
	}
	return stored, nil
}

// tooLong reports whether an Engine refuses a name, or the ID of a member.
func (b *Broker) tooLong(name string) bool { return b.remote != nil && len(name) > 1000 }

// publish adds a message to what is to be stored, with the lock.
func (r *remote) publish(x outgoing) error {
	switch {
	case r.ctx.Err() != nil:
		return act.ErrClosed
	case r.full():
		return &full{"an Engine", &r.room, r.isFull}
	}
	r.queue = append(r.queue, x)
	r.wake()
	return nil
}

// announce adds a change to what is to be stored, with the lock. Only the last one of a member is stored.
func (b *Broker) announce(c Change) {
	r := b.remote
	if r.changes == nil {
		r.changes = map[[2]string]Change{}
	}
	r.changes[[2]string{c.Topic, c.Member.ID}] = c
	r.wake()
}

// wake has Act see what is to be stored.
func (r *remote) wake() {
	if !r.storing {
		r.waker.Wake()
	}
}

// full reports whether there is no room for a message, with the lock.
func (r *remote) full() bool { return len(r.queue) >= r.b.cfg.Pending && r.ctx.Err() == nil }

// isFull is full without the lock.
func (r *remote) isFull() bool {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return r.full()
}

// store stores, a batch at a time, until nothing is left.
func (r *remote) store() (none struct{}, err error) {
	for {
		batch, changes := r.batch()
		if len(batch)+len(changes) == 0 {
			return none, nil
		}
		if len(changes) > 0 {
			if err := r.engine.Change(r.ctx, changes); err != nil {
				r.log("Members could not be stored", err)
			}
		}
		if len(batch) == 0 {
			continue
		}
		messages := make([]Publication, len(batch))
		for i := range batch {
			messages[i] = batch[i].Publication
		}
		at, err := r.engine.Publish(r.ctx, messages)
		if err != nil {
			r.log("messages could not be stored", err, zap.Int("messages", len(batch)))
		}
		for i, x := range batch {
			switch {
			case x.stored == nil:
			case err != nil:
				_ = x.stored.Fail(err)
			case r.b.rule(x.Topic).history():
				_ = x.stored.Resolve(at[i])
			default:
				_ = x.stored.Resolve(Position{})
			}
		}
	}
}

// batch takes what is to be stored next. If that is nothing, the task of store ends.
func (r *remote) batch() (batch []outgoing, changes []Change) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(r.queue), batchMessages) && bytes < batchBytes {
		bytes += len(r.queue[n].Data)
		n++
	}
	batch = r.queue[:n:n]
	for _, c := range r.changes {
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Member.ID, y.Member.ID))
	})
	if r.queue, r.changes = r.queue[n:], nil; len(r.queue) == 0 {
		r.queue = nil
	}
	r.storing = n+len(changes) > 0
	r.room.Announce()
	return batch, changes
}

func (r *remote) log(what string, err error, fields ...zap.Field) {
	if r.ctx.Err() == nil {
		r.b.lanes[0].s.Logger().Warn("topic: "+what, append(fields, zap.Error(err))...)
	}
}

// feed passes on what the Engine delivers.
func (r *remote) feed() {
	rules := make([]Rule, len(r.b.rules))
	for i := range rules {
		rules[i] = r.b.rules[i].Rule
	}
	for r.ctx.Err() == nil {
		begun := false
		err := r.engine.Feed(r.ctx, rules, func(messages []Stored) {
			if !begun {
				begun = true
				r.begin()
			}
			r.take(messages)
		})
		r.log("what other machines publish was lost for a while", err)
	}
}

// begin is called when Feed has begun. If it was not for the first time, messages may have been lost: the topics that are
// followed are read, and the others when somebody follows them.
func (r *remote) begin() {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.feeds++
	r.waker.Wake()
	if r.feeds == 1 {
		return
	}
	top := r.b.tree.children
	for _, level := range slices.Sorted(maps.Keys(top)) { // also the ones that begin with $
		top[level].each("#", func(n *node) {
			switch rec := n.record; {
			case rec == nil || !rec.rule.history():
			case rec.followed():
				rec.whole = false
				r.read(rec)
			default:
				rec.reset(Position{})
			}
		})
	}
}

// take passes on messages. It waits while a scheduler has too many.
func (r *remote) take(messages []Stored) {
	for len(messages) > 0 {
		r.b.mu.Lock()
		var late *full
		for late == nil && len(messages) > 0 {
			if late, _ = r.pass(&messages[0]).(*full); late == nil {
				messages = messages[1:]
			}
		}
		r.b.mu.Unlock()
		if late != nil {
			late.wait(r.ctx)
		}
	}
}

// pass passes on a message, with the lock, if it is the next one of its topic.
func (r *remote) pass(s *Stored) error {
	m := s.message()
	rec, _ := r.b.recordOf(m, s.Retain) // too many topics: it is not kept
	if rec != nil && !r.isNext(rec, s.Position) || rec == nil && s.Retained && len(s.Data) == 0 {
		return nil
	}
	if !r.b.rule(s.Topic).history() {
		m.Position = Position{}
	}
	if err := r.b.route(m); err != nil {
		return err
	}
	if rec != nil {
		rec.log.last = s.Offset
		r.b.put(rec, m, s.Retain)
	}
	r.b.deliver(m)
	return nil
}

func (s *Stored) message() *Message {
	m := &Message{Topic: s.Topic, Data: s.Data, Tag: s.Tag, Kind: s.Kind, Position: s.Position}
	if s.Kind != Published {
		m.more = &more{member: s.Member}
	}
	return m
}

// isNext reports whether a message at a Position is to be passed on now. A message that has come before is not. If messages
// before it are missing, they are read first, and it comes with them.
func (r *remote) isNext(rec *record, at Position) bool {
	l := &rec.log
	switch {
	case l.epoch == "" || !rec.rule.history():
		if l.epoch == at.Epoch && at.Offset <= l.last {
			return false
		}
		l.epoch, l.last = at.Epoch, at.Offset-1
	case l.epoch != at.Epoch:
		r.lose(rec, Position{at.Epoch, at.Offset - 1})
	case at.Offset <= l.last:
		return false
	case at.Offset == l.last+1:
	case !rec.followed():
		rec.reset(Position{at.Epoch, at.Offset - 1})
	default:
		rec.missed = max(rec.missed, at.Offset)
		r.read(rec)
		return false
	}
	return true
}

// lose tells the subscriptions that follow a topic that they have missed messages before a Position.
func (r *remote) lose(rec *record, at Position) {
	rec.reset(at)
	b := r.b
	b.found = append(b.found[:0], rec.of.shares...)
	b.deliver(&Message{Kind: Followed, Topic: rec.of.path(), Position: at})
}

// reset forgets the history, but not the one that the Engine has, and goes on after a Position.
func (rec *record) reset(at Position) {
	rec.log, rec.whole = log{epoch: at.Epoch, last: at.Offset}, false
	rec.node.Remove()
	rec.rule.empty.Append(&rec.node)
}

// followed reports whether anybody follows the topic, or waits for that.
func (rec *record) followed() bool { return len(rec.of.shares)+len(rec.waiting) > 0 }

// waiter is a subscription that is to follow a topic whose history is read first.
type waiter struct {
	sub   *Subscription
	after Position
	asked bool // the read that is under way began after that
}

// follow reports whether the record of a topic has what was published after a Position. Else sub waits until it was read.
func (r *remote) follow(sub *Subscription, topic string, after Position) (ready bool, err error) {
	if r.b.tooLong(topic) {
		return false, ErrName
	}
	rec, err := r.b.record(topic)
	if err != nil || rec.answers(after) {
		return true, err
	}
	rec.waiting = append(rec.waiting, waiter{sub: sub, after: after})
	r.read(rec)
	return false, nil
}

// forgo removes sub from what waits for a topic, and reports whether it was there.
func (b *Broker) forgo(sub *Subscription, topic string) (was bool) {
	if r := b.kept(topic); r != nil {
		r.waiting = slices.DeleteFunc(r.waiting, func(w waiter) bool {
			was = was || w.sub == sub
			return w.sub == sub
		})
	}
	return was
}

// answers reports whether what came after a Position need not be read, or cannot be.
func (rec *record) answers(after Position) bool {
	l := &rec.log
	switch {
	case l.epoch == "":
		return false
	case after.Epoch != l.epoch:
		return rec.whole || after == Position{}
	case after.Offset > l.last: // perhaps Feed is late here, or it is not true
		return false
	}
	return rec.whole || after.Offset >= l.first()
}

// read reads the history of a topic, unless it is being read. Then what waits for it begins.
func (r *remote) read(rec *record) {
	if rec.reading {
		return
	}
	rec.reading = true
	topic, rule := rec.of.path(), rec.rule.Rule
	r.reads.Execute(func() {
		r.b.mu.Lock()
		defer r.b.mu.Unlock()
		for i := range rec.waiting {
			rec.waiting[i].asked = true
		}
		feeds := r.feeds
		r.b.mu.Unlock()
		messages, last, err := r.engine.History(r.ctx, topic, rule)
		r.b.mu.Lock()
		switch {
		case r.ctx.Err() != nil:
			return
		case r.feeds != feeds: // messages may have been stored after the read, and before Feed has begun
			rec.reading = false
			r.read(rec)
			return
		case err != nil:
			r.log("the history of a topic could not be read", err, zap.String("topic", topic))
			r.lose(rec, Position{rec.log.epoch, max(rec.log.last, rec.missed)})
		default:
			r.join(rec, messages, last)
		}
		r.settle(rec, topic, err)
	})
}

// settle has subscriptions begin that have waited for a read. The others, and messages that were missed, need another one.
func (r *remote) settle(rec *record, topic string, err error) {
	b := r.b
	for n := 1; len(rec.waiting) > 0 && (rec.waiting[0].asked || rec.answers(rec.waiting[0].after)); n++ {
		w := rec.waiting[0]
		rec.waiting = rec.waiting[1:]
		err := err
		if err == nil {
			err = w.sub.begin(topic, func(*Broker) (*Message, error) { return b.recall(topic, w.after) })
		}
		if err != nil || n%beginsAtOnce == 0 {
			b.mu.Unlock() // others may go between
			if err != nil {
				w.sub.end(err)
			}
			b.mu.Lock()
		}
	}
	rec.reading = false
	if rec.missed <= rec.log.last {
		rec.missed = 0
	}
	if len(rec.waiting) > 0 || rec.missed > 0 {
		r.read(rec)
	}
}

// join puts what was read before the messages that Feed has brought. If there is something between, Feed has missed it.
func (r *remote) join(rec *record, stored []Stored, last Position) {
	b, l, now := r.b, &rec.log, r.b.clock.Monotonic()
	if l.epoch != last.Epoch {
		if l.epoch != "" {
			r.lose(rec, last)
		}
		l.epoch, l.last = last.Epoch, last.Offset
	}
	for i := range stored {
		if s := &stored[i]; s.Offset > l.last {
			if s.Offset > l.last+1 {
				r.lose(rec, Position{s.Epoch, s.Offset - 1})
			}
			m := s.message()
			_ = b.route(m) // few enough, even if a scheduler has too many
			rec.rule.append(rec, m, now)
			b.deliver(m)
		}
	}
	if l.last < last.Offset {
		r.lose(rec, last)
	}
	var messages []*Message
	var times []time.Duration
	for i := 0; i < len(stored) && stored[i].Offset <= l.first(); i++ {
		messages, times = append(messages, stored[i].message()), append(times, now-stored[i].Age)
	}
	if n := len(messages); n > 0 && messages[n-1].Offset == l.first() {
		l.messages, l.times = append(messages, l.messages...), append(times, l.times...)
		l.cut(max(0, len(l.messages)-rec.rule.History))
		rec.node.Remove()
		rec.rule.topics.Append(&rec.node)
	}
	rec.whole = true
}
