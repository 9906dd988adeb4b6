package coroutine_test

import (
	"context"
	"errors"
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

// A client that connects again whenever its connection is lost, after growing pauses, unless the server has closed it with
// code 1000. A shutdown request ends the pause, or closes the connection with code 1001.
func ExampleNew_reconnect() {
	pause := time.Second
	var latest *websocket.Conn
	client := &websocket.Client{
		URL: "ws://127.0.0.1:8080/?Ann",
		Handler: func(c *websocket.Conn) act.Action {
			latest, pause = c, time.Second // there is a connection
			return coroutine.New(c, func(c *coroutine.Conn) error {
				for {
					m, err := c.Read()
					if err != nil {
						return err
					}
					fmt.Printf("%s\n", m.Data)
				}
			})
		},
	}
	stay := func(co *coro.Co) error {
		for {
			err := co.Do(client.Dial())
			if err == nil { // there was a connection
				err = latest.Err() // a *websocket.CloseError, net.ErrClosed, or an error of the system call
			}
			closed := (*websocket.CloseError)(nil)
			if errors.As(err, &closed) && closed.Code == websocket.CodeNormal {
				return nil // the server has said all
			}
			fmt.Println(err) // it may also be a *websocket.DialError
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
