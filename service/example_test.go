package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
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

// One scheduler serves a connection from its beginning to its end; the context ends the server.
func ExampleListener() {
	server := &service.Listener{Address: "127.0.0.1:0", Handler: greet}
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, client(server.Addr, cancel)))
	// Output:
	// hello
	// <nil>
}

// All schedulers accept from the same socket; its file is removed when the server ends.
func ExampleListener_unix() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	server := &service.Listener{Address: "unix:" + path, Handler: greet}
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, client(server.Addr, cancel)))
	_, err = os.Stat(path)
	fmt.Println(os.IsNotExist(err))
	// Output:
	// hello
	// <nil>
	// true
}

// greeter is the action of a connection that stays, and may be evicted when it has greeted.
type greeter struct {
	conn    *listener.Conn
	greeted bool
}

func (g *greeter) Act(t *act.Task) act.Directive {
	if !g.greeted {
		if _, err := g.conn.WriteString("hello"); err != nil {
			return listener.Next(t, err)
		}
		g.greeted = true
	}
	in, err := g.conn.Peek(1)
	g.conn.Discard(len(in))
	return g.conn.Next(t, err)
}

// IdleSince lets a service at MaxConns evict the connection for another client.
func (g *greeter) IdleSince() (time.Duration, bool) {
	since, idle := g.conn.IdleSince()
	return since, idle && g.greeted
}

// The method IdleSince of an action says when its connection may be evicted for a client that waits.
func ExampleListener_idleSince() {
	server := &service.Listener{
		Address:    "127.0.0.1:0",
		MaxConns:   1,
		EvictAfter: 10 * time.Millisecond,
		Handler:    func(c *listener.Conn) act.Action { return &greeter{conn: c} },
	}
	ctx, cancel := context.WithCancel(context.Background())
	clients := func(s *act.Scheduler) error {
		go func() {
			defer cancel()
			for range 2 { // both stay, and there is one place
				c, err := net.Dial("tcp", server.Addr().String())
				if err != nil {
					fmt.Println(err)
					return
				}
				defer c.Close()
				said := make([]byte, 5)
				_, err = io.ReadFull(c, said)
				fmt.Println(string(said), err)
			}
		}()
		return nil
	}
	cut := &shutdown.Cut{}
	err := act.Run(ctx, act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Kind: shutdown.Halt, Drop: true}}, server.Setup, clients)
	fmt.Println(err == nil || errors.As(err, &cut))
	// Output:
	// hello <nil>
	// hello <nil>
	// true
}

// An echo of datagrams.
func ExamplePacketListener() {
	server := &service.PacketListener{
		Address: "127.0.0.1:0",
		Handler: func(c *listener.PacketConn, in []netpoll.Packet) {
			for i := range in {
				_ = c.Reply(&in[i], in[i].Data) // an error means that the answer is dropped, as the network may drop it
			}
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(*act.Scheduler) error {
		go func() {
			defer cancel()
			c, err := net.Dial("udp", server.Addr().String())
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprint(c, "hello")
			answer := make([]byte, 100)
			n, _ := c.Read(answer)
			fmt.Println(string(answer[:n]))
		}()
		return nil
	}))
	// Output:
	// hello
	// <nil>
}

// client prints what a server says, and then ends it.
func client(addr func() net.Addr, end func()) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		go func() {
			defer end()
			c, err := net.Dial(addr().Network(), addr().String())
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			said, err := io.ReadAll(c)
			fmt.Println(string(said))
			if err != nil {
				fmt.Println(err)
			}
		}()
		return nil
	}
}

// A service can take its tasks from any source; the last task may come together with Done.
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
