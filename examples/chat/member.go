package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

const (
	// maxLine bounds a line, with its end, in bytes. A terminal that sends a longer one is disconnected.
	maxLine = 1 << 10
	// maxName bounds the name of a member or a room, and maxID the identifier of a line, in bytes.
	maxName, maxID = 32, 32
	// maxHeard is how many events a member is sent in a turn.
	maxHeard = 64
	// burst is how many lines a member may send at once: see Chat.every.
	burst = 10

	lobby = "lobby"
)

// Member is the action of a terminal's connection. The first line is the member's name; each further line is a command, or
// is said in the room.
func (c *Chat) Member(conn *listener.Conn) act.Action {
	wire := &terminal{conn: conn, lines: listener.Line{Conn: conn, Max: maxLine}}
	return &member{chat: c, wire: wire, notes: []*event{whoAreYou}}
}

// member is the task of a connection.
type member struct {
	chat *Chat
	wire wire
	id   string        // the same for others when the member connects again; "": it has not joined yet
	name string        // "": not known yet
	todo act.Action    // the work for the last wish; the next one is read when it is done
	paid time.Duration // when the wishes so far are paid for: see fast

	notes []*event // for this member only, still to be told
	held  *event   // the connection has not taken it
	left  bool     // no more is read

	room  string              // "": in none
	sub   *topic.Subscription // to the topic of the room
	here  int                 // how many are in the room; of a crowd, when last asked
	fresh bool                // what was missed has not come yet
}

// Act sends the member the lines of others, then reads its next wish and grants it.
func (m *member) Act(t *act.Task) act.Directive {
	full := m.hear(t)
	switch {
	case t.Order() != nil: // package websocket gives it this turn, and no other
		m.notes = append(m.notes, over)
		m.end(t)
		return act.Done
	case full != nil:
		return listener.Next(t, full) // a member that does not read is not read from
	case m.left && m.held == nil && len(m.notes) == 0:
		m.end(t)
		return act.Done
	case m.left:
		return act.Yield
	case m.todo != nil:
		d := m.todo.Act(t)
		if !d.Finished() {
			return d
		}
		if m.todo = nil; d == act.Failed {
			m.leave(failed)
		}
		return act.Yield
	}
	return m.read(t)
}

// end sends what there is room for.
func (m *member) end(t *act.Task) {
	for _, e := range m.notes {
		_ = m.wire.tell(e, false)
	}
	m.wire.end(t)
}

// hear sends the member the news. It returns an act.Blocked if the connection takes no more.
func (m *member) hear(t *act.Task) error {
	for range maxHeard {
		if m.held == nil {
			if m.held = m.next(t); m.held == nil {
				return m.pass(m.wire.flush())
			}
		}
		if err := m.pass(m.wire.tell(m.held, m.id != "" && m.held.by == m.id)); err != nil {
			return err
		}
		m.held = nil
	}
	t.Waker().Wake() // there may be more
	return nil
}

// pass returns an error of the connection, if it is an act.Blocked. Otherwise the member leaves.
func (m *member) pass(err error) error {
	if _, full := err.(act.Blocked); full || err == nil {
		return err
	}
	m.leave()
	return nil
}

// next returns what the member is told next; nil if that is nothing, and then the task is woken when there is more.
func (m *member) next(t *act.Task) *event {
	for {
		switch {
		case len(m.notes) > 0:
			e := m.notes[0]
			if m.notes = m.notes[1:]; len(m.notes) == 0 {
				m.notes = nil // and the memory
			}
			return e
		case m.room == "" || m.left:
			return nil
		}
		x, err := m.sub.Take()
		wait, empty := err.(act.Blocked)
		switch {
		case empty && m.fresh:
			m.fresh = false
			return ready
		case empty:
			wait.Arm(t)
			return nil
		case err != nil:
			m.leave(behind)
		case x.Kind == topic.Followed:
			m.fresh = true
			return tell("", news{Type: "follows", Epoch: x.Epoch, Offset: x.Offset, Complete: x.Complete})
		case x.Kind == topic.Joined || x.Kind == topic.Left:
			m.count(x)
		default:
			if e := told.Of(x); e.page != nil {
				return e
			}
		}
	}
}

// count notes that somebody has come or left. Of a crowd the member hears that no more.
func (m *member) count(x *topic.Message) {
	if m.here > crowd || x.Member().ID == m.id { // messages may have come before Remove
		return
	}
	if m.here--; x.Kind == topic.Joined {
		m.here += 2
	}
	e := told.Of(x)
	if m.here > crowd {
		m.sub.Remove(presenceOf(m.room))
		e = tell("", news{Type: "names", Here: m.here})
	}
	m.notes = append(m.notes, e)
}

// read reads a wish and takes it.
func (m *member) read(t *act.Task) act.Directive {
	w, err := m.wire.read(m.name != "")
	_, blocked := err.(act.Blocked)
	switch {
	case blocked:
		return listener.Next(t, err)
	case errors.Is(err, listener.ErrTooLong):
		m.leave(refuse(tooLong))
	case err != nil: // the end, or a reset
		m.leave()
	case w.Type != "":
		m.take(t, w)
	}
	return act.Yield
}

