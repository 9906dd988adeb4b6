package topic

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// record is what is kept for a topic: under the lock of the Broker.
type record struct {
	of       *node
	rule     *Rule // nil: none
	retained *Message
	log      log
	members  map[string]*present // by ID
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
func (b *Broker) rule(topic string) *Rule {
	for i := range b.cfg.Rules {
		if Match(b.cfg.Rules[i].Filter, topic) {
			return &b.cfg.Rules[i]
		}
	}
	return nil
}

// record returns the record of a topic, and makes one if there is room for it.
func (b *Broker) record(topic string) (*record, error) {
	if n := b.tree.find(topic, false); n != nil && n.record != nil {
		return n.record, nil
	}
	if b.records == b.cfg.Topics {
		return nil, ErrTopics
	}
	b.records++
	b.epochs++
	n := b.tree.find(topic, true)
	n.record = &record{of: n, rule: b.rule(topic)}
	// Another Broker, or this one after it has forgotten the topic, has another epoch.
	n.record.log.epoch = strconv.FormatInt(b.clock.Wall().UnixMicro(), 36) + "-" + strconv.FormatUint(b.epochs, 36)
	return n.record, nil
}

// forget removes a record in which nothing is.
func (b *Broker) forget(r *record) {
	if r.retained == nil && len(r.log.messages) == 0 && len(r.members) == 0 {
		r.of.record = nil
		r.of.prune()
		b.records--
	}
}

// keep keeps m if its topic has a history, or if it is to be retained.
func (b *Broker) keep(m *Message, retain bool) error {
	rule := b.rule(m.Topic)
	history := rule != nil && rule.History > 0
	if !history && !retain {
		return nil
	}
	r, err := b.record(m.Topic)
	if err != nil {
		return err
	}
	if history {
		m.Position = Position{r.log.epoch, r.log.last + 1}
		r.log.append(m, rule.History, b.clock.Monotonic())
	}
	switch {
	case retain && len(m.Data) == 0:
		r.retained = nil
		b.forget(r)
	case retain:
		r.retained = &Message{Topic: m.Topic, Data: m.Data, Position: m.Position, Tag: m.Tag, Retained: true}
	}
	return nil
}

func (l *log) append(m *Message, most int, now time.Duration) {
	l.messages, l.times, l.last = append(l.messages, m), append(l.times, now), m.Offset
	if n := len(l.messages) - most; n > 0 {
		l.messages, l.times = l.messages[n:], l.times[n:]
	}
}

// expire cuts off what is too old.
func (l *log) expire(before time.Duration) {
	n, _ := slices.BinarySearch(l.times, before)
	l.messages, l.times = l.messages[n:], l.times[n:]
}

// since returns the messages after a Position, and whether these are all that came after it.
func (l *log) since(after Position) (messages []*Message, complete bool) {
	first := l.last - uint64(len(l.messages)) // the offset before the first message
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

// retained returns the retained messages of the topics that filter matches, by topic.
func (b *Broker) retained(filter string) (messages []*Message) {
	b.tree.each(filter, func(n *node) {
		if n.record != nil && n.record.retained != nil {
			messages = append(messages, n.record.retained)
		}
	})
	return messages
}

func (b *Broker) follow(sub *Subscription, topic string, after Position) error {
	rule := b.rule(topic)
	if rule == nil || rule.History == 0 {
		return ErrNoHistory
	}
	return sub.begin(strings.Clone(topic), func(b *Broker) []*Message {
		r, err := b.record(topic)
		if err != nil {
			return nil // TODO
		}
		r.log.expire(b.clock.Monotonic() - rule.Age)
		messages, complete := r.log.since(after)
		first := &Message{Kind: Followed, Topic: topic, Position: Position{r.log.epoch, r.log.last - uint64(len(messages))}, Complete: complete}
		return append([]*Message{first}, messages...)
	})
}
