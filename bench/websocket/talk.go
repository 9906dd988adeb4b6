package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/daimon-go/daimon/bench/internal/load"
)

// The key of RFC 6455 1.3, and the answer to it.
const (
	key    = "dGhlIHNhbXBsZSBub25jZQ=="
	accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// most is the size of the largest message: its length fits into the two bytes of RFC 6455 5.2.
const most = 1<<16 - 1

const (
	phases   = 251 // a prime, as in load.Echo
	text     = 1
	binaries = 2
	final    = 0x80
	masked   = 0x80
	extended = 126
)

// talk is burst messages that are sent back, each in one frame, which the client masks.
func (m *measurement) talk(path string, size, burst int) load.Talk {
	opcode := byte(binaries)
	if m.Text {
		opcode = text
	}
	opening := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", path, key)
	t := load.Talk{Phases: phases, Apart: true, Opening: []byte(opening)}
	for i := range phases * burst {
		pattern := load.Echo(size + 4).Message(i % phases)
		payload, mask := bytes.Clone(pattern[:size]), pattern[size:]
		if m.Text {
			for j := range payload {
				payload[j] = ' ' + payload[j]%('~'-' ')
			}
		}
		t.Hear = append(header(t.Hear, opcode, 0, size), payload...)
		for j := range payload {
			payload[j] ^= mask[j%4]
		}
		t.Say = append(append(header(t.Say, opcode, masked, size), mask...), payload...)
	}
	return t
}

// header appends the header of a frame, but for the mask.
func header(p []byte, opcode, mask byte, size int) []byte {
	if size < extended {
		return append(p, final|opcode, mask|byte(size))
	}
	return binary.BigEndian.AppendUint16(append(p, final|opcode, mask|extended), uint16(size))
}

// exchange returns a handshake and one exchange of t.
func exchange(t load.Talk) func(net.Conn) error {
	return func(c net.Conn) error {
		if _, err := c.Write(t.Opening); err != nil {
			return err
		}
		head, err := readHead(c)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) || !bytes.Contains(head, []byte(accept)) {
			return fmt.Errorf("the handshake was answered with %q", head)
		}
		if _, err := c.Write(t.Message(0)); err != nil {
			return err
		}
		heard := make([]byte, len(t.Answer(0)))
		if _, err := io.ReadFull(c, heard); err != nil {
			return err
		}
		if !t.Heard(heard) {
			return fmt.Errorf("said %q, heard %q", t.Message(0), heard)
		}
		return nil
	}
}

// readHead reads up to an empty line. A server sends nothing after it without being asked.
func readHead(c net.Conn) (head []byte, err error) {
	for buffer := make([]byte, 4<<10); !bytes.HasSuffix(head, []byte("\r\n\r\n")) && len(head) < len(buffer); {
		n, err := c.Read(buffer)
		head = append(head, buffer[:n]...)
		if err != nil {
			return head, fmt.Errorf("after %d bytes of the answer to a handshake: %w", len(head), err)
		}
	}
	return head, nil
}
