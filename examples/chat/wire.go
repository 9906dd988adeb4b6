package main

import (
	"encoding/json"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
)

// wire is the connection of a member, with its protocol.
type wire interface {
	// read returns what the member wants next. An error that is not an act.Blocked means that nothing more comes.
	read(named bool) (wish, error)
	// tell sends an event, or nothing of it; then the error is an act.Blocked, or says that the connection has ended. own
	// reports whether the member itself has said it.
	tell(e *event, own bool) error
	// flush returns an act.Blocked if the connection has not taken all of the last event.
	flush() error
	// end is called before the member's task is done.
	end(t *act.Task)
}

// wish is what a member asks for.
type wish struct {
	// Type is one of
	//
	//	join   to enter Room as Name, or as before, and to get what was said after the position Epoch and Offset
	//	say    to say Text, which is the line ID of this member
	//	who    to know who is there
	//	leave  to end the connection
	//
	// Anything else is not understood, but for the empty wish, which is none.
	Type   string `json:"type"`
	Room   string `json:"room"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	ID     string `json:"id"`
	Key    string `json:"key"` // of a join: a secret by which the member is the same when it comes again
	Epoch  string `json:"epoch"`
	Offset uint64 `json:"offset"`
}

// terminal is a connection with the protocol of lines.
type terminal struct {
	conn  *listener.Conn
	lines listener.Line
	rest  string // of an event that the connection has taken a part of
}

func (x *terminal) read(named bool) (wish, error) {
	line, err := x.lines.Read()
	if err != nil {
		return wish{}, err
	}
	text := printable(string(line))
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "":
		return wish{}, nil
	case !named:
		return wish{Type: "join", Name: text}, nil
	case word == "/join" && rest != "":
		return wish{Type: "join", Room: rest}, nil
	case text == "/who", text == "/leave":
		return wish{Type: text[1:]}, nil
	case text[0] == '/':
		return wish{Type: "?"}, nil
	}
	return wish{Type: "say", Text: text}, nil
}

// tell does not show what the member has typed itself.
func (x *terminal) tell(e *event, own bool) error {
	if err := x.flush(); err != nil || own {
		return err
	}
	n, _ := x.conn.WriteString(e.text) // flush finds the error again
	x.rest = e.text[n:]
	return nil
}

func (x *terminal) flush() error {
	if x.rest == "" {
		return nil
	}
	n, err := x.conn.WriteString(x.rest)
	x.rest = x.rest[n:]
	return err
}

func (x *terminal) end(*act.Task) { _ = x.flush() }

// page is a connection of WebSocket. Each message is a wish or news, in JSON.
type page struct{ conn *websocket.Conn }

func (x *page) read(bool) (w wish, err error) {
	m, err := x.conn.Receive()
	if err == nil && (m.Type != websocket.Text || json.Unmarshal(m.Data, &w) != nil || w.Type == "") {
		w = wish{Type: "?"}
	}
	return w, err
}

// tell sends the member's own lines as well: so it knows that they were said, and in which order.
func (x *page) tell(e *event, _ bool) error { return x.conn.Push(e.page) }

func (x *page) flush() error { return nil }

func (x *page) end(t *act.Task) {
	if t.Order() != nil {
		x.conn.Close(websocket.CodeGoingAway, "the chat ends")
	}
}
