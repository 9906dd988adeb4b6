// Command chat is a line chat with rooms. The first line that a member says is its name; then /join ROOM goes to another
// room, /who tells who is there, /leave leaves, and all else is said.
//
//	go run ./examples/chat
//	nc 127.0.0.1 7010
package main

import (
	"github.com/daimon-go/daimon/examples/chat/chat"
	"github.com/daimon-go/daimon/program"
)

func main() {
	server := program.Server{Addr: "127.0.0.1:7010"}
	server.Parse()
	server.Run(chat.New(server.Listen(server.Addr, chat.Member)))
}
