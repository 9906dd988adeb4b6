package publish

import (
	"fmt"
	"slices"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// topics are the subscribers on one scheduler, by topic. Only that scheduler's thread uses them, so there is no lock.
type topics map[string][]*subscriber

var topicsOf = act.NewLocal(func(*act.Scheduler) topics { return topics{} })

// audiences are the schedulers that have subscribers, by topic: all that schedulers share.
var audiences = struct {
	sync.Mutex
	of map[place]*act.Audience
}{of: map[place]*act.Audience{}}

// place is where an audience is.
type place struct {
	group *act.Group
	topic string
}

// audience returns the schedulers that have subscribers of a topic, nil if none has.
func audience(g *act.Group, topic string) *act.Audience {
	audiences.Lock()
	defer audiences.Unlock()
	return audiences.of[place{g, topic}]
}

// join adds s, which has got its first subscriber of a topic.
func join(s *act.Scheduler, topic string) {
	audiences.Lock()
	defer audiences.Unlock()
	at := place{s.Group(), topic}
	if audiences.of[at] == nil {
		audiences.of[at] = &act.Audience{}
	}
	audiences.of[at].Join(s)
}

// leave takes s away, which has lost its last one.
func leave(s *act.Scheduler, topic string) {
	audiences.Lock()
	defer audiences.Unlock()
	if at := (place{s.Group(), topic}); audiences.of[at].Leave(s) {
		delete(audiences.of, at)
	}
}

// subscriber is a connection with subscriptions.
type subscriber struct {
	*listener.Conn
	topics []string
	lost   int // messages of which it was not told
}

func (x topics) add(s *subscriber, topic string) {
	if len(x[topic]) == 0 {
		join(s.Scheduler(), topic)
	}
	x[topic] = append(x[topic], s)
	s.topics = append(s.topics, topic)
}

// remove ends all subscriptions of s.
func (x topics) remove(s *subscriber) {
	for _, topic := range s.topics {
		x.keep(s.Scheduler(), topic, func(other *subscriber) bool { return other != s })
	}
	s.topics = nil
}

// deliver pushes a message to the subscribers of a topic.
func (x topics) deliver(at *act.Scheduler, topic string, message []byte) {
	x.keep(at, topic, func(s *subscriber) bool { return s.deliver(message) == nil })
}

// keep removes the subscribers of a topic that are not to be kept.
func (x topics) keep(at *act.Scheduler, topic string, kept func(*subscriber) bool) {
	all, ok := x[topic]
	if !ok {
		return
	}
	all = slices.DeleteFunc(all, func(s *subscriber) bool { return !kept(s) })
	if len(all) == 0 {
		delete(x, topic)
		leave(at, topic)
	} else {
		x[topic] = all
	}
}

// deliver pushes a message, behind a line that says how many before it were dropped.
func (s *subscriber) deliver(message []byte) (err error) {
	if s.lost > 0 {
		if err = s.Push(fmt.Appendf(nil, "# %d lost\n", s.lost)); err == nil {
			s.lost = 0
		}
	}
	if err == nil {
		err = s.PushShared(message)
	}
	if err == listener.ErrDropped {
		s.lost++
		return nil
	}
	return err
}
