package gateway

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A message is a request or a response of HTTP/1. Its content is read after its head.
type message struct {
	line    string // of a request: all of it; of a response: its status
	status  int
	header  http.Header
	trailer *http.Header // with values after the content
	content io.Reader
	body    string
	cut     bool // the connection has ended before the message
	last    bool // of the connection
}

func readRequest(in *bufio.Reader) (*message, error) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Host", r.Host)
	m := &message{line: r.Method + " " + r.RequestURI + " " + r.Proto, header: r.Header, trailer: &r.Trailer, content: r.Body}
	m.framed(r.TransferEncoding, r.ContentLength)
	return m, nil
}

// readResponse reads the head of an answer to a request with this method.
func readResponse(in *bufio.Reader, method string) (*message, error) {
	r, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	m := &message{line: fmt.Sprint(r.StatusCode), status: r.StatusCode, header: r.Header, trailer: &r.Trailer, content: r.Body,
		last: r.Close}
	m.framed(r.TransferEncoding, r.ContentLength)
	return m, nil
}

// framed notes how the end of the content is known, if that is not by Content-Length.
func (m *message) framed(coding []string, length int64) {
	if len(coding) > 0 {
		m.header["Transfer-Encoding"] = coding
	} else if length < 0 {
		m.header["Until"] = []string{"the end"}
	}
}

// read reads the content.
func (m *message) read() {
	all, err := io.ReadAll(m.content)
	m.body, m.cut = string(all), err != nil
}

// own are fields that each proxy adds or sets in its own way.
var own = []string{"date", "server", "via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "keep-alive"}

// said returns what a message means, in lines that may be compared. Long ones are shortened.
func (m *message) said() (lines []string) {
	fields := func(mark string, all http.Header) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, value := range all[name] {
				if name := strings.ToLower(name); !slices.Contains(own, name) && name+value != "connectionkeep-alive" {
					lines = append(lines, mark+name+": "+value)
				}
			}
		}
	}
	fields("", m.header)
	fields("trailer ", *m.trailer)
	if m.body != "" {
		lines = append(lines, fmt.Sprintf("body: %q", m.body))
	}
	if m.cut {
		lines = append(lines, "cut")
	}
	for i, line := range lines {
		if len(line) > 200 {
			lines[i] = fmt.Sprintf("%s… %d", line[:100], len(line))
		}
	}
	return lines
}

// A caller is a client on one connection.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func dial(network, at string) (*caller, error) {
	c, err := net.DialTimeout(network, at, patience)
	if err != nil {
		return nil, err
	}
	return &caller{c, bufio.NewReader(c)}, c.SetDeadline(time.Now().Add(patience))
}

// ask sends a request, whose content has a length if there is any, and returns the answer.
func (k *caller) ask(method, target, content string, fields ...string) (*message, error) {
	if content != "" {
		fields = append(fields, fmt.Sprintf("Content-Length: %d", len(content)))
	}
	_ = k.SetDeadline(time.Now().Add(patience)) // if it fails, so do the others
	head := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	_, _ = io.WriteString(k, head+content) // if the proxy has enough of it, the answer says so
	m, err := k.answer(method)
	if err == nil {
		m.read()
	}
	return m, err
}

// answer reads the head of the final answer to a request. The others are passed to inform.
func (k *caller) answer(method string, inform ...func(*message)) (*message, error) {
	for {
		m, err := readResponse(k.in, method)
		if err != nil {
			return nil, err
		}
		if m.status/100 != 1 || m.status == http.StatusSwitchingProtocols {
			return m, nil
		}
		for _, f := range inform {
			f(m)
		}
	}
}
