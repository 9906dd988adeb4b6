package main

import (
	"encoding/json"
	"strings"

	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/topic"
)

// event is something that members are told. It is made once for all of them.
type event struct {
	text string              // for terminals; it may be empty
	page *websocket.Prepared // for pages: news as JSON, framed once; nil: nothing
	by   string              // the member that has said it
}

// news is an event as pages get it.
type news struct {
	// Type is one of
	//
	//	welcome  the member has entered Room as Name
	//	taken    it has not: somebody there has that Name
	//	follows  the lines after the position Epoch and Offset come next; Complete: these are all since the one that the page gave
	//	ready    these lines have come
	//	said     Name has said Text, at the position Epoch and Offset
	//	came     Name has entered
	//	left     Name has left
	//	names    how many are Here, and the first Names
	//	notice   Text is for this member only
	//	refused  so is Text, and the member's wish was refused, which may be the line ID
	//	over     the chat ends, as code 1001 says
	Type     string   `json:"type"`
	Room     string   `json:"room,omitempty"`
	Name     string   `json:"name,omitempty"`
	Text     string   `json:"text,omitempty"`
	Here     int      `json:"here,omitempty"` // members in the room
	Names    []string `json:"names,omitempty"`
	Peers    []string `json:"peers,omitempty"` // of a welcome: where else the page may connect
	By       string   `json:"by,omitempty"`    // the identifier of the member Name
	ID       string   `json:"id,omitempty"`    // of a line; unique for By
	At       int64    `json:"at,omitempty"`    // when the line was said, in milliseconds since 1970
	Epoch    string   `json:"epoch,omitempty"`
	Offset   uint64   `json:"offset,omitempty"`
	Complete bool     `json:"complete,omitempty"`
}

func tell(text string, n news) *event {
	page, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and numbers
	}
	return &event{text: text, page: websocket.Prepare(websocket.Text, page)}
}

// told makes an event of a message of a room.
var told = topic.NewFraming(func(m *topic.Message) *event {
	room, who := m.Topic[strings.LastIndexByte(m.Topic, '/')+1:], m.Member()
	name := string(who.Info)
	switch m.Kind {
	case topic.Joined:
		return tell("* "+name+" has come to "+room+"\n", news{Type: "came", Name: name, By: who.ID})
	case topic.Left:
		return tell("* "+name+" has left "+room+"\n", news{Type: "left", Name: name, By: who.ID})
	}
	var n news
	if json.Unmarshal(m.Data, &n) != nil || n.Type != "said" {
		return &event{} // of another program
	}
	n.Epoch, n.Offset = m.Epoch, m.Offset
	e := tell(n.Name+": "+n.Text+"\n", n)
	e.by = n.By
	return e
})

// refuse returns an event that says why a wish is not fulfilled.
func refuse(why string) *event { return refuseLine(why, "") }

func refuseLine(why, id string) *event {
	return tell("* "+why+"\n", news{Type: "refused", Text: why, ID: id})
}

var (
	over      = tell("* the chat ends\n", news{Type: "over"})
	bye       = tell("* good bye\n", news{Type: "notice", Text: "Good bye."})
	failed    = tell("* the room is closed at the moment\n", news{Type: "notice", Text: "The room is closed at the moment."})
	behind    = tell("* you are too far behind\n", news{Type: "notice", Text: "You are too far behind."})
	ready     = tell("", news{Type: "ready"})
	whoAreYou = tell("Your name?\n", news{Type: "refused", Text: "Join a room first."})
	unclear   = tell("* /join ROOM, /who or /leave\n", news{Type: "refused", Text: "That was not understood."})
	unnamed   = refuse("A name needs a letter, a digit or another character that can be seen.")
)

const (
	tooFast = "You type too fast. Wait a moment, please."
	tooLong = "That line is too long."
)
