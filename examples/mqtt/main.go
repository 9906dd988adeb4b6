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
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/topic"
)

func main() {
	b := &broker{topics: topic.New(topic.Config{MaxMessage: maxPacket})}
	web := flag.String("web", "127.0.0.1:8083", "the `address` for WebSocket, at the path /mqtt; empty: none")
	flag.IntVar(&b.queue, "queue", 1000, "the largest `number` of messages that wait for a client, for each quality of service")
	flag.IntVar(&b.sessions, "sessions", 10_000, "the largest `number` of sessions of absent clients")
	server := program.Server{Addr: "127.0.0.1:1883", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"mqtt", "h2", "http/1.1"}}},
	}}
	server.Parse()
	if b.queue < 1 || b.sessions < 0 {
		cli.Exit("mqtt", errors.New("-queue must be above 0, and -sessions must not be negative"), 2)
	}
	plain := server.Listen(server.Addr, func(c *listener.Conn) act.Action { return b.client(stream{c}) })
	plain.Limits.Read, plain.Limits.High = maxHeader+maxPacket, maxHeader+maxPacket
	services := []program.Service{b.topics, plain}
	if *web != "" {
		site := &httpd.Server{Handler: b.site()}
		services = append(services, server.Listen(*web, site.Serve))
	}
	server.Run(services...)
}

// broker is what all clients share.
type broker struct {
	queue, sessions int // bounds: see the flags
	topics          *topic.Broker
	names           topic.Names[struct{}] // the identifiers of clients that are present
	nameless        atomic.Uint64         // clients that had none

	mu     sync.Mutex
	absent []*session // of clients that are absent, the longest absence first
}

// site is the handler of the web server. Pages of any origin may connect.
func (b *broker) site() httpd.Handler {
	handler := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		if c.Subprotocol() == "" { // [MQTT-6.0.0-3]
			return nil
		}
		return b.client(&socket{conn: c})
	}
	sockets := &websocket.Server{Handler: handler, Origin: func(*httpd.Request) bool { return true }, Options: websocket.Options{
		Subprotocols: []string{"mqtt"}, MaxMessage: maxHeader + maxPacket}}
	site := &httpd.Mux{}
	site.Handle("/mqtt", sockets.Serve)
	return site.Serve
}

// name returns an identifier for a client without one [MQTT-3.1.3-6], which no client can have.
func (b *broker) name() string { return "\x00" + strconv.FormatUint(b.nameless.Add(1), 10) }

// publish publishes a message of a client. To topics that begin with $ it goes nowhere (section 4.7.2).
func (b *broker) publish(m topic.Publication) error {
	if m.Topic[0] == '$' {
		return nil
	}
	return b.topics.Publish(m)
}

// keep keeps the session of a client that is absent from now on. If there are too many, the longest absence ends.
func (b *broker) keep(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.absent = append(b.absent, s); len(b.absent) > b.sessions {
		b.absent[0].end()
		b.absent = b.absent[1:]
	}
}

// take returns the session of a client that has been absent. It is nil if there is none, or if the client wants another.
func (b *broker) take(h hello) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.absent, func(s *session) bool { return s.id == h.id })
	if i < 0 {
		return nil
	}
	s := b.absent[i]
	if b.absent = slices.Delete(b.absent, i, i+1); h.clean || s.queues[1].Err() != nil {
		s.end()
		return nil
	}
	s.resume()
	return s
}
