package chat

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

const (
	// maxLine bounds a line, with its end. A member that sends a longer one is disconnected.
	maxLine = 1 << 10
	// maxName bounds the name of a member or a room, in bytes.
	maxName = 32
	// maxBehind is how many lines a member may be behind while its connection takes none. Then it is disconnected.
	maxBehind = 1000
	// maxHeard is how many lines a member is sent in a turn.
	maxHeard = 64
	// maxTries is how often a member tries to enter a room that ends each time.
	maxTries = 5
	// farewell is how long the end of the chat waits for a member that does not read.
	farewell = time.Second

	lobby = "lobby"
	help  = "* /join ROOM, /who or /leave\n"
	bye   = "* good bye\n"
	over  = "* the chat ends\n"
	noWay = "* there is no way in\n"
)

// Member is the action of one connection, on a scheduler with a Chat. The first line is the member's name; each further
// line is a command, or is said in the room.
func Member(c *listener.Conn) act.Action {
	chat := chats.Get(c.Scheduler()).Chat
	if chat == nil {
		panic("chat: a member without a Chat: call its Setup in a set-up function")
	}
	return &member{chat: chat, conn: c, in: listener.Line{Conn: c, Max: maxLine}, rest: "Your name?\n"}
}

type member struct {
	chat *Chat
	conn *listener.Conn
	in   listener.Line
	name string          // "": not known yet; constant from then on, since rooms read it
	bell act.AtomicWaker // rooms ring it to wake the task
	todo act.Action      // what the last line asked for; the next line is read when it is done
	rest string          // text that the connection has not taken yet

	left    bool // no more lines are read
	hurried bool

	to    string // the room wanted
	tries int
	room  process.Ref[message]
	heard *line // the last line of the room that was sent; nil: the member is in no room
}

// Act sends the member what others said, then reads its next line and does what it asks for.
func (m *member) Act(t *act.Task) act.Directive {
	m.bell.Set(t.Waker())
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
		_, _ = m.conn.WriteString(m.rest) // as far as there is room
		return act.Done
	}
	return act.Yield
}

// hear sends the member what is said in the room. It returns false when the connection takes no more.
func (m *member) hear(t *act.Task) bool {
	for range maxHeard {
		if !m.pass(t) {
			return false
		}
		if m.heard == nil {
			return true
		}
		next := m.heard.next.Load()
		if next == nil {
			return true
		}
		if m.heard = next; next.by != m {
			m.rest = next.text
		}
		if next.end != 0 {
			m.expelled(next.end)
		}
	}
	t.Waker().Wake() // there may be more
	return m.rest == ""
}

// pass writes the rest, and reports whether all of it was taken. If the member is too far behind, it aborts the
// connection and drops the rest.
func (m *member) pass(t *act.Task) bool {
	n, err := m.conn.WriteString(m.rest)
	if m.rest = m.rest[n:]; m.rest == "" {
		return true
	}
	if b, ok := err.(act.Blocked); ok && (m.heard == nil || !m.heard.leads(maxBehind)) {
		m.hurry(t)
		b.Arm(t)
		return false
	}
	m.conn.Abort() // the next read returns the error
	m.rest = ""
	return true
}

// expelled is called when the room has ended. Unless the chat ends, the member enters a new room of that name.
func (m *member) expelled(why end) {
	m.heard = nil
	if m.left = m.left || why == chatEnds; !m.left && m.todo == nil { // otherwise todo fails, since the room is gone: see done
		m.todo = m.join(m.to)
	}
}

// read reads a line and takes it. It is Done also when no line will come any more.
func (m *member) read(t *act.Task) act.Directive {
	line, err := m.in.Read()
	_, blocked := err.(act.Blocked)
	switch {
	case m.name == "" && t.Order() != nil: // a member in a room is told by the room
		m.leave(over)
	case blocked:
		return listener.Next(t, err)
	case err != nil: // the end, a reset, too long a line, or an abort
		m.leave("")
	default:
		m.take(printable(line))
	}
	return act.Done
}

// take handles a line from the member.
func (m *member) take(line string) {
	m.tries = 0
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "":
	case m.name == "":
		m.name = short(line)
		m.todo = m.join(lobby)
	case word == "/join" && rest != "":
		m.todo = act.Seq(m.out(), m.join(short(rest)))
	case line == "/who":
		m.todo = m.who()
	case line == "/leave":
		m.leave(bye)
	case strings.HasPrefix(line, "/"):
		m.rest += help
	default:
		m.todo = m.send(say{m, line})
	}
}

// leave ends the member, after a last line to it.
func (m *member) leave(word string) {
	m.rest += word
	m.left = true
	if m.heard != nil {
		m.todo = m.out()
	}
}

// done is called when todo has finished. If the member is in no room then, todo has failed because the room ended: the
// member tries again.
func (m *member) done(t *act.Task) {
	switch m.todo = nil; {
	case m.heard != nil || m.left:
	case t.Order() != nil:
		m.leave(over)
	case m.tries == maxTries:
		m.leave(noWay)
	default:
		m.tries++
		m.todo = m.join(m.to)
	}
}

// join enters a room: it asks the hall for the process, and the process for admission.
func (m *member) join(name string) act.Action {
	m.to = name
	find := &process.Ask[query, process.Ref[message]]{To: m.chat.hall, Message: m.find}
	enter := &process.Ask[message, *line]{Message: m.enter}
	return act.Seq(
		find, do(func() { m.room, enter.To = find.Value, find.Value }),
		enter, do(func() { m.heard = enter.Value }),
	)
}

func (m *member) find(r process.Reply[process.Ref[message]]) query { return find{m.to, m.room, r} }

func (m *member) enter(r process.Reply[*line]) message { return enter{m, r} }

// out leaves the room.
func (m *member) out() act.Action {
	send := m.send(leave{m})
	return act.Func(func(t *act.Task) act.Directive {
		if d := send.Act(t); !d.Finished() {
			return d
		}
		m.room, m.heard = process.Ref[message]{}, nil
		return act.Done
	})
}

func (m *member) who() act.Action {
	ask := &process.Ask[message, string]{To: m.room, Message: func(r process.Reply[string]) message { return who{r} }}
	return act.Seq(ask, do(func() { m.rest += ask.Value }))
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

// hurry bounds how long a member that does not read may delay the end of the chat.
func (m *member) hurry(t *act.Task) {
	if t.Order() != nil && !m.hurried {
		m.hurried = true
		_ = m.conn.SetWriteDeadline(t.Scheduler().Clock().Wall().Add(farewell))
	}
}

// Close leaves the room silently. It is called after a panic or a drop.
func (m *member) Close() error {
	if x, ok := m.todo.(io.Closer); ok {
		_ = x.Close()
	}
	_ = m.room.Send(m.chat.sys, leave{m}) // unless the mailbox is full
	return nil
}

// do returns an action that calls f, in one turn.
func do(f func()) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	})
}

// printable removes what could do harm to a terminal.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, string(line)))
}

// short returns a name cut to maxName bytes.
func short(name string) string {
	name = strings.TrimSpace(name)
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}
