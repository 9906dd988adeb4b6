package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

const (
	greeting  = 10 * time.Second // until the CONNECT
	forever   = 1 << 62          // no sum overflows
	batch     = 64               // packets that are read, or sent, in a turn
	window    = 64               // messages that are sent to a client and not acknowledged
	maxQueue  = 1000             // messages that wait for a client, of each quality of service
	maxAbsent = 10_000           // sessions of absent clients
)

// wire is a connection. Its methods are as in a listener.Conn.
type wire interface {
	Scheduler() *act.Scheduler
	Peek(n int) ([]byte, error)
	Discard(n int)
	Push(p []byte) error
	share(m *topic.Message) error // pushes a PUBLISH of quality of service 0, which is made once for all clients
}

// stream is a connection of TCP or TLS.
type stream struct{ *listener.Conn }

var framed = topic.NewFraming(func(m *topic.Message) []byte { return encodePublish(m, 0, false) })

func (x stream) share(m *topic.Message) error { return x.PushShared(framed.Of(m)) }

// socket is a connection of WebSocket. A message need not end where a packet ends [MQTT-6.0.0-2].
type socket struct {
	*websocket.Conn
	rest []byte // unread
}

var prepared = topic.NewFraming(func(m *topic.Message) *websocket.Prepared {
	return websocket.Prepare(websocket.Binary, framed.Of(m))
})

func (x *socket) share(m *topic.Message) error { return x.Conn.Push(prepared.Of(m)) }
func (x *socket) Push(p []byte) error          { return x.Send(websocket.Binary, p) }
func (x *socket) Discard(n int)                { x.rest = x.rest[n:] }

func (x *socket) Peek(n int) ([]byte, error) {
	for len(x.rest) < n {
		m, err := x.Receive()
		if err == nil && m.Type != websocket.Binary {
			err = violation("6.0.0-1")
		}
		if err != nil {
			return x.rest, err
		}
		x.rest = append(x.rest, m.Data...)
	}
	return x.rest, nil
}

// client is the task of a connection.
type client struct {
	broker          *broker
	wire            wire
	hello           hello
	claim           *topic.Claim[struct{}] // of the identifier; nil: before the CONNECT
	session         *session               // nil: before the CONNACK
	answer          []byte                 // is sent before another packet is read
	heard, patience time.Duration          // when the latest packet came, and the longest time to the next
	timer           act.Timer
	why             error // the client leaves
}

func newClient(b *broker, w wire) act.Action {
	return &client{broker: b, wire: w, heard: w.Scheduler().Now(), patience: greeting}
}

// Act goes on until the client leaves, and then publishes the will.
func (c *client) Act(t *act.Task) (d act.Directive) {
	if c.why == nil {
		if d, c.why = c.turn(t); c.why == nil {
			return d
		}
	}
	if c.session != nil && c.hello.will != nil {
		if err := c.broker.topics.Publish(*c.hello.will); wait(t, err) != err {
			return act.Wait
		}
	}
	if c.session != nil && t.Release(c.session) { // now: the end of a WebSocket may take seconds
		_, _ = c.session.Close(), c.claim.Close()
	}
	if c.why == io.EOF {
		return act.Done
	}
	return t.Fail(&listener.PeerError{Err: c.why})
}

// wait arms an act.Blocked, and returns any other error.
func wait(t *act.Task, err error) error {
	if b, blocked := err.(act.Blocked); blocked {
		b.Arm(t)
		return nil
	}
	return err
}

// turn returns an error if the client leaves.
func (c *client) turn(t *act.Task) (d act.Directive, err error) {
	switch due := c.heard + c.patience; {
	case t.Order() != nil:
		c.hello.will = nil
		return d, io.EOF
	case t.Scheduler().Now() >= due:
		return d, errors.New("the client has sent nothing for too long")
	case !c.timer.Armed() || c.timer.When() > due:
		t.WakeAt(&c.timer, due)
	}
	d = act.Wait
	if c.session == nil {
		if err = c.enter(t); err != nil {
			return d, wait(t, err)
		}
	}
	for _, err := range [...]error{c.claim.Lost(), c.receive(), c.deliver(t)} {
		if err == nil {
			d = act.Yield // there may be more
		} else if err = wait(t, err); err != nil {
			return d, err
		}
	}
	return d, nil
}

// enter reads the CONNECT, waits for the end of an older connection of the client [MQTT-3.1.4-2], and answers.
func (c *client) enter(t *act.Task) error {
	if c.claim == nil {
		p, n, err := c.read()
		if err == nil {
			c.hello, err = decodeConnect(p)
		}
		if code := refused[err]; code != 0 {
			_ = c.wire.Push(encodeAck(connack, code)) // there is room
		}
		if err != nil {
			return err
		}
		c.wire.Discard(n)
		c.hello.id = cmp.Or(c.hello.id, fmt.Sprintf("\x00%p", c)) // [MQTT-3.1.3-6]; no client can choose that
		c.claim = c.broker.names.TakeOver(t, c.hello.id, struct{}{})
	}
	if err := c.claim.Acquire(); err != nil {
		return err
	}
	s, present := c.broker.open(t, c.hello)
	t.Own(s) // is closed before the claim
	c.session, c.answer = s, encodeAck(connack, present<<8)
	c.heard, c.patience = t.Scheduler().Now(), cmp.Or(c.hello.keepAlive*3/2, forever) // [MQTT-3.1.2-24]
	t.WakeAt(&c.timer, c.heard+c.patience)
	return nil
}

