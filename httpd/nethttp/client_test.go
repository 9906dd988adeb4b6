package nethttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// client is the client's side of a connection.
type client struct {
	net.Conn
	in  *bufio.Reader
	old bool // it speaks HTTP/1.0
}

// dial makes a connection, which is closed at the end of the test at the latest.
func (s *scene) dial() *client {
	s.Helper()
	tcp, err := net.Dial("tcp", s.address)
	require.NoError(s, err)
	c := &client{Conn: tcp}
	s.Cleanup(func() { _ = tcp.Close() })
	require.NoError(s, tcp.SetDeadline(time.Now().Add(patience)))
	if s.secure {
		over := tls.Client(tcp, s.trust)
		require.NoError(s, over.Handshake())
		c.Conn = over
	}
	c.in = bufio.NewReader(c.Conn)
	return c
}

// raw writes the ends of lines as HTTP has them.
func raw(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// send sends text, with the ends of lines as HTTP has them. A server that is not interested any more is no error here.
func (c *client) send(text string) { _, _ = io.WriteString(c.Conn, raw(text)) }

// answer is a response as it came over the wire.
type answer struct {
	status   int
	fields   []string // sorted, without Date
	body     []byte
	trailers []string
	cut      bool // the connection has ended before it
	again    bool // it is the answer to again
}

func (a *answer) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.status)
	for _, f := range a.fields {
		fmt.Fprintln(&b, "\t"+f)
	}
	switch {
	case a.cut && len(a.body) > 1000:
		fmt.Fprintln(&b, "\ta part") // how much depends on buffers
	case len(a.body) > 0:
		fmt.Fprintln(&b, "\t"+digest(a.body))
	}
	for _, f := range a.trailers {
		fmt.Fprintln(&b, "\ttrailer "+f)
	}
	if a.cut {
		fmt.Fprintln(&b, "\tcut off")
	}
	return b.String()
}

// final reports whether it is not an interim response.
func (a *answer) final() bool { return a.status >= 200 || a.status == 101 }

// digest is short for what is long.
func digest(p []byte) string {
	if len(p) <= 400 {
		return strconv.Quote(string(p))
	}
	return fmt.Sprintf("%d bytes %08x", len(p), crc32.ChecksumIEEE(p))
}

// answer reads a response to a request with this method. The error is io.EOF if the connection has ended instead.
func (c *client) answer(method string) (*answer, error) {
	a := &answer{}
	line, err := c.line()
	if err != nil {
		if line == "" && gone(err) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("instead of an answer: %q: %w", line, err)
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.%1d %3d", new(int), &a.status); err != nil {
		return nil, fmt.Errorf("no status line: %q", line)
	}
	if a.fields, err = c.lines(); err != nil {
		return a, a.short(err)
	}
	slices.Sort(a.fields)
	a.again = slices.Contains(a.fields, "Again: yes")
	length, bad := strconv.ParseInt(a.get("Content-Length"), 10, 40) // as the client of net/http has it
	chunked := slices.Contains(a.fields, "Transfer-Encoding: chunked")
	a.fields = slices.DeleteFunc(a.fields, func(f string) bool {
		return strings.HasPrefix(f, "Date: ") ||
			method == "HEAD" && f == "Transfer-Encoding: chunked" || // net/http leaves it out where a GET would have it
			a.status < 200 && f == "Connection: close" || // of a handler: net/http sends it with each of its responses
			c.old && f == "Connection: close" // net/http leaves it out, since it is what such a client expects
	})
	switch {
	case method == "HEAD" || a.status < 200 || a.status == 204 || a.status == 304:
	case chunked:
		err = c.chunks(a)
	case bad == nil && length >= 0:
		a.body, err = io.ReadAll(io.LimitReader(c.in, length))
		if err == nil && int64(len(a.body)) < length {
			err = io.EOF
		}
	default:
		a.body, err = io.ReadAll(c.in)
	}
	if err != nil {
		return a, a.short(err)
	}
	return a, nil
}

func (a *answer) get(name string) string {
	for _, f := range a.fields {
		if value, is := strings.CutPrefix(f, name+": "); is {
			return value
		}
	}
	return ""
}

// short returns nil if err is the end of the connection, which is noted.
func (a *answer) short(err error) error {
	if gone(err) {
		a.cut = true
		return nil
	}
	return fmt.Errorf("after %q: %w", a, err)
}

