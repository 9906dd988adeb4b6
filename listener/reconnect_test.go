package listener_test

import (
	"fmt"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// A task that hears what a server says, and comes back when the server has hung up. After the second time it has heard enough.
func ExampleReconnect() {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		for n := 1; ; n++ {
			c, err := door.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "this is greeting %d\n", n)
			_ = c.Close()
		}
	}()

	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	heard := 0
	s.Spawn(listener.Reconnect{
		To:    listener.Connect{Address: door.Addr().String()},
		Least: time.Millisecond,
		Handler: func(c *listener.Conn) act.Action {
			lines := listener.Line{Conn: c}
			return act.Func(func(t *act.Task) act.Directive {
				line, err := lines.Read()
				if err == nil {
					fmt.Printf("%s\n", line)
					heard++
				}
				return listener.Next(t, err)
			})
		},
		Again: func(error, time.Duration) bool { return heard < 2 },
	}.Action())
	if err := s.Run(); err != nil {
		fmt.Println(err)
	}
	_ = door.Close()
	// Output:
	// this is greeting 1
	// this is greeting 2
}
