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
	"regexp"
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
	network := "tcp"
	if strings.HasPrefix(s.address, "/") {
		network = "unix"
	}
	tcp, err := net.Dial(network, s.address)
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

// raw writes the ends of lines as HTTP has them, and a lone LF for "␊".
func raw(text string) string { return strings.NewReplacer("\n", "\r\n", "␊", "\n").Replace(text) }

// send sends text, with the ends of lines as HTTP has them, and closes this side at "␄". A server that is not interested any
// more is not an error here.
func (c *client) send(text string) {
	text, ends := strings.CutSuffix(text, "␄")
	if _, _ = io.WriteString(c.Conn, raw(text)); ends {
		_ = c.Conn.(*net.TCPConn).CloseWrite()
	}
}

// asks returns the method of a request.
func (c *client) asks(request string) (method string) {
	line, _, _ := strings.Cut(strings.TrimLeft(request, "\n"), "\n")
	c.old = strings.HasSuffix(line, "HTTP/1.0")
	method, _, _ = strings.Cut(line, " ")
	return method
}

// answer is a response as it came over the wire.
type answer struct {
	line     string
	status   int
	fields   []string // sorted
	body     []byte
	trailers []string
	cut      bool // the connection has ended before it
	again    bool // it is the answer to again

	method  string // of its request
	old     bool   // which was of HTTP/1.0
	refusal bool   // no handler was called
}

func (a *answer) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.line)
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

// drawn are what the server draws: the boundaries of multipart/byteranges; and its Date, while that of a handler here is old.
var drawn = regexp.MustCompile("[0-9a-f]{60}|(Date: )?[A-Z][a-z]{2}, .. [A-Z][a-z]{2} 20[^0].* GMT")

// digest is short for what is long.
func digest(p []byte) string {
	if len(p) <= 400 {
		return strconv.Quote(drawn.ReplaceAllString(string(p), "${1}drawn"))
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
	a.line, a.method, a.old = line, method, c.old
	if a.fields, err = c.lines(); err != nil {
		return a, a.short(err)
	}
	a.again = slices.Contains(a.fields, "Again: yes")
	length, bad := strconv.ParseInt(a.get("Content-Length"), 10, 40) // as the client of net/http has it
	chunked := slices.Contains(a.fields, "Transfer-Encoding: chunked")
	for i, f := range a.fields {
		a.fields[i] = drawn.ReplaceAllString(f, "${1}drawn")
	}
	slices.Sort(a.fields)
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
	s.notes(a)
	return a
}

// notes notes an answer.
func (s *scene) notes(a *answer) {
	if s.name == "net/http" {
		for i := range everywhere {
			everywhere[i].amend(a)
		}
	}
	if a.line != "" {
		s.note("%s", strings.TrimSuffix(a.String(), "\n"))
	}
}

// talk has one connection on which the requests are sent, and then another one, to see whether the connection lasts. If
// pipelined, all are sent together.
func (s *scene) talk(requests string, pipelined bool) {
	s.Helper()
	calls := s.calls.Load()
	c := s.dial()
	all := append(strings.Split(requests, "¶"), again)
	say := make(chan string, len(all)) // a request may be answered before all of it is sent
	if pipelined {
		say <- strings.Join(all, "")
	} else {
		say <- all[0]
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		for text := range say {
			c.send(text)
		}
	}()
	defer func() { <-said }()
	defer c.Close()
	defer close(say)
	for answered := int32(0); ; {
		a, err := c.answer(c.asks(all[answered]))
		if err == io.EOF {
			s.note("closed")
			return
		}
		require.NoError(s, err, s.name)
		switch {
		case a.again:
			s.note("lasts")
			return
		case a.final():
			a.refusal = s.calls.Load()-calls <= answered
			if answered++; !pipelined {
				say <- all[answered]
			}
		}
		s.notes(a)
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
