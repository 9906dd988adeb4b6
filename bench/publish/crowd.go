package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/server"
)

const (
	topic    = "news"
	patience = time.Minute
)

// crowd is the clients of a server: a publisher, and the subscribers of one topic.
type crowd struct {
	publisher   net.Conn
	subscribers []net.Conn
	say, hear   []byte // of a burst
	buffer      []byte
}

// connect subscribes all clients.
func (o Options) connect(s *server.Process) (c *crowd, err error) {
	text := topic + " " + strings.Repeat("x", max(1, o.Size-len(topic)-2)) + "\n"
	c = &crowd{
		say:  []byte(strings.Repeat("pub "+text, o.Messages)),
		hear: []byte(strings.Repeat(text, o.Messages)),
	}
	c.buffer = make([]byte, len(c.hear))
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.publisher, err = net.Dial("tcp", s.Addr()); err != nil {
		return nil, err
	}
	for range o.Subscribers {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			return nil, err
		}
		c.subscribers = append(c.subscribers, conn)
		answer := "+ " + topic + "\n"
		if _, err := io.WriteString(conn, "sub "+topic+"\n"); err != nil {
			return nil, err
		}
		if err := c.expect(conn, []byte(answer)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// burst publishes all messages with one write, and returns when all subscribers have them.
func (c *crowd) burst() error {
	if _, err := c.publisher.Write(c.say); err != nil {
		return err
	}
	for _, s := range c.subscribers {
		if err := c.expect(s, c.hear); err != nil {
			return err
		}
	}
	return nil
}

// expect reads exactly these bytes.
func (c *crowd) expect(from net.Conn, want []byte) error {
	if err := from.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	got := c.buffer[:len(want)]
	if _, err := io.ReadFull(from, got); err != nil {
		return fmt.Errorf("a subscriber misses a message: %w", err)
	}
	if !bytes.Equal(got, want) {
		return errors.New("a subscriber has received other bytes than were published")
	}
	return nil
}

func (c *crowd) close() {
	for _, s := range append(c.subscribers, c.publisher) {
		if s != nil {
			_ = s.Close()
		}
	}
}
