// Command mqtt is a broker of MQTT 3.1.1, on TCP and on WebSocket.
//
//	go run ./examples/mqtt
//	mosquitto_sub -t 'rooms/+/temperature'
//	mosquitto_pub -t rooms/kitchen/temperature -m 21.5
//
// Quality of service is 0 or 1. A client that subscribes with 2 is granted 1; one that publishes with 2 is disconnected.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"slices"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/topic"
)

func main() {
	web := flag.String("web", "127.0.0.1:8083", "the `address` for WebSocket")
	server := program.Server{Addr: "127.0.0.1:1883", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"mqtt", "h2", "http/1.1"}}},
	}}
	server.Parse()
	b := &broker{topics: topic.New(topic.Config{MaxMessage: maxPacket})}
	plain := server.Listen(server.Addr, func(c *listener.Conn) act.Action { return newClient(b, stream{c}) })
	plain.Limits.Read, plain.Limits.High = maxHeader+maxPacket, maxHeader+maxPacket
	sockets := &websocket.Server{Handler: b.socket, Origin: func(*httpd.Request) bool { return true }}
	sockets.Subprotocols, sockets.MaxMessage = []string{"mqtt"}, maxHeader+maxPacket
	server.Run(b.topics, plain, server.Listen(*web, (&httpd.Server{Handler: sockets.Serve}).Serve))
}

// broker is what all clients share.
type broker struct {
	topics *topic.Broker
	names  topic.Names[struct{}] // the identifiers of clients that are present
	mu     sync.Mutex
	absent []*session // the longest absence first
}

func (b *broker) socket(c *websocket.Conn, _ *httpd.Request) act.Action {
	if c.Subprotocol() == "" { // [MQTT-6.0.0-3]
		return nil
	}
	return newClient(b, &socket{Conn: c})
}

// open returns the session of a client that has come, and 1 if it is not new. A client that is too slow, or absent for too
// long, loses the oldest messages of quality of service 0. With 1 it loses none without being told: its session ends.
func (b *broker) open(t *act.Task, h hello) (s *session, present uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.absent, func(s *session) bool { return s.id == h.id }); i >= 0 {
		s = b.absent[i]
		if b.absent = slices.Delete(b.absent, i, i+1); !h.clean && s.queues[1].Err() == nil {
			s.sent = 0
			return s, 1
		}
		_, _ = s.queues[0].Close(), s.queues[1].Close()
	}
	s = &session{hello: h, broker: b}
	for qos, overflow := range [...]topic.Overflow{topic.DropOldest, topic.End} {
		s.queues[qos] = b.topics.Subscribe(t, topic.Options{Queue: maxQueue, Overflow: overflow})
		t.Release(s.queues[qos]) // it may outlive t
	}
	return s, 0
}

// Close is called when the client has gone. If too many clients are absent, the longest absent one loses its session.
func (s *session) Close() error {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if !s.clean {
		if b.absent = append(b.absent, s); len(b.absent) <= maxAbsent {
			return nil
		}
		s, b.absent = b.absent[0], b.absent[1:]
	}
	return errors.Join(s.queues[0].Close(), s.queues[1].Close())
}
