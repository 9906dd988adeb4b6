package main

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

const (
	// maxLine bounds a line, with its end, in bytes. A terminal that sends a longer one is disconnected.
	maxLine = 1 << 10
	// maxName bounds the name of a member or a room, in bytes.
	maxName = 32
	// maxBehind is how many lines a member may be behind while its connection takes none. Then it is disconnected.
	maxBehind = 1000
	// maxHeard is how many lines a member is sent in a turn.
	maxHeard = 64
	// maxTries is how often a member tries to enter a room that ends each time.
	maxTries = 5
	// burst is how many lines a member may send at once: see Chat.every.
	burst = 10
	// farewell is how long the end of the chat waits for a member that does not read.
	farewell = time.Second

	lobby = "lobby"
)

// Member is the action of a terminal's connection. The first line is the member's name; each further line is a command, or
// is said in the room.
func (c *Chat) Member(conn *listener.Conn) act.Action {
	wire := &terminal{conn: conn, lines: listener.Line{Conn: conn, Max: maxLine}}
	return &member{chat: c, wire: wire, notes: []event{whoAreYou}, seat: &seat{}}
}

// member is the task of a connection.
type member struct {
	chat  *Chat
	wire  wire
	name  string        // "": not known yet
	todo  act.Action    // the work for the last wish; the next one is read when it is done
	notes []event       // for this member only, still to be told
	paid  time.Duration // when the wishes so far are paid for: see fast

	left  bool // no more is read
	until time.Duration
	timer act.Timer // at until, to which the end of the chat waits

	to    string // the room wanted
	tries int
	room  process.Ref[message]
	seat  *seat
	heard *line // the last line of the room that was sent; nil: the member is in no room
}

// Act sends the member the lines of others, then reads its next wish and grants it.
func (m *member) Act(t *act.Task) act.Directive {
	m.seat.bell.Set(t.Waker())
	heard := m.hear(t)
	if m.todo == nil && !m.left {
		if !heard {
			return act.Wait // a member that does not read is not read from
		}
		if d := m.read(t); d != act.Done {
			return d
		}
	}
	if m.todo != nil {
		if d := m.todo.Act(t); !d.Finished() {
			return d
		}
		m.done(t)
	}
	if m.left && m.todo == nil {
		for _, e := range m.notes {
			_ = m.wire.tell(e, false) // as far as there is room
		}
		m.wire.end(t)
		return act.Done
	}
	return act.Yield
}

// hear sends the member the news. It returns false when the connection takes no more.
func (m *member) hear(t *act.Task) bool {
	for range maxHeard {
		if len(m.notes) > 0 {
			if !m.pass(t, m.wire.tell(m.notes[0], false)) {
				return false
			}
			m.notes = m.notes[1:]
			continue
		}
		var next *line
		if m.heard != nil {
			next = m.heard.next.Load()
		}
		if next == nil {
			m.notes = nil
			return m.pass(t, m.wire.flush())
		}
		if !m.pass(t, m.wire.tell(next.event, next.by == m.seat)) {
			return false
		}
		if m.heard = next; next.end != 0 {
			m.expelled(next.end)
		}
	}
	t.Waker().Wake() // there may be more
	return true
}

// pass reports whether the connection has taken all bytes. If the member is too far behind, it aborts the
// connection, which takes everything then.
func (m *member) pass(t *act.Task, err error) bool {
	if err == nil {
		return true
	}
	if b, ok := err.(act.Blocked); ok && (m.heard == nil || !m.heard.leads(maxBehind)) && !m.late(t) {
		b.Arm(t)
		return false
	}
	m.wire.abort() // the next read returns an error
	return true
}

// late reports whether the end of the chat waits for this member no longer.
func (m *member) late(t *act.Task) bool {
	if t.Order() == nil {
		return false
	}
	now := t.Scheduler().Now()
	if m.until == 0 {
		m.until = now + farewell
		t.WakeAt(&m.timer, m.until)
	}
	return now >= m.until
}

// expelled is called when the room has ended. Unless the chat ends, the member enters a new room of that name.
func (m *member) expelled(why end) {
	m.heard = nil
	if m.left = m.left || why == chatEnds; !m.left && m.todo == nil { // otherwise todo fails, since the room is gone: see done
		m.todo = m.join()
	}
}