// read returns the next packet, which stays unread, and its length.
func (c *client) read() (p packet, n int, err error) {
	for n = minHeader; ; {
		in, err := c.wire.Peek(n)
		if err == nil {
			p, n, err = split(in)
		}
		if err != nil || n <= len(in) {
			return p, n, err
		}
	}
}

// receive handles packets, until an error. A client that takes no answers is not read from.
func (c *client) receive() error {
	for range batch {
		if c.answer != nil {
			if err := c.wire.Push(c.answer); err != nil {
				return err
			}
			c.answer = nil
		}
		p, n, err := c.read()
		if err == nil {
			err = c.handle(p)
		}
		if err != nil {
			return err
		}
		c.wire.Discard(n)
		c.heard = c.wire.Scheduler().Now()
	}
	return nil
}

// handle handles a packet, and makes the answer. After an act.Blocked it is called again.
func (c *client) handle(p packet) error {
	switch p.kind {
	case publish:
		m, id, err := decodePublish(p)
		if err == nil {
			err = c.broker.topics.Publish(m)
		}
		if err == nil && id != 0 {
			c.answer = encodeAck(puback, id)
		}
		return err
	case puback:
		f := fields{rest: p.body}
		c.session.landed(f.id())
		return f.err
	case subscribe, unsubscribe:
		id, filters, qos, err := decodeFilters(p)
		for i, filter := range filters {
			if p.kind == subscribe {
				qos[i] = c.session.subscribe(filter, qos[i])
			} else {
				c.session.queues[0].Remove(filter)
				c.session.queues[1].Remove(filter)
			}
		}
		c.answer = encodeAck(p.kind+1, id, qos...)
		return err
	case pingreq:
		c.answer = []byte{pingresp << 4, 0}
		return nil
	case disconnect:
		c.hello.will = nil // [MQTT-3.1.2-10]
		return io.EOF
	}
	return violation("3.1.0-2")
}

// deliver sends messages, until an error. Flights of an earlier connection are the first [MQTT-4.4.0-1].
func (c *client) deliver(t *act.Task) (err error) {
	for s, n := c.session, 0; n < batch && err == nil; n++ {
		if s.sent == len(s.flights) {
			err = s.next(t)
		} else if f := &s.flights[s.sent]; f.id == 0 {
			if err = c.wire.share(f.m); err == nil {
				s.flights = s.flights[:s.sent]
			}
		} else if err = c.wire.Push(encodePublish(f.m, f.id, f.again)); err == nil {
			f.again = true
			s.sent++
		}
	}
	return err
}

// session is the state of a client, which may outlive its connection (section 3.1.2.4). One connection at a time uses it.
type session struct {
	hello
	broker *broker
	// queues has a subscription for each quality of service. A message that filters of both match comes twice [MQTT-3.3.5-1].
	queues  [2]*topic.Subscription
	flights []flight // to be acknowledged, in order [MQTT-4.6.0-6]; the last one may be only to be sent
	sent    int      // of them, on this connection
	last    uint16   // the latest identifier
}

// flight is a message that was taken from a queue.
type flight struct {
	m     *topic.Message
	id    uint16 // 0: its quality of service is 0
	again bool   // it has been sent
}

// subscribe returns the quality of service that is granted, or 0x80 (section 3.9.3).
func (s *session) subscribe(filter string, qos byte) byte {
	qos = min(qos, 1)
	if s.queues[qos].Add(filter) != nil {
		return 0x80
	}
	s.queues[1-qos].Remove(filter) // which it may have had
	return qos
}

// next adds a message to the flights. If there is none, t will be woken, and the error is an act.Blocked.
func (s *session) next(t *act.Task) (err error) {
	var f flight
	if id := max(s.last+1, 1); len(s.flights) == 0 || id-s.flights[0].id < window { // otherwise an acknowledgement wakes t
		if f.m, err = s.queues[1].Take(); err == nil && f.m.Tag == 1 {
			s.last, f.id = id, id
		}
		err = wait(t, err)
	}
	if f.m == nil && err == nil {
		f.m, err = s.queues[0].Take()
	}
	if err == nil {
		s.flights = append(s.flights, f)
	}
	return err
}

// landed removes a flight that the client has acknowledged.
func (s *session) landed(id uint16) {
	if i := slices.IndexFunc(s.flights[:s.sent], func(f flight) bool { return f.id == id }); i >= 0 {
		s.flights = slices.Delete(s.flights, i, i+1)
		s.sent--
	}
}
