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
	// maxLine bounds a line, with its end. Who says more at a time has to leave.
	maxLine = 1 << 10
	// maxName bounds a name, of a member or a room, in bytes.
	maxName = 32
	// maxBehind is how many lines a member may be behind while its connection takes none. Then it is cut off.
	maxBehind = 1000
	// maxHeard is how many lines a member hears in a turn.
	maxHeard = 64
	// maxTries is how often a member tries to come into a room that ends each time.
	maxTries = 5
	// farewell is for how long who does not read is waited for when the chat ends.
	farewell = time.Second

	lobby = "lobby"
	help  = "* /join ROOM, /who or /leave\n"
	bye   = "* good bye\n"
	over  = "* the chat ends\n"
	noWay = "* there is no way in\n"
)

// Member is the action of one connection, on a scheduler with a Chat. The first line is a name; the others are said, or
// commands.
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
	name string     // "": not said yet; it does not change then, since rooms read it
	bell act.Bell   // rooms ring it
	todo act.Action // what the last line has asked for; the next is read when it is done
	rest string     // what the connection has not taken yet

	left    bool // nothing is read any more
	hurried bool

	to    string // the room wanted
	tries int
	room  process.Ref[message]
	heard *line // the last of the room; nil: the member is in none
}

// Act hears what others say, and has the next line of its own read and done.
func (m *member) Act(t *act.Task) act.Directive {
	m.bell.Set(t.Waker())
	heard := m.hear(t)
	if m.todo == nil && !m.left {
		if !heard {
			return act.Wait // who does not read is not read
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

// hear passes on what is said in the room. It reports false when the connection takes no more.
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

// pass gives the connection what it has not taken yet. One that takes nothing while the others say too much is cut off.
func (m *member) pass(t *act.Task) bool {
	n, err := m.conn.WriteString(m.rest)
	if m.rest = m.rest[n:]; m.rest == "" {
		return true
	}
	if b, ok := err.(listener.Blocked); ok && (m.heard == nil || !m.heard.leads(maxBehind)) {
		m.hurry(t)
		b.Arm(t)
		return false
	}
	m.conn.Abort() // as the next read says
	m.rest = ""
	return true
}

// expelled is the end of the room. One that nobody wanted to end is made anew, with those who were there.
func (m *member) expelled(why end) {
	m.heard = nil
	if m.left = m.left || why == chatEnds; !m.left && m.todo == nil { // else who was asked is not there any more: see done
		m.todo = m.join(m.to)
	}
}

// read takes a line from the connection. It is Done also when there will be none any more.
func (m *member) read(t *act.Task) act.Directive {
	line, err := m.in.Read()
	_, blocked := err.(listener.Blocked)
	switch {
	case m.name == "" && t.Order() != nil: // who is in a room hears it there
		m.leave(over)
	case blocked:
		return listener.Next(t, err)
	case err != nil: // the end, a reset, too long a line, or cut off
		m.leave("")
	default:
		m.take(printable(line))
	}
	return act.Done
}

// take takes a line that the member has said.
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

// leave is the end, after a last word.
func (m *member) leave(word string) {
	m.rest += word
	m.left = true
	if m.heard != nil {
		m.todo = m.out()
	}
}

// done comes behind todo. If that has failed, the room has ended: the member hears so, or was not in yet.
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

// join is the way into a room. The hall says which process that is, and the process lets the member in.
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

// out is the way out.
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

// send sends to the room. While its mailbox is full the member has to wait.
func (m *member) send(x message) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		if err := m.room.Send(t, x); err != nil {
			return listener.Next(t, err)
		}
		return act.Done
	})
}

// hurry lets a member that does not read hold up the end of the chat no longer than that.
func (m *member) hurry(t *act.Task) {
	if t.Order() != nil && !m.hurried {
		m.hurried = true
		_ = m.conn.SetWriteDeadline(t.Scheduler().Clock().Wall().Add(farewell))
	}
}

// Close leaves the room without a word, after a panic or a drop.
func (m *member) Close() error {
	if x, ok := m.todo.(io.Closer); ok {
		_ = x.Close()
	}
	_ = m.room.Send(m.chat.sys, leave{m}) // if it takes that
	return nil
}

// do is a step that can be done at once.
func do(f func()) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	})
}

// printable keeps what can harm nobody's terminal.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, string(line)))
}

// short is what is kept of a name.
func short(name string) string {
	name = strings.TrimSpace(name)
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}