// gone reports whether err is an end of the connection.
func gone(err error) bool {
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errSyntax)
}

var errSyntax = errors.New("not as HTTP has it")

// line reads a line, without its end.
func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return line, err
	}
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("%w: a line %q", errSyntax, line)
	}
	return line, nil
}

// lines reads the lines up to an empty one.
func (c *client) lines() (all []string, err error) {
	for {
		line, err := c.line()
		if err != nil || line == "" {
			return all, err
		}
		all = append(all, line)
	}
}

func (c *client) chunks(a *answer) (err error) {
	if a.body, err = io.ReadAll(httputil.NewChunkedReader(c.in)); err != nil {
		return err
	}
	a.trailers, err = c.lines()
	slices.Sort(a.trailers)
	return err
}

// hear reads one answer and notes it. It returns nil at the end of the connection, which is noted, too.
func (s *scene) hear(c *client, method string) *answer {
	s.Helper()
	a, err := c.answer(method)
	switch {
	case err == io.EOF:
		s.note("closed")
		return nil
	case err != nil:
		require.NoError(s, err, s.name)
	}
	s.note("%s", strings.TrimSuffix(a.String(), "\n"))
	return a
}

// talk has one connection on which request is sent, and then another one, to see whether the connection lasts. If
// pipelined, both are sent together.
func (s *scene) talk(request string, pipelined bool) {
	s.Helper()
	calls := s.calls.Load()
	c := s.dial()
	defer c.Close()
	say := raw(request)
	if pipelined {
		say += again
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c.Conn, say)
	}()
	defer func() { <-sent }()
	defer c.Close()
	line, _, _ := strings.Cut(strings.TrimLeft(request, "\n"), "\n")
	method, _, _ := strings.Cut(line, " ")
	c.old = strings.HasSuffix(line, "HTTP/1.0")
	for asked := pipelined; ; {
		a, err := c.answer(method)
		if err == io.EOF {
			s.note("closed")
			return
		}
		require.NoError(s, err, s.name)
		switch {
		case a.again:
			s.note("lasts")
			return
		case c.old && !a.final(): // net/http sends it to a client that does not know it (RFC 9110 15.2)
		case a.status >= 400 && s.calls.Load() == calls:
			s.note("refused: %d", a.status) // in which words does not matter
		default:
			s.note("%s", strings.TrimSuffix(a.String(), "\n"))
		}
		if !asked && a.final() {
			asked = true
			select {
			case <-sent:
				_, _ = io.WriteString(c.Conn, again)
			default: // the answer has come before the end of the request
				go func() {
					<-sent
					_, _ = io.WriteString(c.Conn, again)
				}()
			}
		}
		if a.final() {
			method = ""
		}
	}
}

// ask talks twice: the second request is sent after the first answer, and together with the first request. The two are
// noted apart if they differ.
func (s *scene) ask(name, request string) {
	s.Helper()
	var texts [2]string
	for i := range texts {
		s.part(name)
		s.talk(request, i == 1)
		s.curtain()
		texts[i] = s.parts[len(s.parts)-1].text
		s.parts = s.parts[:len(s.parts)-1]
	}
	s.parts = append(s.parts, part{name, texts[0]})
	if texts[0] != texts[1] {
		s.parts = append(s.parts, part{name + ", pipelined", texts[1]})
	}
	s.part("")
}

// known are the errors that are compared by name.
var known = []struct {
	name string
	err  error
}{
	{"ErrBodyNotAllowed", http.ErrBodyNotAllowed}, {"ErrContentLength", http.ErrContentLength},
	{"ErrBodyReadAfterClose", http.ErrBodyReadAfterClose}, {"ErrHijacked", http.ErrHijacked},
	{"ErrHandlerTimeout", http.ErrHandlerTimeout}, {"ErrNotSupported", http.ErrNotSupported},
	{"ErrUnexpectedEOF", io.ErrUnexpectedEOF}, {"EOF", io.EOF}, {"deadline exceeded", os.ErrDeadlineExceeded},
	{"Canceled", context.Canceled},
}

// named names an error.
func named(err error) string {
	if err == nil {
		return "nil"
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return fmt.Sprint("MaxBytesError ", large.Limit)
	}
	return "another error"
}
