// Package mqtt has what clients of MQTT 3.1.1 with QoS 0 say and hear.
package mqtt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

const patience = time.Minute

// Dial opens a connection and a clean session without a keep-alive: 3.1. If there is a topic, it is subscribed to: 3.8.
func Dial(addr, client, topic string) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	err = ask(c, packet(0x10, text("MQTT"), "\x04\x02\x00\x00", text(client)), []byte{0x20, 2, 0, 0})
	if err == nil && topic != "" {
		err = ask(c, packet(0x82, "\x00\x01", text(topic), "\x00"), []byte{0x90, 3, 0, 1, 0})
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Publish returns a PUBLISH packet. A server passes it on as it is: 3.3.
func Publish(topic string, payload []byte) []byte { return packet(0x30, text(topic), string(payload)) }

// Expect reads exactly these bytes.
func Expect(from net.Conn, want []byte) error {
	if err := from.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil {
		return fmt.Errorf("%q is missing: %w", want, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the server has sent %q, and not %q", got, want)
	}
	return nil
}

func ask(c net.Conn, say, hear []byte) error {
	if _, err := c.Write(say); err != nil {
		return err
	}
	return Expect(c, hear)
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
