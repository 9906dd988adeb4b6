// Package publish is a publish/subscribe server of lines, on any number of reactors.
//
//	sub TOPIC         the client gets all messages of the topic; the answer is "+ TOPIC"
//	pub TOPIC TEXT    all subscribers of the topic get the line "TOPIC TEXT"
//
// A line that is neither is answered with "! " and the reason, and the line after lost messages begins with "# ".
//
// Each reactor has a map of its own connections by topic, and the reactors that have any are the [act.Audience] of the topic. A
// message goes to those by [act.Group.BroadcastTo], so all subscribers of a topic get its messages in the same order, and each
// reactor pushes it to its own connections. Messages that arrive together leave together, with one send for each connection.
//
//	publisher ─ BroadcastTo ┬─▶ reactor 0: topics ── Push ──▶ connections
//	                        └─▶ reactor 1: topics ── Push ──▶ connections
//
// While an inbox is full, publishers wait, and are not read from. A subscriber that does not read holds up nobody: what
// happens to it is Limits.Overflow of the service. A message that waits for slow subscribers is not copied for each.
// docs/shared-state.md has the other ways.
package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

const (
	// MaxLine is the longest line, with its end. Limits.High must be at least twice that.
	MaxLine   = 4 << 10
	maxName   = 64 // bytes of a topic
	maxTopics = 64 // of a client
	batch     = 64 // lines in a turn
)

// goodbye is the last answer, and that to lines which come behind an order.
const goodbye = "the server ends: connect again"

// Serve is the action of one connection. On an order it ends at once: the client is told to connect again, and each line that has
// arrived and is not published yet is refused. In an upgrade all clients so come to the new process, and none stays where it would
// miss what the others publish: what a client misses while it connects, it knows to have missed. Limits.Overflow of the
// service is Drop or Abort; with Block a subscriber that is too slow loses its subscriptions.
func Serve(c *listener.Conn) act.Action {
	return &session{subscriber: subscriber{Conn: c}, lines: listener.Line{Conn: c, Max: MaxLine}}
}

type session struct {
	subscriber
	lines   listener.Line
	publish func(*act.Scheduler) // waits for room in the inboxes; nil: none does
	topic   string               // of publish
	answer  []byte               // waits for room in the connection; nil: none does
}

func (x *session) Act(t *act.Task) act.Directive {
	for range batch {
		err := x.step(t)
		switch {
		case errors.Is(err, net.ErrClosed): // by a Push
			return act.Done
		case err != nil && x.publish == nil && t.Order() != nil:
			// A client that is too slow for its answers sees a reset.
			_ = x.PushOr(listener.Abort, append(x.answer, "! "+goodbye+"\n"...))
			return act.Done
		case err != nil:
			return listener.Next(t, err)
		}
	}
	return act.Yield
}

// step takes a line, when the one before is published or answered. An answer is not dropped, whatever Limits.Overflow is: a
// client that does not read it is not read from.
func (x *session) step(t *act.Task) error {
	switch {
	case x.publish != nil:
		err := t.Scheduler().Group().BroadcastTo(x.publish, audience(t.Scheduler().Group(), x.topic))
		if err == nil {
			x.publish = nil
		}
		return err
	case x.answer != nil:
		err := x.PushOr(listener.Block, x.answer)
		if err == nil {
			x.answer = nil
		}
		return err
	}
	line, err := x.lines.Read()
	if errors.Is(err, listener.ErrTooLong) {
		_ = x.PushOr(listener.Abort, []byte("! a line is too long\n")) // nothing more is read
		return io.EOF
	}
	if err == nil {
		if refused := x.take(t, line); refused != "" {
			x.answer = fmt.Appendf(nil, "! %s\n", refused)
		}
	}
	return err
}

// take handles a line. It returns why it was refused.
func (x *session) take(t *act.Task, line []byte) (refused string) {
	verb, rest, _ := bytes.Cut(line, []byte(" "))
	name, _, hasText := bytes.Cut(rest, []byte(" "))
	topic := string(name) // a copy, as message: what was read is lent for the turn only
	switch {
	case t.Order() != nil: // subscribers may be with the next process by now
		return goodbye
	case string(verb) != "sub" && string(verb) != "pub":
		return "say sub TOPIC or pub TOPIC TEXT"
	case topic == "" || len(topic) > maxName || strings.ContainsAny(topic[:1], "+!#"):
		return fmt.Sprintf("a topic has 1 to %d bytes and does not begin with +, ! or #", maxName)
	case string(verb) == "pub" && !hasText:
		return "there is no text"
	case string(verb) == "pub":
		message := append(bytes.Clone(rest), '\n')
		x.topic = topic
		x.publish = func(s *act.Scheduler) { topicsOf.Get(s).deliver(s, topic, message) }
	case hasText:
		return "a topic has no blanks"
	case len(x.topics) == maxTopics:
		return fmt.Sprintf("there are %d subscriptions already", maxTopics)
	default:
		if !slices.Contains(x.topics, topic) {
			topicsOf.Get(t.Scheduler()).add(&x.subscriber, topic)
		}
		x.answer = fmt.Appendf(nil, "+ %s\n", topic)
	}
	return ""
}

// Close ends the subscriptions. The scheduler calls it when the task has ended, however it ended.
func (x *session) Close() error {
	topicsOf.Get(x.Scheduler()).remove(&x.subscriber)
	return nil
}
