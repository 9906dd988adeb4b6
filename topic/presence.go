package topic

import (
	"cmp"
	"slices"

	"github.com/daimon-go/daimon/future"
)

// Member is somebody who is present in a topic.
type Member struct {
	ID   string
	Info []byte // for others, such as a name; must not be changed
}

// present is a Member with the number of its subscriptions.
type present struct {
	Member
	count int
}

// presence is what the names of the topics of Joined and Left begin with.
const presence = "$presence/"

// Members returns a future of who is present in a topic, by ascending IDs; with an Engine on all machines. A subscription to
// "$presence/" and the name, begun before, gets each later change. Any goroutine.
func (b *Broker) Members(topic string) *future.Future[[]Member] {
	f := future.New[[]Member](b.lanes[0].s)
	if r := b.remote; r != nil {
		r.reads.Execute(func() {
			all, err := r.engine.Members(r.ctx, topic)
			if err != nil {
				_ = f.Fail(err)
				return
			}
			_ = f.Resolve(sorted(all))
		})
		return f
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Member
	if r := b.kept(topic); r != nil {
		for _, p := range r.members {
			all = append(all, p.Member)
		}
	}
	_ = f.Resolve(sorted(all))
	return f
}

func sorted(all []Member) []Member {
	slices.SortFunc(all, func(x, y Member) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// shows returns the member that is present by a subscription of sub to a filter; nil: none is.
func (b *Broker) shows(sub *Subscription, filter string) *Member {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.extra == nil || sub.extra.member.ID == "" || isWild(filter) {
		return nil
	}
	if rule := b.rule(filter); rule == nil || !rule.Presence {
		return nil
	}
	return &sub.extra.member
}

// join makes the member of sub present in a topic, if its rule says so. It is called before sub gets messages of the topic, with
// the lock.
func (b *Broker) join(sub *Subscription, topic string) error {
	m := b.shows(sub, topic)
	switch {
	case m == nil:
		return nil
	case b.tooLong(m.ID):
		return ErrName
	}
	r, err := b.record(topic)
	if err != nil {
		return err
	}
	if p := r.members[m.ID]; p != nil {
		p.count++
		return nil
	}
	if r.members == nil {
		r.members = map[string]*present{}
	}
	r.members[m.ID] = &present{*m, 1}
	b.change(Change{r.of.path(), Joined, *m})
	return nil
}

// leave undoes join.
func (b *Broker) leave(sub *Subscription, topic string) {
	m := b.shows(sub, topic)
	if m == nil {
		return
	}
	r := b.kept(topic)
	p := r.members[m.ID]
	if p.count--; p.count > 0 {
		return
	}
	delete(r.members, p.ID)
	b.tidy(r)
	b.change(Change{topic, Left, p.Member})
}

// change publishes that a member has joined or left, with the lock. Lanes have no bound for that.
func (b *Broker) change(c Change) {
	if b.remote != nil {
		b.announce(c)
		return
	}
	m := &Message{Topic: presence + c.Topic, Kind: c.Kind, more: &more{member: c.Member}}
	b.route(m)
	_ = b.keep(m, false) // too many topics: it comes without a Position
	b.deliver(m)
}
