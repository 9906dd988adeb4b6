package gateway

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A message is a request or a response of HTTP/1, as it has arrived.
type message struct {
	line             string
	fields, trailers []string // "name: value", with names in lower case
	framing          string   // how the end of the content is known: "", "length", "chunked" or "the end"
	body             string
	cut              bool // the connection has ended before the message
}

// raw has the bytes of a text in which an end of line is CRLF; ␊ is a bare LF, and ␍ a bare CR.
func raw(text string) string {
	return strings.NewReplacer("\n", "\r\n", "␊", "\n", "␍", "\r").Replace(text)
}

// readHead reads a start line and fields.
func readHead(in *bufio.Reader) (m message, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, fmt.Errorf("%q: %w", line, err)
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		switch {
		case m.line == "":
			m.line = line // an empty one is skipped
		case line == "":
			return m, nil
		default:
			m.fields = append(m.fields, field(line))
		}
	}
}

func field(line string) string {
	name, value, _ := strings.Cut(line, ":")
	return strings.ToLower(name) + ": " + strings.Trim(value, " \t")
}

// has returns the value of a field.
func (m *message) has(name string) (value string, ok bool) {
	for _, f := range m.fields {
		if value, ok = strings.CutPrefix(f, name+": "); ok {
			break
		}
	}
	return value, ok
}

// status returns that of a response.
func (m *message) status() int {
	_, rest, _ := strings.Cut(m.line, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(code) // 0: none
	return n
}

// readBody reads the content of a request, for which method is "", or of the response to a request.
func (m *message) readBody(in *bufio.Reader, method string) {
	coding, chunked := m.has("transfer-encoding")
	length, sized := m.has("content-length")
	status := m.status()
	var body []byte
	var err error
	switch {
	case method == "HEAD" || method != "" && (status < 200 || status == 204 || status == 304):
	case chunked && strings.HasSuffix(strings.ToLower(coding), "chunked"):
		m.framing = "chunked"
		body, m.trailers, err = readChunks(in)
	case sized:
		m.framing = "length"
		n, _ := strconv.Atoi(length)
		body = make([]byte, n)
		n, err = io.ReadFull(in, body)
		body = body[:n]
	case method != "":
		m.framing = "the end"
		body, err = io.ReadAll(in)
	}
	m.body, m.cut = string(body), err != nil
}

func readChunks(in *bufio.Reader) (body []byte, trailers []string, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return body, nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseUint(size, 16, 31)
		if err != nil {
			return body, nil, err
		}
		if n == 0 {
			break
		}
		chunk := make([]byte, n+2)
		got, err := io.ReadFull(in, chunk)
		body = append(body, chunk[:min(got, int(n))]...)
		if err != nil {
			return body, nil, err
		}
	}
	for {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); err != nil || line == "" {
			return body, trailers, err
		}
		trailers = append(trailers, field(line))
	}
}

// own are fields that each proxy adds or sets in its own way.
var own = []string{"date", "server", "via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "keep-alive"}

// said returns what a message means, in lines that may be compared. Long ones are shortened.
func (m *message) said() (lines []string) {
	add := func(line string) {
		if len(line) > 200 {
			line = fmt.Sprintf("%s… %d", line[:100], len(line))
		}
		lines = append(lines, line)
	}
	if m.framing != "" {
		add("until: " + m.framing)
	}
	if m.body != "" {
		add(fmt.Sprintf("body: %q", m.body))
	}
	for _, f := range m.fields {
		if name, _, _ := strings.Cut(f, ":"); !slices.Contains(own, name) && name != "transfer-encoding" && (name != "content-length" || m.framing == "") &&
			f != "connection: keep-alive" {
			add(f)
		}
	}
	for _, f := range m.trailers {
		add("trailer " + f)
	}
	if m.cut {
		add("cut")
	}
	return lines
}