// read reads a wish and takes it. It is also Done if no wish will come any more.
func (m *member) read(t *act.Task) act.Directive {
	w, err := m.wire.read(m.name != "")
	_, blocked := err.(act.Blocked)
	switch {
	case m.name == "" && t.Order() != nil: // a member in a room is told by the room
		m.leave(over)
	case blocked:
		return listener.Next(t, err)
	case errors.Is(err, listener.ErrTooLong):
		m.leave(tooLong)
	case err != nil: // the end, a reset, or an abort
		m.leave()
	case w.Type != "":
		m.take(t, w)
	}
	return act.Done
}

// take grants a wish of a member.
func (m *member) take(t *act.Task, w wish) {
	m.tries = 0
	switch {
	case m.fast(t):
		m.notes = append(m.notes, tooFast)
	case w.Type == "join":
		name := cmp.Or(short(w.Name), m.name)
		if name == "" {
			m.notes = append(m.notes, unnamed)
			return
		}
		m.name, m.to = name, cmp.Or(short(w.Room), m.to, lobby)
		if m.todo = m.join(); m.heard != nil {
			m.todo = act.Seq(m.out(), m.todo)
		}
	case w.Type == "leave":
		m.leave(bye)
	case w.Type == "who" && m.name != "":
		m.todo = m.who()
	case w.Type == "say" && m.name != "":
		switch text := printable(w.Text); {
		case len(text) >= maxLine:
			m.notes = append(m.notes, tooLong)
		case text != "":
			m.todo = m.send(say{m.seat, text})
		}
	case m.name == "":
		m.notes = append(m.notes, whoAreYou)
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

// leave ends the member, after last words to it.
func (m *member) leave(last ...event) {
	m.notes = append(m.notes, last...)
	m.left = true
	if m.heard != nil {
		m.todo = m.out()
	}
}

// done is called when todo has finished. If the member is in no room then, todo has failed because the room ended: the
// member tries again.
func (m *member) done(t *act.Task) {
	switch m.todo = nil; {
	case m.heard != nil || m.left || m.name == "":
	case t.Order() != nil:
		m.leave(over)
	case m.tries == maxTries:
		m.leave(noWay)
	default:
		m.tries++
		m.todo = m.join()
	}
}

// join enters the room that is wanted: it asks the hall for the process, and the process for admission.
func (m *member) join() act.Action {
	fresh := &seat{name: m.name}
	find := &process.Ask[query, process.Ref[message]]{To: m.chat.hall, Message: m.find}
	enter := &process.Ask[message, entry]{Message: func(r process.Reply[entry]) message { return enter{fresh, r} }}
	return act.Seq(
		find, do(func() { m.seat, m.room, enter.To = fresh, find.Value, find.Value }),
		enter, do(func() { m.enter(enter.Value) }),
	)
}

func (m *member) find(r process.Reply[process.Ref[message]]) query { return find{m.to, m.room, r} }

// enter takes the room's answer. Without another name the member enters no room.
func (m *member) enter(a entry) {
	if m.heard = a.after; m.heard == nil {
		a.welcome = tell("* "+m.name+" is taken in "+m.to+". Your name?\n", news{Type: "taken", Room: m.to, Name: m.name})
		m.name, m.room = "", process.Ref[message]{}
	}
	m.notes = append(m.notes, a.welcome)
}

// out leaves the room.
func (m *member) out() act.Action {
	send := m.send(leave{m.seat})
	return act.Func(func(t *act.Task) act.Directive {
		if d := send.Act(t); !d.Finished() {
			return d
		}
		m.room, m.heard = process.Ref[message]{}, nil
		return act.Done
	})
}

func (m *member) who() act.Action {
	ask := &process.Ask[message, event]{To: m.room, Message: func(r process.Reply[event]) message { return who{r} }}
	return act.Seq(ask, do(func() { m.notes = append(m.notes, ask.Value) }))
}

// send sends to the room. It waits while the mailbox is full.
func (m *member) send(x message) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		if err := m.room.Send(t, x); err != nil {
			return listener.Next(t, err)
		}
		return act.Done
	})
}

// Close leaves the room, if the member has not done so: after a panic or a drop, or because its connection has ended while
// it waited for the room.
func (m *member) Close() error {
	if x, ok := m.todo.(io.Closer); ok {
		_ = x.Close()
	}
	m.seat.desert()
	return nil
}

// do returns an action that calls f, in one turn.
func do(f func()) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	})
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
