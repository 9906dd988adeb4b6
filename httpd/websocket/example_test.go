package websocket_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/program"
)

// A server at ws://127.0.0.1:8080/last-digit answers each message with the last digit of its length. While there is no room
// for an answer it receives no further message, so a client that does not read is not read from.
func ExampleServer() {
	count := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		var answer []byte // for which there was no room yet
		return act.Func(func(t *act.Task) act.Directive {
			if answer == nil {
				m, err := c.Receive()
				if err != nil {
					return c.Next(t, err)
				}
				if len(m.Data) > 1000 {
					c.Close(1009, "that is a long one")
					return act.Done
				}
				answer = []byte{'0' + byte(len(m.Data)%10)}
			}
			err := c.Send(websocket.Text, answer)
			if err == nil {
				answer = nil
			}
			return c.Next(t, err)
		})
	}
	site := &httpd.Mux{}
	site.Handle("/last-digit", (&websocket.Server{Handler: count}).Serve)
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: site.Serve}).Serve)
}

// A message from one client goes to all clients, on all schedulers. Clients that read too slowly lose the oldest
// messages.
func ExampleConn_PushOrDrop() {
	join := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		members := present.Get(c.Scheduler())
		*members = append(*members, c)
		return &member{conn: c}
	}
	room := &websocket.Server{Handler: join}
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: room.Serve}).Serve)
}

// present has the connections of a scheduler.
var present = act.NewLocal(func(*act.Scheduler) *[]*websocket.Conn { return new([]*websocket.Conn) })

type member struct {
	conn    *websocket.Conn
	publish func(*act.Scheduler) // waits for room in the inboxes of the schedulers
}

func (x *member) Act(t *act.Task) act.Directive {
	if x.publish == nil {
		m, err := x.conn.Receive()
		if err != nil {
			return x.conn.Next(t, err)
		}
		said := websocket.Prepare(m.Type, m.Data)
		x.publish = func(s *act.Scheduler) {
			for _, c := range *present.Get(s) {
				_ = c.PushOrDrop(said) // an error means that c is closed
			}
		}
	}
	err := t.Scheduler().Group().Broadcast(x.publish)
	if err == nil {
		x.publish = nil
	}
	return x.conn.Next(t, err)
}

// Close is called when the connection has ended, however it did.
func (x *member) Close() error {
	members := present.Get(x.conn.Scheduler())
	i := slices.Index(*members, x.conn)
	*members = slices.Delete(*members, i, i+1)
	return nil
}

// A client asks a server for the last digit of the length of a message. If there is no connection, its task fails, and the log
// says why.
func ExampleClient() {
	ask := &websocket.Client{
		URL: "ws://127.0.0.1:8080/last-digit",
		Handler: func(c *websocket.Conn) act.Action {
			asked := false
			return act.Func(func(t *act.Task) act.Directive {
				if !asked {
					if err := c.Send(websocket.Text, []byte("how long is this?")); err != nil {
						return c.Next(t, err)
					}
					asked = true
				}
				m, err := c.Receive()
				if err != nil {
					return c.Next(t, err)
				}
				fmt.Printf("%s\n", m.Data)
				return act.Done
			})
		},
	}
	g := act.NewGroup(act.Config{Schedulers: 1})
	err := g.Run(context.Background(), func(s *act.Scheduler) error {
		s.Spawn(ask.Dial())
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}
