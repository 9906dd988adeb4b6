package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const patience = time.Minute

// crowd is the clients of a server, which speak MQTT 3.1.1 with QoS 0. Each publisher has a topic, and the subscribers have these
// topics in turn.
type crowd struct {
	publishers, subscribers []net.Conn
	payload                 []byte // begins with the number of the message
	burst                   int
	in                      []byte
}

// gather connects them.
func gather(addr string, publishers, subscribers, burst, size int) (c *crowd, err error) {
	c = &crowd{payload: bytes.Repeat([]byte("x"), size), burst: burst}
	c.in = make([]byte, len(c.packets(0, 0)))
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i := range subscribers {
		conn, err := c.connect(addr, fmt.Sprintf("subscriber%d", i))
		if err != nil {
			return nil, err
		}
		c.subscribers = append(c.subscribers, conn)
		if err := c.ask(conn, packet(0x82, "\x00\x01", text(name(i%publishers)), "\x00"), []byte{0x90, 3, 0, 1, 0}); err != nil {
			return nil, err
		}
	}
	for i := range publishers {
		conn, err := c.connect(addr, fmt.Sprintf("publisher%d", i))
		if err != nil {
			return nil, err
		}
		c.publishers = append(c.publishers, conn)
	}
	return c, nil
}

// name is the topic of a publisher. All have the same length.
func name(i int) string { return fmt.Sprintf("news/%04d", i) }

// connect opens a connection and a session without a keep-alive: MQTT 3.1.1, 3.1.
func (c *crowd) connect(addr, client string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := c.ask(conn, packet(0x10, text("MQTT"), "\x04\x02\x00\x00", text(client)), []byte{0x20, 2, 0, 0}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

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
		if err := c.expect(s, said[i%len(said)]); err != nil {
			return fmt.Errorf("subscriber %d: %w", i, err)
		}
	}
	return nil
}

// packets are the PUBLISH packets of a burst. A broker with QoS 0 passes them on as they are: 3.3.
func (c *crowd) packets(publisher, number int) (p []byte) {
	for i := range c.burst {
		binary.BigEndian.PutUint64(c.payload, uint64(number*c.burst+i))
		p = append(p, packet(0x30, text(name(publisher)), string(c.payload))...)
	}
	return p
}

func packet(header byte, parts ...string) []byte {
	var body []byte
	for _, part := range parts {
		body = append(body, part...)
	}
	return append(binary.AppendUvarint([]byte{header}, uint64(len(body))), body...) // 2.2.3
}

// text is a string with its length before it: 1.5.3.
func text(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }

func (c *crowd) ask(conn net.Conn, say, hear []byte) error {
	if _, err := conn.Write(say); err != nil {
		return err
	}
	return c.expect(conn, hear)
}

// expect reads exactly these bytes.
func (c *crowd) expect(from net.Conn, want []byte) error {
	if err := from.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	got := c.in[:len(want)]
	if _, err := io.ReadFull(from, got); err != nil {
		return fmt.Errorf("a message is missing: %w", err)
	}
	if !bytes.Equal(got, want) {
		return errors.New("the server has sent other bytes than were expected")
	}
	return nil
}

func (c *crowd) close() {
	for _, s := range append(c.subscribers, c.publishers...) {
		_ = s.Close()
	}
}
