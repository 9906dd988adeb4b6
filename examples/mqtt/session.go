package main

import (
	"io"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
)

const (
	window     = 64   // messages of quality of service 1 that are on their way to a client
	maxFilters = 1000 // of a client
	failure    = 0x80 // the return code for a filter that is refused (section 3.9.3)
)

// session is the state of a client, which may outlive its connection (section 3.1.2.4). One connection at a time uses it. Its
// subscriptions stay on the scheduler of the first one.
type session struct {
	broker    *broker
	scheduler *act.Scheduler
	id        string
	clean     bool // it ends with its connection

	granted map[string]byte // the quality of service of each filter
	// queues has a subscription for each quality of service. A message that filters of both match comes twice [MQTT-3.3.5-1].
	queues  [2]*topic.Subscription
	flights []flight // what the client has not acknowledged, in order [MQTT-4.6.0-6]
	sent    int      // how many of them were sent on this connection
	last    uint16   // the identifier of the latest
}

// flight is a message of quality of service 1.
type flight struct {
	id    uint16
	m     *topic.Message
	again bool // it was sent on an earlier connection
}

// newSession returns a session without filters. A client that is too slow, or absent for too long, loses the oldest messages of
// quality of service 0. With 1 it loses no message in silence, but its session: when it comes again, Session Present is 0.
func newSession(b *broker, s *act.Scheduler, h hello) *session {
	x := &session{broker: b, scheduler: s, id: h.id, clean: h.clean, granted: map[string]byte{}}
	x.queues[0] = b.topics.Subscribe(x, topic.Options{Queue: b.queue, Overflow: topic.DropOldest})
	x.queues[1] = b.topics.Subscribe(x, topic.Options{Queue: b.queue, Overflow: topic.End})
	return x
}

// Scheduler and Own make the session a topic.Owner.
func (s *session) Scheduler() *act.Scheduler { return s.scheduler }
func (s *session) Own(io.Closer)             {}

// Close is called at the end of the connection.
func (s *session) Close() error {
	if s.clean {
		s.end()
	} else {
		s.broker.keep(s)
	}
	return nil
}

func (s *session) end() {
	_ = s.queues[0].Close() // never fails
	_ = s.queues[1].Close()
}

// resume begins another connection.
func (s *session) resume() {
	for i := range s.flights[:s.sent] {
		s.flights[i].again = true
	}
	s.sent = 0
}

// subscribe returns the quality of service that is granted, or failure.
func (s *session) subscribe(w wish) byte {
	qos := min(w.qos, 1)
	before, known := s.granted[w.filter]
	if !known && len(s.granted) == maxFilters || s.queues[qos].Add(w.filter) != nil {
		return failure
	}
	if known && before != qos {
		s.queues[before].Remove(w.filter)
	}
	s.granted[w.filter] = qos
	return qos
}

func (s *session) unsubscribe(w wish) {
	if qos, known := s.granted[w.filter]; known {
		s.queues[qos].Remove(w.filter)
		delete(s.granted, w.filter)
	}
}

// next returns the next message of quality of service 0, or nil if it has added one to the flights. If there is no message, it
// arms t and returns an act.Blocked.
func (s *session) next(t *act.Task) (*topic.Message, error) {
	if len(s.flights) == 0 || s.last-s.flights[0].id < window-1 { // otherwise an acknowledgement wakes t
		m, err := s.queues[1].Take()
		b, blocked := err.(act.Blocked)
		switch {
		case blocked:
			b.Arm(t)
		case err != nil || m.Tag == 0:
			return m, err
		default:
			s.last = max(s.last+1, 1) // an identifier is not 0
			s.flights = append(s.flights, flight{id: s.last, m: m})
			return nil, nil
		}
	}
	return s.queues[0].Take()
}

// landed removes a flight that the client has acknowledged.
func (s *session) landed(id uint16) {
	if i := slices.IndexFunc(s.flights[:s.sent], func(f flight) bool { return f.id == id }); i >= 0 {
		s.flights = slices.Delete(s.flights, i, i+1)
		s.sent--
	}
}
