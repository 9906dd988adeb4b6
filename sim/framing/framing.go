// Package framing reads and writes the messages of simulated clients: lines, messages with a length before them, and
// messages of WebSocket. The client libraries of most protocols start goroutines, which a world cannot repeat. These
// types start none: a call waits only in the Read or Write of its connection, a sim.Client, or a tls.Conn over one.
//
// One script of a client may read while another one writes. Goroutines may not. Read returns io.EOF if the connection
// ends between two messages, and io.ErrUnexpectedEOF within one. Other errors of the connection are returned as they
// are, so that a world recognizes the errors of its faults.
package framing

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A line that is read has at most so many bytes, with its end, and a message so many.
const (
	mostOfLine    = 64 << 10
	mostOfMessage = 1 << 20
)

// Lines reads and writes lines of up to 64 KiB. The zero Lines with a Conn is ready for use.
type Lines struct {
	Conn io.ReadWriter // the connection: a sim.Client, or a tls.Conn over one

	in *bufio.Reader
}

// Read returns the next line, without its end, LF or CRLF. If the line is longer than 64 KiB, the error is
// bufio.ErrBufferFull. Other errors are as the package comment says.
func (x *Lines) Read() (string, error) {
	if x.in == nil {
		x.in = bufio.NewReaderSize(x.Conn, mostOfLine)
	}
	line, err := x.in.ReadSlice('\n')
	if err == io.EOF && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

// Write writes a line, which has no end yet, and LF, in one Write of the connection.
func (x *Lines) Write(line string) error {
	_, err := io.WriteString(x.Conn, line+"\n")
	return err
}

// Lengths reads and writes messages of up to 1 MiB, each with its length in bytes before it, a big-endian number.
type Lengths struct {
	Conn io.ReadWriter // the connection: a sim.Client, or a tls.Conn over one
	Size int           // how many bytes a length takes, up to 8; 0 means 4
}

// Read returns the next message, in memory that the caller owns. It fails if the message is longer than 1 MiB, with io.EOF
// after the last message, and with io.ErrUnexpectedEOF within one.
func (x *Lengths) Read() ([]byte, error) {
	var field [8]byte
	if _, err := io.ReadFull(x.Conn, field[8-cmp.Or(x.Size, 4):]); err != nil {
		return nil, err
	}
	return body(x.Conn, binary.BigEndian.Uint64(field[:]), mostOfMessage)
}

// Write writes the length of p and then p, in one Write of the connection.
func (x *Lengths) Write(p []byte) error {
	f := binary.BigEndian.AppendUint64(nil, uint64(len(p)))
	_, err := x.Conn.Write(append(f[8-cmp.Or(x.Size, 4):], p...))
	return err
}

// body reads the n bytes of a message that has begun.
func body(in io.Reader, n uint64, most int) ([]byte, error) {
	if n > uint64(most) {
		return nil, fmt.Errorf("framing: a message of %d bytes, where %d are the most", n, most)
	}
	p := make([]byte, n)
	_, err := io.ReadFull(in, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return p, err
}

// WebSocket is a client of WebSocket (RFC 6455), without compression, that reads messages of up to 1 MiB: set Conn, call
// Open, then Read and Write. It shares no code with package websocket, so that it can judge a server of that package.
type WebSocket struct {
	Conn   io.ReadWriter // the connection: a sim.Client, or a tls.Conn over one
	Header string        // further header lines of the request, each with its "\r\n", such as "Origin: http://localhost\r\n"

	in      *bufio.Reader
	queue   []byte // frames that are to be written
	writing bool   // by another call, which writes all of the queue
}

// Text and Binary are the kinds of messages, for Read and Write of a [WebSocket]: the opcodes of RFC 6455 5.2.
const (
	Text   = 1
	Binary = 2

	closes, ping, pong = 8, 9, 10
)

// Closed is the error of [WebSocket.Read] when the server has closed the connection with a close frame.
type Closed struct {
	Code   int    // the status code of the close frame (RFC 6455 7.4); 1005 if it has none
	Reason string // the reason of the close frame, or ""
}

// Error returns the code and the reason, in one line.
func (e *Closed) Error() string {
	return fmt.Sprintf("framing: closed with code %d %s", e.Code, e.Reason)
}

// Open sends a request for the path to the host "localhost", and reads the answer. Its key is the example of RFC 6455
// 1.3, which has the answer to it.
func (x *WebSocket) Open(path string) error {
	_, err := fmt.Fprintf(x.Conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", path, x.Header)
	if err != nil {
		return err
	}
	x.in = bufio.NewReader(x.Conn)
	answer, lines := "", &Lines{in: x.in}
	for line := "-"; line != ""; answer += line + "\n" {
		if line, err = lines.Read(); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 101 ") || !strings.Contains(answer, ": s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n") {
		return fmt.Errorf("framing: the answer to the handshake is %.1000q", answer)
	}
	return nil
}

// Read returns the kind of the next message, Text or Binary, and the message. It answers pings. When the server has closed
// it answers that as well, and the error is a [*Closed].
func (x *WebSocket) Read() (kind int, p []byte, err error) {
	for final := false; !final; {
		var op int
		var part []byte
		final, op, part, err = x.frame(len(p))
		switch {
		case err == io.EOF && kind != 0:
			err = io.ErrUnexpectedEOF
		case err != nil:
		case op == closes:
			_ = x.Write(closes, part[:min(2, len(part))]) // the server need not wait for it
			part = append(part, "\x03\xed"[min(2, len(part)):]...)
			err = &Closed{int(binary.BigEndian.Uint16(part)), string(part[2:])}
		case op == ping:
			final, err = false, x.Write(pong, part)
		case op == pong:
			final = false
		case (op == 0) != (kind != 0):
			err = errors.New("framing: a message within a message, or more of none")
		default:
			kind, p = max(kind, op), append(p, part...)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return kind, p, nil
}

// frame reads a frame of a message of which so many bytes have come.
func (x *WebSocket) frame(come int) (final bool, op int, p []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(x.in, head[:]); err != nil {
		return false, 0, nil, err
	}
	final, op = head[0]&0x80 != 0, int(head[0]&0xF)
	n := uint64(head[1])
	if head[0]&0x70 != 0 || op > Binary && op < closes || op > pong || n > 127 || op >= closes && (n > 125 || !final) {
		return false, 0, nil, fmt.Errorf("framing: a frame that begins with %#x", head)
	}
	if n > 125 {
		length, err := body(x.in, 2+6*(n-126), 8)
		if err != nil {
			return false, 0, nil, err
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-len(length), 8), length...))
	}
	p, err = body(x.in, n, max(125, mostOfMessage-come))
	return final, op, p, err
}

// Close sends a close frame, with a code of RFC 6455 7.4 and a reason. Call Read until it returns the answer, a [*Closed].
func (x *WebSocket) Close(code int, reason string) error {
	return x.Write(closes, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
}

// Write writes a message of a kind, Text or Binary, as one frame. While another call is writing, Write returns at once, and the
// other call writes both.
func (x *WebSocket) Write(kind int, p []byte) error {
	f := append(x.queue, 0x80|byte(kind))
	switch n := len(p); {
	case n < 126:
		f = append(f, 0x80|byte(n))
	case n < 1<<16:
		f = binary.BigEndian.AppendUint16(append(f, 0x80|126), uint16(n))
	default:
		f = binary.BigEndian.AppendUint64(append(f, 0x80|127), uint64(n))
	}
	const mask = "\x37\xfa\x21\x3d" // of the example in RFC 6455 5.7
	f = append(f, mask...)
	for i, b := range p {
		f = append(f, b^mask[i%4])
	}
	if x.queue = f; x.writing {
		return nil
	}
	x.writing = true
	defer func() { x.writing = false }()
	for len(x.queue) > 0 {
		f, x.queue = x.queue, nil
		if _, err := x.Conn.Write(f); err != nil {
			return err
		}
	}
	return nil
}