// take grants a wish of a member.
func (m *member) take(t *act.Task, w wish) {
	switch {
	case m.fast(t):
		m.notes = append(m.notes, refuseLine(tooFast, w.ID))
	case w.Type == "join":
		m.join(t, w)
	case w.Type == "leave":
		m.leave(bye)
	case m.name == "":
		m.notes = append(m.notes, whoAreYou)
	case w.Type == "who":
		m.todo = m.who(t)
	case w.Type == "say":
		switch text := printable(w.Text); {
		case len(text) >= maxLine || len(w.ID) > maxID:
			m.notes = append(m.notes, refuseLine(tooLong, w.ID))
		case text != "":
			m.todo = m.say(t, text, w.ID)
		}
	default:
		m.notes = append(m.notes, unclear)
	}
}

// fast reports whether the member sends too much: more than a burst, and then one wish each chat.every.
func (m *member) fast(t *act.Task) bool {
	now := t.Scheduler().Now()
	if m.paid = max(m.paid, now); m.paid-now > (burst-1)*m.chat.every {
		return true
	}
	m.paid += m.chat.every
	return false
}

// join enters a room, and leaves the present one.
func (m *member) join(t *act.Task, w wish) {
	name, room := cmp.Or(short(w.Name), m.name), cmp.Or(short(plain.Replace(w.Room)), m.room, lobby)
	if name == "" {
		m.notes = append(m.notes, unnamed)
		return
	}
	m.out()
	m.name = name
	if m.id == "" {
		m.id = m.chat.identify(w.Key)
	}
	m.sub = m.chat.topics.Subscribe(t, topic.Options{Queue: maxBehind, Overflow: topic.End,
		Member: topic.Member{ID: m.id, Info: []byte(name)}})
	_ = m.sub.Add(presenceOf(room)) // before the list is made, so that nobody is missing
	m.todo = m.chat.members(t, room, func(here roster) {
		if here.taken(name, m.id) {
			m.out()
			m.name = ""
			m.notes = append(m.notes, tell("* "+name+" is taken in "+room+". Your name?\n", news{Type: "taken", Room: room, Name: name}))
			return
		}
		m.enter(room, here, topic.Position{Epoch: w.Epoch, Offset: w.Offset})
	})
}

// enter follows the topic of a room, in which the member's name is free.
func (m *member) enter(room string, here roster, after topic.Position) {
	if err := m.sub.Follow(topicOf(room), after); err != nil {
		m.leave(failed)
		return
	}
	here = here.with(m.name, m.id)
	if m.room, m.here = room, here.count; m.here > crowd {
		m.sub.Remove(presenceOf(room))
	}
	m.notes = append(m.notes, tell("* "+m.name+" has come to "+room+"\n", news{Type: "welcome",
		Room: room, Name: m.name, By: m.id, Here: here.count, Names: here.names, Peers: m.chat.peers}))
}

// out leaves the room.
func (m *member) out() {
	if m.sub != nil {
		_ = m.sub.Close()
		m.sub, m.room = nil, ""
	}
}

// leave ends the member, after last words to it.
func (m *member) leave(last ...*event) {
	m.out()
	m.notes, m.left = append(m.notes, last...), true
}

// say publishes a line. It waits while there is no room for it, and until it is stored.
func (m *member) say(t *act.Task, text, id string) act.Action {
	line, err := json.Marshal(news{Type: "said", Name: m.name, Text: text, By: m.id, ID: id, At: t.Scheduler().Clock().Wall().UnixMilli()})
	if err != nil {
		panic(err) // strings and a number
	}
	var stored act.Action
	return act.Func(func(t *act.Task) act.Directive {
		if stored == nil {
			f, err := m.chat.topics.Confirm(topic.Publication{Topic: topicOf(m.room), Data: line})
			if err != nil {
				return listener.Next(t, err)
			}
			stored = f.Await()
		}
		return stored.Act(t)
	})
}

// who tells the member who is there.
func (m *member) who(t *act.Task) act.Action {
	return m.chat.members(t, m.room, func(here roster) { m.notes = append(m.notes, here.event(m.room)) })
}

// Close ends the wait of the work for a wish. The subscription ends with the task.
func (m *member) Close() error {
	if x, ok := m.todo.(io.Closer); ok {
		return x.Close()
	}
	return nil
}

// identify returns the identifier of the member with a key. The key is a secret of a page, so only that page is the same member
// again. A terminal has none, and is another member each time.
func (c *Chat) identify(key string) string {
	if key == "" {
		random := make([]byte, 16)
		if _, err := io.ReadFull(c.random, random); err != nil {
			panic(err) // never, of crypto/rand
		}
		key = string(random)
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// printable removes what could do harm to a terminal, or to the lines around it on a page: control characters, and those
// that turn the direction of what follows. Two that only join letters stay, for emoji and some scripts.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' {
			return r
		}
		return -1
	}, text))
}

// short returns a name: cut to maxName bytes, and without what cannot be seen.
func short(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	return strings.TrimSpace(strings.ToValidUTF8(name[:min(len(name), maxName)], ""))
}

// plain removes what has a meaning in the name of a topic.
var plain = strings.NewReplacer("/", "", "+", "", "#", "")
