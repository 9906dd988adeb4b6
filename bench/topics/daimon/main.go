// Command daimon is a server on package topic that speaks as much of MQTT 3.1.1 as the load generator needs: sessions that
// subscribe to one topic at a time, and publish with QoS 0.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"log"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

var broker *topic.Broker

func main() {
	dsn := flag.String("dsn", "", "share topics with other machines in this `database`")
	s := program.Server{Addr: "127.0.0.1:1883"}
	s.Parse()
	var cfg topic.Config
	if *dsn != "" {
		engine, err := postgres.Open(context.Background(), *dsn, postgres.Options{})
		if err != nil {
			log.Fatal(err)
		}
		cfg = topic.Config{Engine: engine, Rules: []topic.Rule{{Filter: "#", History: 1000}}}
	}
	broker = topic.New(cfg)
	s.Run(broker, s.Listen(s.Addr, func(c *listener.Conn) act.Action { return &session{Conn: c} }))
}

// publish is the PUBLISH packet of a message.
var publish = topic.NewFraming(func(m *topic.Message) []byte {
	n := 2 + len(m.Topic) + len(m.Data)
	p := binary.AppendUvarint([]byte{0x30}, uint64(n))
	p = binary.BigEndian.AppendUint16(p, uint16(len(m.Topic)))
	return append(append(p, m.Topic...), m.Data...)
})

// session is the action of a connection.
type session struct {
	*listener.Conn
	sub  *topic.Subscription // nil: it has not subscribed
	next *topic.Message      // waits for room in the connection
}

func (x *session) Act(t *act.Task) act.Directive {
	for {
		if err := x.packet(t); err != nil {
			if d := listener.Next(t, err); d != act.Wait || x.sub == nil {
				return d
			}
			return listener.Next(t, x.send())
		}
	}
}

// send sends messages until there is none, or no room.
func (x *session) send() (err error) {
	for {
		if x.next == nil {
			if x.next, err = x.sub.Take(); err != nil {
				return err
			}
		}
		if err = x.PushShared(publish.Of(x.next)); err != nil {
			return err
		}
		x.next = nil
	}
}

// packet handles one packet.
func (x *session) packet(t *act.Task) error {
	p, err := x.Peek(2)
	if err != nil {
		return err
	}
	length, n := binary.Uvarint(p[1:min(5, len(p))])
	if n <= 0 {
		return errors.New("not a packet of MQTT, or not read as a whole")
	}
	size := 1 + n + int(length)
	if p, err = x.Peek(size); err != nil {
		return err
	}
	body := p[1+n : size]
	switch p[0] >> 4 {
	case 1: // CONNECT
		err = x.Push([]byte{0x20, 2, 0, 0})
	case 8: // SUBSCRIBE
		x.sub = broker.Subscribe(t, topic.Options{Queue: 1 << 14})
		if err = x.sub.Add(string(body[4 : len(body)-1])); err == nil {
			err = x.Push([]byte{0x90, 3, body[0], body[1], 0})
		}
	case 3: // PUBLISH
		at := 2 + int(binary.BigEndian.Uint16(body))
		err = broker.Publish(topic.Publication{Topic: string(body[2:at]), Data: bytes.Clone(body[at:])})
	}
	if err == nil {
		x.Discard(size)
	}
	return err
}
