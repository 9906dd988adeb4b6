package coroutine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/program"
)

// A server that sends each message back, in straight lines. It greets with the name of the query: ws://127.0.0.1:8080/?Ann.
func ExampleNew() {
	join := func(c *websocket.Conn, r *httpd.Request) act.Action {
		name := string(r.Query()) // the request is only there during this call
		return coroutine.New(c, func(c *coroutine.Conn) error {
			if err := c.Write(websocket.Text, []byte("hello, "+name)); err != nil {
				return err
			}
			for {
				m, err := c.Read()
				if err != nil {
					return err // the connection has ended
				}
				if err := c.Write(m.Type, m.Data); err != nil {
					return err
				}
			}
		})
	}
	sockets := &websocket.Server{Handler: join}
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: sockets.Serve}).Serve)
}

// A client that connects again whenever its connection is lost, after growing pauses. An order ends the pause, or closes the
// connection with code 1001.
func ExampleNew_reconnect() {
	pause := time.Second
	client := &websocket.Client{
		URL: "ws://127.0.0.1:8080/?Ann",
		Handler: func(c *websocket.Conn) act.Action {
			pause = time.Second // there is a connection
			return coroutine.New(c, func(c *coroutine.Conn) error {
				for {
					m, err := c.Read()
					if err != nil {
						fmt.Println(err) // a *websocket.CloseError, or net.ErrClosed after an order
						return err
					}
					fmt.Printf("%s\n", m.Data)
				}
			})
		},
	}
	stay := func(co *coro.Co) error {
		for {
			if err := co.Do(client.Dial()); err != nil { // nil if there was a connection, also if it was lost
				fmt.Println(err) // a *websocket.DialError
			}
			if err := co.UntilOrder(func() error { return co.Sleep(pause) }); err == coro.ErrOrdered {
				return nil
			} else if err != nil {
				return err
			}
			pause = min(2*pause, time.Minute)
		}
	}
	g := act.NewGroup(act.Config{Schedulers: 1})
	err := g.Run(context.Background(), func(s *act.Scheduler) error {
		s.Spawn(coro.New(stay))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}
