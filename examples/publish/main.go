// Command publish is a publish/subscribe server of lines. "sub TOPIC" subscribes, "pub TOPIC TEXT" publishes, and a
// subscriber reads "TOPIC TEXT" for each message.
//
//	go run ./examples/publish
//	nc 127.0.0.1 7013
package main

import (
	"flag"
	"fmt"

	"github.com/daimon-go/daimon/examples/publish/publish"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

func main() {
	server := program.Server{Addr: "127.0.0.1:7013", Options: []program.Option{&inspect.Inspector{}}}
	server.Limits.Overflow = listener.Drop
	flag.Func("slow", "what a subscriber that does not read loses: drop: messages; abort: its `connection` (default drop)", func(text string) error {
		switch text {
		case "drop":
			server.Limits.Overflow = listener.Drop
		case "abort":
			server.Limits.Overflow = listener.Abort
		default:
			return fmt.Errorf("it must be drop or abort")
		}
		return nil
	})
	flag.Func("queue", "how many `bytes` are queued for a subscriber that does not read (default 65536)", func(text string) error {
		if _, err := fmt.Sscan(text, &server.Limits.High); err != nil || server.Limits.High < 2*publish.MaxLine {
			return fmt.Errorf("it must be at least %d", 2*publish.MaxLine)
		}
		return nil
	})
	server.Parse()
	server.Run(server.Listen(server.Addr, publish.Serve))
}
