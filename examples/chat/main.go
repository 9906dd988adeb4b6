// Command chat is a line chat. The first line that a member says is its name.
//
//	go run ./examples/chat
//	nc 127.0.0.1 7010
package main

import (
	"github.com/daimon-go/daimon/examples/chat/chat"
	"github.com/daimon-go/daimon/examples/internal/cli"
)

func main() {
	cli.Main("chat", "127.0.0.1:7010", func(f *cli.Flags) cli.Service {
		return f.Listen(chat.Member)
	})
}
