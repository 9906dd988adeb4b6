// Command chat is a line chat with rooms. The first line that a member sends is its name. Then /join ROOM goes to another
// room, /who lists the members of the room, /leave leaves, and any other line is said to the room.
//
//	go run ./examples/chat
//	nc 127.0.0.1 7010
package main

import (
	"github.com/daimon-go/daimon/examples/chat/chat"
	"github.com/daimon-go/daimon/examples/internal/withtls"
)

func main() {
	server := withtls.Parse("127.0.0.1:7010")
	server.Run(chat.New(server.Listen(server.Addr, chat.Member)))
}
