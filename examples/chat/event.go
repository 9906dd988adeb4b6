package main

import (
	"encoding/json"

	"github.com/daimon-go/daimon/httpd/websocket"
)

// event is something that members are told. It is made once for all of them.
type event struct {
	text string              // for terminals; it may be empty
	page *websocket.Prepared // for pages: news as JSON, framed once
}

// news is an event as pages get it.
type news struct {
	// Type is one of
	//
	//	welcome  the member has entered Room as Name
	//	taken    it has not: somebody there has that Name
	//	said     Name has said Text
	//	came     Name has entered
	//	left     Name has left
	//	here     how many are Here now, with all Names unless they are too many
	//	names    the answer to who: the first Names
	//	notice   Text is for this member only
	//	refused  so is Text, and the member's wish was refused
	//	broken   the room has ended, and the member is about to enter it again
	//	over     the chat ends, as code 1001 says
	Type  string   `json:"type"`
	Room  string   `json:"room,omitempty"`
	Name  string   `json:"name,omitempty"`
	Text  string   `json:"text,omitempty"`
	Here  int      `json:"here,omitempty"` // members in the room
	Names []string `json:"names,omitempty"`
}

func tell(text string, n news) event {
	page, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and numbers
	}
	return event{text, websocket.Prepare(websocket.Text, page)}
}

// refuse returns an event that says why a wish is not fulfilled.
func refuse(why string) event { return tell("* "+why+"\n", news{Type: "refused", Text: why}) }

var (
	over      = tell("* the chat ends\n", news{Type: "over"})
	bye       = tell("* good bye\n", news{Type: "notice", Text: "Good bye."})
	noWay     = tell("* there is no way in\n", news{Type: "refused", Text: "There is no way into this room."})
	whoAreYou = tell("Your name?\n", news{Type: "refused", Text: "Join a room first."})
	unclear   = tell("* /join ROOM, /who or /leave\n", news{Type: "refused", Text: "That was not understood."})
	unnamed   = refuse("A name needs a letter, a digit or another character that can be seen.")
	tooFast   = refuse("You type too fast. Wait a moment, please.")
	tooLong   = refuse("That line is too long.")
)
