package topic

import (
	"slices"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/internal/chain"
)

// record is what is kept for a topic: under the lock of the Broker.
type record struct {
	of       *node
	rule     *rule // nil: none
	retained *Message
	log      log
	members  map[string]*present // by ID
	node     chain.Node[*record] // of rule

	// With an Engine:
	whole   bool     // the log has everything that the Engine has
	reading bool     // the history is being read
	waiting []waiter // for that, in their order
	missed  uint64   // the highest offset that Feed has brought after a gap
}

// rule is a Rule with the topics that have a history by it, the one without a message for the longest time first.
type rule struct {
	Rule
	topics chain.List[*record] // with messages
	empty  chain.List[*record] // without
	stay   chain.List[*record] // could not be forgotten, and have had no message since
}

// log is the history of a topic. Messages are only appended, and cut off at the front: so what a subscription has been given
// stays as it is.
type log struct {
	epoch    string
	last     uint64     // the offset of the latest message
	messages []*Message // the latest ones, up to last
	times    []time.Duration
}

// Earliest is the Position before all that is kept: Follow then begins with the whole history.
var Earliest = Position{Epoch: "earliest"}

// rule returns the rule for a topic, nil if there is none.
func (b *Broker) rule(topic string) *rule {
	for i := range b.rules {
		if Match(b.rules[i].Filter, topic) {
			return &b.rules[i]
		}
	}
	return nil
}

// kept returns the record of a topic, nil if there is none.
func (b *Broker) kept(topic string) *record {
	if n := b.tree.find(topic, false); n != nil {
		return n.record
	}
	return nil
}

// record returns the record of a topic, and makes one if there is room for it.
func (b *Broker) record(topic string) (*record, error) {
	if r := b.kept(topic); r != nil {
		return r, nil
	}
	if b.records == b.cfg.Topics && !b.forgetOldest() {
		return nil, ErrTopics
	}
	b.records++
	b.epochs++
	n := b.tree.find(topic, true)
	n.record = &record{of: n, rule: b.rule(topic)}
	n.record.node.Of = n.record
	if n.record.rule.history() {
		n.record.rule.empty.Append(&n.record.node)
	}
	if b.remote == nil { // another Broker, or this one after it has forgotten the topic, has another epoch
		n.record.log.epoch = strconv.FormatInt(b.clock.Wall().UnixMicro(), 36) + "-" + strconv.FormatUint(b.epochs, 36)
	}
	return n.record, nil
}

// forgetOldest forgets a topic that has only a history, and reports whether it has found one. A topic that has to stay costs a
// look for each of its messages; of those without a new one it looks at a few.
func (b *Broker) forgetOldest() bool {
	for i := range b.rules {
		x := &b.rules[i]
		for _, l := range []*chain.List[*record]{&x.empty, &x.topics, &x.stay} {
			for tried := 0; l.First != nil && (l != &x.stay || tried < 64); tried++ {
				r := l.First.Of
				if r.retained == nil && len(r.members) == 0 && !r.followed() && !r.reading {
					b.forget(r)
					return true
				}
				r.node.Remove()
				x.stay.Append(&r.node)
			}
		}
	}
	return false
}

// history reports whether the topics of a rule have one.
func (x *rule) history() bool { return x != nil && x.History > 0 }

// tidy forgets r if nothing is in it.
func (b *Broker) tidy(r *record) {
	if !r.rule.history() && r.retained == nil && len(r.members) == 0 {
		b.forget(r)
	}
}

func (b *Broker) forget(r *record) {
	r.node.Remove()
	r.of.record = nil
	r.of.prune()
	b.records--
}

// keep keeps m if its topic has a history, or if it is to be retained.
func (b *Broker) keep(m *Message, retain bool) error {
	r, err := b.recordOf(m, retain)
	if r == nil {
		return err
	}
	if r.rule.history() {
		m.Position = Position{r.log.epoch, r.log.last + 1}
	}
	b.put(r, m, retain)
	return nil
}

// recordOf returns the record for m, nil if nothing is kept for its topic.
func (b *Broker) recordOf(m *Message, retain bool) (*record, error) {
	if r := b.kept(m.Topic); r != nil || !b.rule(m.Topic).history() && (!retain || len(m.Data) == 0) {
		return r, nil
	}
	return b.record(m.Topic)
}

// put puts m into the record of its topic.
func (b *Broker) put(r *record, m *Message, retain bool) {
	if r.rule.history() {
		r.rule.append(r, m, b.clock.Monotonic())
	}
	switch {
	case retain && len(m.Data) == 0:
		r.retained = nil
		b.tidy(r)
	case retain:
		r.retained = &Message{Topic: m.Topic, Data: m.Data, Position: m.Position, Tag: m.Tag, Retained: true}
	}
}

// append adds m to the history of r, and makes its room from what is too old, here and in the topics without a message for the
// longest time: so each message that is added pays for others that go.
func (x *rule) append(r *record, m *Message, now time.Duration) {
	l := &r.log
	l.messages, l.times, l.last = append(l.messages, m), append(l.times, now), m.Offset
	l.cut(max(0, len(l.messages)-x.History))
	r.node.Remove()
	x.topics.Append(&r.node)
	for range 2 {
		oldest := x.topics.First.Of // there is one: r is the last
		if oldest.log.expire(now - x.Age); len(oldest.log.messages) > 0 {
			break
		}
		oldest.node.Remove()
		x.empty.Append(&oldest.node)
	}
}

// cut removes the first n messages. What was given to subscriptions stays as it is.
func (l *log) cut(n int) {
	if l.messages, l.times = l.messages[n:], l.times[n:]; len(l.messages) == 0 {
		l.messages, l.times = nil, nil // and the memory
	}
}

// expire removes what is older than a time.
func (l *log) expire(before time.Duration) {
	n, _ := slices.BinarySearch(l.times, before)
	l.cut(n)
}

// first returns the offset before the first message.
func (l *log) first() uint64 { return l.last - uint64(len(l.messages)) }

// since returns the messages after a Position, and whether these are all that came after it.
func (l *log) since(after Position) (messages []*Message, complete bool) {
	first := l.first()
	switch {
	case after == Position{}:
		return nil, true
	case after.Epoch != l.epoch || after.Offset > l.last:
		return l.messages, after == Earliest && first == 0
	case after.Offset < first:
		return l.messages, false
	}
	return l.messages[after.Offset-first:], true
}

// retained returns a message that brings the retained ones of the topics that filter matches, by topic; nil if there are none.
func (b *Broker) retained(filter string) *Message {
	var messages []*Message
	b.tree.each(filter, func(n *node) {
		if n.record != nil && n.record.retained != nil {
			messages = append(messages, n.record.retained)
		}
	})
	if messages == nil {
		return nil
	}
	return &Message{Kind: batch, more: &more{messages: messages}}
}

// recall returns a Followed message, which brings what was published after a Position.
func (b *Broker) recall(topic string, after Position) (*Message, error) {
	r, err := b.record(topic)
	if err != nil {
		return nil, err
	}
	r.log.expire(b.clock.Monotonic() - r.rule.Age)
	messages, complete := r.log.since(after)
	at := Position{r.log.epoch, r.log.last - uint64(len(messages))}
	return &Message{Kind: Followed, Topic: topic, Position: at, Complete: complete, more: &more{messages: messages}}, nil
}
