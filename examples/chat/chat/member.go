package chat

import (
	"strings"
	"unicode"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

const (
	// maxLine bounds a line, with its end. Who says more at a time has to leave.
	maxLine = 1 << 10
	// maxName bounds a name, in bytes.
	maxName = 32
)

// Member is the action of one connection. A member that does not read as fast as the others talk is cut off
// when Limits.High bytes wait for it: nobody waits for the slowest. On an order it goes on until the member
// leaves.
func Member(c *listener.Conn) act.Action {
	_, _ = c.WriteString("Your name?\n") // the first bytes of a connection always find room
	return &member{conn: c, in: listener.Line{Conn: c, Max: maxLine}, room: rooms.Get(c.Scheduler())}
}

type member struct {
	conn *listener.Conn
	in   listener.Line
	room *room
	name string // "": not said yet, and not in the room
	said *message
	left bool
}

// Act takes one line, and takes it to every room before it takes the next.
func (m *member) Act(t *act.Task) act.Directive {
	if m.said == nil {
		line, err := m.in.Read()
		if _, blocked := err.(listener.Blocked); blocked {
			return listener.Next(t, err)
		}
		if err == nil {
			m.take(printable(line))
		} else { // whatever it is: the end, a reset, too long a line, or too slow
			m.leave()
		}
	}
	if m.said != nil && !m.said.passOn(m.room.s) {
		return act.Yield
	}
	if m.said = nil; m.left {
		return act.Done
	}
	return act.Yield
}

// take takes a line that the member has said.
func (m *member) take(line string) {
	switch {
	case line == "":
	case m.name != "":
		m.say(m.name + ": " + line)
	default:
		m.name = strings.ToValidUTF8(line[:min(len(line), maxName)], "")
		m.room.enter(m)
		m.say("* " + m.name + " has come")
		m.hear(m.said.line) // so that it knows that it is in
	}
}

func (m *member) leave() {
	m.left = true
	m.room.leave(m)
	if m.name != "" {
		m.say("* " + m.name + " has left")
	}
}

func (m *member) say(line string) {
	m.said = &message{line: line + "\n"}
	m.room.tell(m.said.line, m)
}

// hear is called in the turns of others, and in posted functions. The connection sends what is written
// without a turn of this task; Abort wakes it, and its next Read says that the connection is closed.
func (m *member) hear(line string) {
	if n, _ := m.conn.WriteString(line); n < len(line) {
		m.conn.Abort()
	}
}

// Close leaves the room without a word, after a panic or a drop.
func (m *member) Close() error {
	m.room.leave(m)
	return nil
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
