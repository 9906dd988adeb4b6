package service_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// greet is a handler: it makes the action of one connection.
func greet(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		if _, err := c.WriteString("hello"); err != nil {
			return listener.Next(t, err)
		}
		return act.Done // the connection is closed in stages: the peer gets everything
	})
}

// A connection that comes in and goes is served by one scheduler; the context ends the server.
func ExampleTCP() {
	server := &service.TCP{Address: "127.0.0.1:0", Handler: greet}
	ctx, cancel := context.WithCancel(context.Background())
	client := func(s *act.Scheduler) error {
		s.Execute(func() {
			defer cancel()
			ask(server.Addr())
		})
		return nil
	}
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, client))
	// Output:
	// hello
	// <nil>
}

// All schedulers accept at the same socket; its file is gone when the server has ended.
func ExampleUnix() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server := &service.Unix{Path: filepath.Join(dir, "socket"), Handler: greet}
	ctx, cancel := context.WithCancel(context.Background())
	client := func(s *act.Scheduler) error {
		s.Execute(func() {
			defer cancel()
			ask(server.Addr())
		})
		return nil
	}
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, client))
	_, err = os.Stat(server.Path)
	fmt.Println(os.IsNotExist(err))
	// Output:
	// hello
	// <nil>
	// true
}

// ask prints what a server says.
func ask(a net.Addr) {
	c, err := net.Dial(a.Network(), a.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	said, err := io.ReadAll(c)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(said))
}

// A source makes tasks of anything; the last one may come together with the end.
func ExampleNew() {
	names := []string{"Ada", "Grace", "Barbara"}
	source := service.New(func(*act.Task) (act.Action, act.Directive) {
		name := names[0]
		names = names[1:]
		task := act.Func(func(*act.Task) act.Directive {
			fmt.Println("hello,", name)
			return act.Done
		})
		if len(names) == 0 {
			return task, act.Done
		}
		return task, act.Yield
	})
	s := act.New(act.Config{})
	defer s.Close()
	s.Install(source)
	fmt.Println(s.Run())
	// Output:
	// hello, Ada
	// hello, Grace
	// hello, Barbara
	// <nil>
}
