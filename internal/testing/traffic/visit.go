package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// visit asks again and again on one connection, until the server says that it closes it.
func (l *Load) visit(c Client, conn net.Conn, over <-chan struct{}) *Failure {
	in := bufio.NewReader(conn)
	for lost := Reset; ; lost = Race {
		if lost == Race && c.Rest > 0 {
			switch open, err := rest(conn, in, c.rest(), over); {
			case err != nil:
				return &Failure{Kind: Reset, Client: c, Err: err}
			case !open:
				l.atRest.Add(1)
				return nil
			}
			time.Sleep(c.Blind)
		}
		_ = conn.SetDeadline(time.Now().Add(Patience))
		last := c.Fresh || ended(over)
		answered, closed, err := ask(conn, in, c.Path, last)
		switch {
		case errors.Is(err, errWrong), errors.Is(err, os.ErrDeadlineExceeded):
			return &Failure{Kind: Wrong, Client: c, Err: err}
		case err != nil && answered:
			return &Failure{Kind: Cut, Client: c, Err: err}
		case err != nil:
			return &Failure{Kind: lost, Client: c, Err: err}
		}
		l.served.Add(1)
		if closed || last {
			return nil
		}
	}
}

// look is how often a client at rest polls whether its connection was closed, or all is over.
const look = 100 * time.Millisecond

// rest waits for d, or for the end, and reports whether the connection is open then.
func rest(conn net.Conn, in *bufio.Reader, d time.Duration, over <-chan struct{}) (open bool, err error) {
	for until := time.Now().Add(d); ; {
		left := min(time.Until(until), look)
		if ended(over) {
			left = time.Millisecond
		}
		_ = conn.SetReadDeadline(time.Now().Add(left))
		switch _, err := in.Peek(1); {
		case errors.Is(err, os.ErrDeadlineExceeded) && left == look:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true, nil
		case err == io.EOF:
			return false, nil
		case err == nil:
			return false, errors.New("an answer that nobody has asked for")
		default:
			return false, err
		}
	}
}

var errWrong = errors.New("a wrong answer")

// ask sends a request and reads the answer. answered reports whether a byte of it has come, and closed whether it says that
// the server closes the connection.
func ask(conn net.Conn, in *bufio.Reader, path string, last bool) (answered, closed bool, err error) {
	connection := ""
	if last {
		connection = "Connection: close\r\n"
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, connection); err != nil {
		return false, false, err
	}
	if _, err := in.Peek(1); err != nil {
		return false, false, err
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return true, false, err
	}
	n, err := io.Copy(io.Discard, &patient{answer.Body, conn})
	if err == nil && (answer.StatusCode != http.StatusOK || n == 0) {
		err = fmt.Errorf("%w: status %d, %d bytes", errWrong, answer.StatusCode, n)
	}
	return true, answer.Close, err
}

// patient is a body that may take as long as it likes, if it does not stop.
type patient struct {
	io.Reader
	conn net.Conn
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	_ = p.conn.SetDeadline(time.Now().Add(Patience))
	return p.Reader.Read(b)
}

// talk has messages of WebSocket echoed on one connection. The mask is zero.
func (l *Load) talk(c Client, conn net.Conn, over <-chan struct{}) *Failure {
	_ = conn.SetDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(conn, "GET "+c.Path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		return &Failure{Kind: Reset, Client: c, Err: err}
	}
	in := bufio.NewReader(conn)
	switch answer, err := http.ReadResponse(in, nil); {
	case err != nil:
		return &Failure{Kind: Reset, Client: c, Err: err}
	case answer.StatusCode != http.StatusSwitchingProtocols:
		return &Failure{Kind: Wrong, Client: c, Err: fmt.Errorf("the handshake: status %d", answer.StatusCode)}
	}
	for !ended(over) {
		_ = conn.SetDeadline(time.Now().Add(Patience))
		_, unsent := io.WriteString(conn, "\x81\x85\x00\x00\x00\x00Hello") // what the server has said before its end can be read
		head := make([]byte, 2)
		if _, err := io.ReadFull(in, head); err != nil {
			return &Failure{Kind: Cut, Client: c, Err: errors.Join(unsent, err)}
		}
		if head[0] == 0x88 { // a close frame
			return nil
		}
		text := make([]byte, head[1])
		if _, err := io.ReadFull(in, text); err != nil || string(text) != "Hello" {
			return &Failure{Kind: Cut, Client: c, Err: fmt.Errorf("%q in place of the echo: %w", text, err)}
		}
		l.served.Add(1)
	}
	return nil
}
