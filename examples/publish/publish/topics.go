package publish

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// topics are the subscribers on one scheduler, by topic. Only that scheduler's thread uses them, so there is no lock.
type topics map[string][]*subscriber

var topicsOf = act.NewLocal(func(*act.Scheduler) topics { return topics{} })

// subscriber is a connection with subscriptions.
type subscriber struct {
	*listener.Conn
	topics []string
	lost   int // messages of which it was not told
}

func (x topics) add(s *subscriber, topic string) {
	x[topic] = append(x[topic], s)
	s.topics = append(s.topics, topic)
}

// remove ends all subscriptions of s.
func (x topics) remove(s *subscriber) {
	for _, topic := range s.topics {
		x.keep(topic, func(other *subscriber) bool { return other != s })
	}
	s.topics = nil
}

// deliver pushes a message to the subscribers of a topic.
func (x topics) deliver(topic string, message []byte) {
	x.keep(topic, func(s *subscriber) bool { return s.deliver(message) == nil })
}

// keep removes the subscribers of a topic that are not to be kept.
func (x topics) keep(topic string, kept func(*subscriber) bool) {
	all, ok := x[topic]
	if !ok {
		return
	}
	all = slices.DeleteFunc(all, func(s *subscriber) bool { return !kept(s) })
	if len(all) == 0 {
		delete(x, topic)
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
