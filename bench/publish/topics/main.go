// Command topics is the measured server, a publish/subscribe server of lines. "sub TOPIC" subscribes, and is answered by
// "+ TOPIC". "pub TOPIC TEXT" sends the line "TOPIC TEXT" to all subscribers of the topic.
//
// Each scheduler has a map of its own subscribers by topic, so there is no lock. A message is posted to all schedulers, each of
// which pushes it to its own subscribers: all get the messages of a topic in the same order. While an inbox is full,
// publishers wait, and are not read from. A subscriber that does not read loses its connection.
package main

import (
	"bytes"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

const (
	maxLine = 4 << 10
	batch   = 64 // lines in a turn
)

func main() {
	program.Serve("127.0.0.1:7013", serve)
}

// topicsOf has the subscribers on a scheduler, by topic.
var topicsOf = act.NewLocal(func(*act.Scheduler) map[string][]*listener.Conn { return map[string][]*listener.Conn{} })

// session is the action of a connection.
type session struct {
	*listener.Conn
	lines   listener.Line
	topics  []string
	publish func(*act.Scheduler) // waits for room in the inboxes; nil: none does
}

func serve(c *listener.Conn) act.Action {
	return &session{Conn: c, lines: listener.Line{Conn: c, Max: maxLine}}
}

func (x *session) Act(t *act.Task) act.Directive {
	for range batch {
		if err := x.step(t); err != nil {
			return listener.Next(t, err)
		}
	}
	return act.Yield
}

// step takes a line, when the one before is published.
func (x *session) step(t *act.Task) error {
	if x.publish == nil {
		line, err := x.lines.Read()
		if err != nil {
			return err
		}
		verb, rest, _ := bytes.Cut(line, []byte(" "))
		name, _, _ := bytes.Cut(rest, []byte(" "))
		topic := string(name)
		if string(verb) == "sub" {
			x.topics = append(x.topics, topic)
			topics := topicsOf.Get(x.Scheduler())
			topics[topic] = append(topics[topic], x.Conn)
			return x.Push([]byte("+ " + topic + "\n"))
		}
		message := append(bytes.Clone(rest), '\n')
		x.publish = func(s *act.Scheduler) {
			for _, c := range topicsOf.Get(s)[topic] {
				if c.PushShared(message) != nil { // it is too slow, or closed
					c.Abort()
				}
			}
		}
	}
	err := t.Scheduler().Group().Broadcast(x.publish)
	if err == nil {
		x.publish = nil
	}
	return err
}

// Close ends the subscriptions.
func (x *session) Close() error {
	topics := topicsOf.Get(x.Scheduler())
	for _, topic := range x.topics {
		topics[topic] = slices.DeleteFunc(topics[topic], func(c *listener.Conn) bool { return c == x.Conn })
	}
	return nil
}
