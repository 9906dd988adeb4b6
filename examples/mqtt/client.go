package main

import (
	"bytes"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
)

const (
	greeting = 10 * time.Second // until the CONNECT
	batch    = 64               // packets that are read, or sent, in a turn
)

var (
	errSilent = errors.New("the client has sent nothing for too long")
	errLeft   = errors.New("the client has left")
	errOver   = errors.New("the broker ends")
)

// client is the task of a connection. Its stages are greet, enter, serve and leave.
type client struct {
	broker  *broker
	wire    wire
	stage   func(*client, *act.Task) act.Directive // nil: the last one is done
	hello   hello
	claim   *topic.Claim[struct{}] // of the identifier
	session *session               // nil before it has entered
	answer  []byte                 // is sent before another packet is read
	kept    *topic.Message         // of quality of service 0, for which there was no room
	why     error                  // it leaves

	heard    time.Duration // when the last packet came; 0: this is the first turn
	patience time.Duration // until the next one; 0: without end
	last     time.Duration // when it leaves during a shutdown; 0: there is none
	timer    act.Timer
}

func (b *broker) client(w wire) act.Action {
	return &client{broker: b, wire: w, stage: (*client).greet, patience: greeting}
}

// Act calls the present stage, and then the next one if that is done.
func (c *client) Act(t *act.Task) act.Directive {
	for {
		if d := c.stage(c, t); d != act.Done || c.stage == nil {
			return d
		}
	}
}

// wait waits with an act.Blocked. With any other error the client leaves.
func (c *client) wait(t *act.Task, err error) act.Directive {
	if b, blocked := err.(act.Blocked); blocked {
		b.Arm(t)
		return act.Wait
	}
	c.why, c.stage = err, (*client).leave
	return act.Done
}

// greet reads the CONNECT, and claims the identifier.
func (c *client) greet(t *act.Task) act.Directive {
	if err := c.due(t); err != nil {
		return c.wait(t, err)
	}
	p, n, err := c.read()
	if err == nil && p.kind != connect {
		err = violation("3.1.0-1")
	}
	if err == nil {
		c.hello, err = decodeConnect(p)
	}
	if code, refused := err.(refusal); refused {
		_ = c.wire.Push([]byte{byte(connack) << 4, 2, 0, byte(code)}) // there is room
	}
	if err != nil {
		return c.wait(t, err)
	}
	c.wire.Discard(n)
	if c.hello.id == "" {
		c.hello.id = c.broker.name()
	}
	c.claim, c.stage = c.broker.names.TakeOver(t, c.hello.id, struct{}{}), (*client).enter
	return act.Done
}

// enter waits for the end of an older connection of the client [MQTT-3.1.4-2].
func (c *client) enter(t *act.Task) act.Directive {
	if err := c.claim.Acquire(); err != nil {
		return c.wait(t, err)
	}
	present := byte(0)
	if c.session = c.broker.take(c.hello); c.session != nil {
		present = 1
	} else {
		c.session = newSession(c.broker, t.Scheduler(), c.hello)
	}
	t.Own(c.session) // closed before the claim
	c.answer = []byte{byte(connack) << 4, 2, present, 0}
	c.heard, c.patience, c.stage = t.Scheduler().Now(), c.hello.keepAlive*3/2, (*client).serve // [MQTT-3.1.2-24]
	return act.Done
}

func (c *client) serve(t *act.Task) act.Directive {
	if err := c.due(t); err != nil {
		return c.wait(t, err)
	}
	d := act.Wait
	for _, err := range [...]error{c.claim.Lost(), c.receive(t), c.deliver(t)} {
		if err == nil {
			d = act.Yield // there may be more
		} else if c.wait(t, err) == act.Done {
			return act.Done
		}
	}
	return d
}

// leave publishes the will, unless the client has left in order [MQTT-3.1.2-10] or the broker ends.
func (c *client) leave(t *act.Task) act.Directive {
	if c.session != nil && c.hello.will != nil && c.why != errLeft && c.why != errOver {
		if b, blocked := c.broker.publish(*c.hello.will).(act.Blocked); blocked {
			b.Arm(t)
			return act.Wait
		}
	}
	t.Scheduler().Logger().Debug("a client has left", zap.Error(c.why))
	c.stage = nil
	return act.Done
}

// due returns an error if it is time to leave. Otherwise it sets the timer to that time.
func (c *client) due(t *act.Task) error {
	now, at := t.Scheduler().Now(), time.Duration(math.MaxInt64)
	if c.heard == 0 {
		c.heard = now
	}
	if c.patience > 0 {
		at = c.heard + c.patience
	}
	if t.Order() != nil && c.last == 0 {
		c.last = t.NextLeaveTime()
	}
	switch {
	case c.last > 0 && now >= c.last:
		return errOver
	case now >= at:
		return errSilent
	case c.last > 0:
		t.WakeAt(&c.timer, min(at, c.last))
	case c.patience > 0 && !(c.timer.Armed() && c.timer.When() <= at):
		t.WakeAt(&c.timer, at)
	}
	return nil
}

// read returns the next packet, which stays unread, and its length.
func (c *client) read() (p packet, n int, err error) {
	for need := 2; ; need = n {
		in, ended := c.wire.Peek(need)
		if p, n, err = split(in); err != nil || n <= len(in) {
			return p, n, err
		}
		if ended != nil {
			return p, n, ended
		}
	}
}

// receive handles packets, until an error. A client that takes no answers is not read from.
func (c *client) receive(t *act.Task) error {
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
		c.heard = t.Scheduler().Now()
	}
	return nil
}

// handle handles a packet, and makes the answer. After an act.Blocked it is called again.
func (c *client) handle(p packet) error {
	switch f := (fields{rest: p.body}); p.kind {
	case publish:
		m, id, err := decodePublish(p)
		if err == nil {
			m.Data = bytes.Clone(m.Data)
			err = c.broker.publish(m)
		}
		if err == nil && id != 0 {
			c.answer = encodeAck(puback, id)
		}
		return err
	case puback:
		c.session.landed(f.id())
		return f.end()
	case subscribe, unsubscribe:
		id, wishes, err := decodeWishes(p)
		var codes []byte
		for _, w := range wishes {
			if p.kind == subscribe {
				codes = append(codes, c.session.subscribe(w))
			} else {
				c.session.unsubscribe(w)
			}
		}
		c.answer = encodeAck(p.kind+1, id, codes...)
		return err
	case pingreq:
		c.answer = []byte{byte(pingresp) << 4, 0}
		return f.end()
	case disconnect:
		return errLeft
	}
	return violation("3.1.0-2")
}

// deliver sends messages, until an error. Flights of an earlier connection come first [MQTT-4.4.0-1].
func (c *client) deliver(t *act.Task) (err error) {
	s := c.session
	for range batch {
		switch {
		case s.sent < len(s.flights):
			f := s.flights[s.sent]
			if err = c.wire.Push(encodePublish(f.m, f.id, f.again)); err == nil {
				s.sent++
			}
		case c.kept != nil:
			if err = c.wire.share(c.kept); err == nil {
				c.kept = nil
			}
		default:
			c.kept, err = s.next(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
