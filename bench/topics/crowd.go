package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/daimon-go/daimon/bench/internal/mqtt"
)

// crowd is the clients of a server. Each publisher has a topic, and the subscribers have these topics in turn.
type crowd struct {
	publishers, subscribers []net.Conn
	payload                 []byte // begins with the number of the message
	burst                   int
}

// gather connects them.
func gather(addr string, publishers, subscribers, burst, size int) (*crowd, error) {
	c := &crowd{payload: bytes.Repeat([]byte("x"), size), burst: burst}
	for i := range subscribers + publishers {
		topic, to := "", &c.publishers
		if i < subscribers {
			topic, to = name(i%publishers), &c.subscribers
		}
		conn, err := mqtt.Dial(addr, fmt.Sprintf("client%d", i), topic)
		if err != nil {
			c.close()
			return nil, err
		}
		*to = append(*to, conn)
	}
	return c, nil
}

// name is the topic of a publisher.
func name(i int) string { return fmt.Sprintf("news/%04d", i) }

// round has each publisher say a burst with one write, and returns when all subscribers have all of their messages.
func (c *crowd) round(number int) error {
	said := make([][]byte, len(c.publishers))
	for i, p := range c.publishers {
		said[i] = c.packets(i, number)
		if _, err := p.Write(said[i]); err != nil {
			return err
		}
	}
	for i, s := range c.subscribers {
		if err := mqtt.Expect(s, said[i%len(said)]); err != nil {
			return fmt.Errorf("subscriber %d: %w", i, err)
		}
	}
	return nil
}

func (c *crowd) packets(publisher, number int) (p []byte) {
	for i := range c.burst {
		binary.BigEndian.PutUint64(c.payload, uint64(number*c.burst+i))
		p = append(p, mqtt.Publish(name(publisher), c.payload)...)
	}
	return p
}

func (c *crowd) close() {
	for _, s := range append(c.subscribers, c.publishers...) {
		_ = s.Close()
	}
}
