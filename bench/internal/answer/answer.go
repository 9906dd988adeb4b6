// Package answer learns what a server answers to an HTTP request, and makes a load.Talk of it.
package answer

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/load"
)

// Hello is the body of the usual answer.
const Hello = "Hello, World!"

const (
	dateLen  = len("Sun, 06 Nov 1994 08:49:37 GMT") // IMF-fixdate: RFC 9110, 5.6.7
	maxHead  = 8 << 10
	patience = time.Minute // for one answer
)

// Request is what is sent to addr: the content of file, or without one as little as wrk sends.
func Request(file, addr string) ([]byte, error) {
	if file == "" {
		return []byte("GET / HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"), nil
	}
	text, err := os.ReadFile(file)
	if err == nil && (!bytes.HasPrefix(text, []byte("GET ")) || !bytes.HasSuffix(text, []byte("\r\n\r\n"))) {
		err = fmt.Errorf("%s is no GET request that ends with an empty line, CR and LF", file)
	}
	return text, err
}

// Answer is what a server sends to one request. All its answers are the same but for the value of Date.
type Answer struct {
	Whole []byte
	Date  int // where its value begins
}

// Talk is depth requests in one write, and as many answers.
func (a Answer) Talk(request []byte, depth int) load.Talk {
	return load.Talk{
		Say: bytes.Repeat(request, depth), Hear: bytes.Repeat(a.Whole, depth),
		Period: len(a.Whole), Hole: a.Date, HoleLen: dateLen,
	}
}

// Ask sends one request on c, a new connection, and learns what the server answers. Its body has to be want.
func Ask(c net.Conn, request []byte, want string) (Answer, error) {
	_ = c.SetDeadline(time.Now().Add(patience)) // fails on closed connections only
	if _, err := c.Write(request); err != nil {
		return Answer{}, err
	}
	return Read(c, want)
}

// Read reads up to the end that the head promises; the load generator will find bytes that come after it.
func Read(c net.Conn, want string) (Answer, error) {
	var got []byte
	for {
		part := make([]byte, maxHead)
		n, err := c.Read(part)
		got = append(got, part[:n]...)
		end := bytes.Index(got, []byte("\r\n\r\n"))
		switch {
		case end >= 0:
			length, date, err := parse(string(got[:end]), len(want))
			if err != nil {
				return Answer{}, err
			}
			if whole := end + 4 + length; len(got) >= whole {
				return Answer{Whole: got, Date: date}, check(string(got[end+4:]), want)
			}
		case len(got) > maxHead:
			return Answer{}, fmt.Errorf("a head of more than %d bytes", maxHead)
		}
		if err != nil {
			return Answer{}, fmt.Errorf("after %d bytes of an answer: %w", len(got), err)
		}
	}
}

func check(got, want string) error {
	if got != want {
		return fmt.Errorf("the body is %.100q, not %.100q", got, want)
	}
	return nil
}

// parse reads a head without the empty line after it. It requires the fields that make all servers do the same work,
// and a body of want bytes.
func parse(head string, want int) (length, date int, err error) {
	status, rest, _ := strings.Cut(head, "\r\n")
	if !strings.HasPrefix(status, "HTTP/1.1 200") {
		return 0, 0, fmt.Errorf("the status line is %q", status)
	}
	length, date = -1, -1
	at := len(head) - len(rest)
	kind := ""
	for line := range strings.SplitSeq(rest, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		trimmed := strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(trimmed); err != nil {
				return 0, 0, err
			}
		case "content-type":
			kind = trimmed
		case "date":
			date = at + strings.Index(line, trimmed)
			if len(trimmed) != dateLen {
				return 0, 0, fmt.Errorf("a Date of %d bytes: %q", len(trimmed), trimmed)
			}
		case "connection":
			if !strings.EqualFold(trimmed, "keep-alive") {
				return 0, 0, fmt.Errorf("the connection is not kept: %q", line)
			}
		}
		at += len(line) + len("\r\n")
	}
	switch {
	case length != want:
		err = fmt.Errorf("the Content-Length is not %d: %q", want, head)
	case date < 0:
		err = errors.New("no Date")
	case kind != "text/plain" && !strings.HasPrefix(kind, "text/plain;") && kind != "application/json":
		err = fmt.Errorf("the Content-Type is %q", kind)
	}
	return length, date, err
}
