package topic_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/topic"
)

// on runs an action on one scheduler with a Broker.
func on(b *topic.Broker, a act.Action) {
	spawn := func(s *act.Scheduler) error { s.Spawn(a); return nil }
	if err := act.Run(context.Background(), act.Config{Schedulers: 1}, b.Setup, spawn); err != nil {
		fmt.Println(err)
	}
}

// A task gets the messages of all topics that a filter matches.
func Example() {
	b := topic.New(topic.Config{})
	var sub *topic.Subscription
	on(b, act.Func(func(t *act.Task) act.Directive {
		if sub == nil {
			sub = b.Subscribe(t, topic.Options{})
			_ = sub.Add("weather/+")
			_ = b.Publish(topic.Publication{Topic: "weather/Bonn", Data: []byte("rain")})
		}
		m, err := sub.Take()
		if err != nil {
			return listener.Next(t, err)
		}
		fmt.Printf("%s: %s\n", m.Topic, m.Data)
		return act.Done
	}))
	// Output: weather/Bonn: rain
}

// A chat over WebSocket: what a visitor says goes to all visitors, on all schedulers. A message is framed, and compressed,
// once. Visitors that read too slowly lose the oldest messages.
func ExampleNewFraming() {
	rooms := topic.New(topic.Config{})
	enter := func(c *websocket.Conn, r *httpd.Request) act.Action {
		room := "rooms/" + string(r.Value("name"))
		if !topic.ValidName(room) { // such as rooms/+, a filter that matches all rooms
			return nil
		}
		return &visitor{conn: c, rooms: rooms, room: room}
	}
	site := &httpd.Mux{}
	site.Handle("/rooms/{name}", (&websocket.Server{Handler: enter}).Serve)
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	server.Run(rooms, server.Listen(server.Addr, (&httpd.Server{Handler: site.Serve}).Serve))
}

var framed = topic.NewFraming(func(m *topic.Message) *websocket.Prepared {
	return websocket.Prepare(websocket.Text, m.Data)
})

type visitor struct {
	conn  *websocket.Conn
	rooms *topic.Broker
	room  string
	sub   *topic.Subscription
	said  []byte // waits to be published; nil: nothing does
}

func (v *visitor) Act(t *act.Task) act.Directive {
	if v.sub == nil {
		v.sub = v.rooms.Subscribe(t, topic.Options{}) // it ends with the task
		if err := v.sub.Add(v.room); err != nil {
			return t.Fail(err)
		}
	}
	m, err := v.sub.Take()
	for ; err == nil; m, err = v.sub.Take() {
		_ = v.conn.PushOrDrop(framed.Of(m)) // an error means that the connection is closed
	}
	err.(act.Blocked).Arm(t) // the next message wakes the task
	if v.said == nil {
		m, err := v.conn.Receive()
		if err != nil {
			return v.conn.Next(t, err)
		}
		v.said = bytes.Clone(m.Data) // it is lent, and the message is shared
	}
	if err = v.rooms.Publish(topic.Publication{Topic: v.room, Data: v.said}); err == nil {
		v.said = nil
	}
	return v.conn.Next(t, err)
}

// A coroutine sends each message as a line.
func ExampleBroker_Subscribe_coroutine() {
	b := topic.New(topic.Config{})
	news := func(c *coro.Conn) error {
		sub := b.Subscribe(c.Co().Task(), topic.Options{})
		err := sub.Add("news/#")
		for err == nil {
			var m *topic.Message
			if m, err = sub.Take(); err == nil {
				_, err = fmt.Fprintf(c, "%s\n", m.Data)
			}
			err = c.Co().Unblock(err)
		}
		return err
	}
	server := program.Server{Addr: "127.0.0.1:7007"}
	server.Parse()
	server.Run(b, server.Listen(server.Addr, coro.Serve(news)))
}

// A process has a turn when a message has come.
func ExampleBroker_Subscribe_process() {
	b, sys := topic.New(topic.Config{}), process.New()
	var sub *topic.Subscription
	clerk := process.Func(func(p *process.Self[int]) act.Directive {
		if sub == nil {
			sub = b.Subscribe(p, topic.Options{})
			_ = sub.Add("orders/#")
			_ = b.Publish(topic.Publication{Topic: "orders/new", Data: []byte("7 pears")})
		}
		m, err := sub.Take()
		if err != nil {
			return act.Wait
		}
		fmt.Printf("%s\n", m.Data)
		return act.Done
	})
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, b.Setup, sys.Setup, func(*act.Scheduler) error {
		process.Spawn(sys, clerk, process.Options{})
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 7 pears
}

// Server-sent events, on the goroutine of an http.Handler. A browser that connects again sends the identifier of the last event,
// which is a Position, and gets what it has missed.
func ExampleSubscription_Follow() {
	b := topic.New(topic.Config{Rules: []topic.Rule{{Filter: "news", History: 1000}}})
	events := func(w http.ResponseWriter, r *http.Request) {
		epoch, offset, _ := strings.Cut(r.Header.Get("Last-Event-ID"), "/")
		after := topic.Position{Epoch: epoch}
		after.Offset, _ = strconv.ParseUint(offset, 10, 64)
		sub := b.Subscribe(nil, topic.Options{Overflow: topic.End})
		defer sub.Close()
		err := sub.Follow("news", after)
		w.Header().Set("Content-Type", "text/event-stream")
		for err == nil {
			var m *topic.Message
			if m, err = sub.Receive(r.Context()); err != nil {
				return // a client that was too slow connects again
			}
			event := "message"
			if m.Kind == topic.Followed { // with the position to begin with, if no message comes before the connection is lost
				event = "follows"
				if !m.Complete {
					event = "missed"
				}
			}
			if _, err = fmt.Fprintf(w, "event: %s\nid: %s/%d\ndata: %s\n\n", event, m.Epoch, m.Offset, m.Data); err == nil {
				err = http.NewResponseController(w).Flush()
			}
		}
	}
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: http.HandlerFunc(events)}).Serve}
	server.Run(b, server.Listen(server.Addr, web.Serve))
}

// A task subscribes to the coming and going in a room, joins the room, and then asks for its members.
func ExampleBroker_Members() {
	b := topic.New(topic.Config{Rules: []topic.Rule{{Filter: "rooms/+", Presence: true}}})
	var sub *topic.Subscription
	on(b, act.Func(func(t *act.Task) act.Directive {
		if sub == nil {
			sub = b.Subscribe(t, topic.Options{Member: topic.Member{ID: "ann"}})
			_ = sub.Add("$presence/rooms/1")
			_ = sub.Add("rooms/1")
			bob := b.Subscribe(t, topic.Options{Member: topic.Member{ID: "bob"}})
			_ = bob.Add("rooms/1")
			present, _ := b.Members("rooms/1").Value() // without an Engine it is known at once
			fmt.Println(len(present), "members")
			_ = bob.Close()
		}
		for {
			m, err := sub.Take()
			switch {
			case err != nil:
				return listener.Next(t, err)
			case m.Kind == topic.Joined:
				fmt.Println(m.Member().ID, "joins")
			case m.Kind == topic.Left:
				fmt.Println(m.Member().ID, "leaves")
				return act.Done
			}
		}
	}))
	// Output:
	// 2 members
	// ann joins
	// bob joins
	// bob leaves
}

// A client that connects again takes its name over from the connection that it had before. Tasks give themselves instead of nil,
// and end instead of closing the claim.
func ExampleNames() {
	var clients topic.Names[string]
	first := clients.TakeOver(nil, "client 7", "the first connection")
	second := clients.TakeOver(nil, "client 7", "the second connection")
	fmt.Println(first.Lost())
	_, waits := second.Acquire().(act.Blocked)
	fmt.Println("the second one waits:", waits)
	_ = first.Close()
	owner, _ := clients.Lookup("client 7")
	fmt.Println("the owner is", owner)
	// Output:
	// topic: another has the name
	// the second one waits: true
	// the owner is the second connection
}
