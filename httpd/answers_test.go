package httpd_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// answer is a response, final or interim, as a strict client understands it.
type answer struct {
	status  int
	fields  []string // name, value, name, value
	body    string
	trailer []string
	closes  bool // it says so
	cut     bool // the end of the connection is not its own
}

// asked is what a client has to know about its request to understand the answer.
type asked struct {
	head bool // the method is HEAD
	old  bool // the version is HTTP/1.0
}

// String is the status, and "!" if the connection ends with it.
func (a answer) String() string {
	switch {
	case a.cut:
		return fmt.Sprintf("%d…", a.status)
	case a.closes:
		return fmt.Sprintf("%d!", a.status)
	}
	return strconv.Itoa(a.status)
}

// get is the value of the field with this name, which may be there once.
func (a answer) get(name string) string { return values(a.fields, name) }

// values are the values of all fields with this name, in a list.
func values(fields []string, name string) string {
	var all []string
	for i := 0; i < len(fields); i += 2 {
		if strings.EqualFold(fields[i], name) {
			all = append(all, fields[i+1])
		}
	}
	return strings.Join(all, ", ")
}

// understand parses what a server has sent. over reports whether the connection has ended after it.
func understand(out string, over bool, questions ...asked) (all []answer, err error) {
	for q := 0; out != ""; {
		question := asked{}
		if q < len(questions) {
			question = questions[q]
		}
		a, rest, err := next(out, over, question)
		if err != nil {
			return all, fmt.Errorf("answer %d: %w: %.300q", len(all), err, out)
		}
		if len(all) > 0 && all[len(all)-1].closes {
			return all, fmt.Errorf("there is more behind the last answer: %.100q", out)
		}
		all = append(all, a)
		if out = rest; a.status >= 200 {
			q++
		}
	}
	return all, nil
}

// next parses the first response.
func next(out string, over bool, q asked) (a answer, rest string, err error) {
	head, rest, found := strings.Cut(out, "\r\n\r\n")
	if !found && strings.HasPrefix(out[:min(len(out), len(shape))], shape[:min(len(out), len(shape))]) {
		return answer{cut: true}, "", nil
	}
	line, fields, _ := strings.Cut(head, "\r\n")
	if a.status, err = statusOf(line); err != nil {
		return a, "", err
	}
	if fields != "" {
		if a.fields, err = fieldsOf(fields); err != nil {
			return a, "", err
		}
	}
	if a.closes, err = a.judge(q); err != nil {
		return a, "", err
	}
	return a.content(rest, over, q)
}

const shape = "HTTP/1.1 "

// statusOf wants "HTTP/1.1 SP 3DIGIT SP [reason]" (RFC 9112 4), and the reason that the server knows.
func statusOf(line string) (int, error) {
	if len(line) < len(shape+"200 ") || line[:9] != shape || line[12] != ' ' {
		return 0, errors.New("a status line of another shape")
	}
	status, err := strconv.Atoi(line[9:12])
	if err != nil || status < 100 || status > 599 || line[13:] != syntax.StatusText(status) {
		return 0, errors.New("a status line that says something else")
	}
	return status, nil
}

// fieldsOf wants "token: value" (RFC 9112 5), without white space around the value.
func fieldsOf(text string) (fields []string, err error) {
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, found := strings.Cut(line, ": ")
		if !found || !isToken(name) || value != strings.TrimSpace(value) {
			return nil, fmt.Errorf("a line that is no field: %q", line)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("a control character in a field: %q", line)
		}
		fields = append(fields, name, value)
	}
	return fields, nil
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// judge checks the fields that the server adds, and reports whether the connection is going to close.
func (a answer) judge(q asked) (closes bool, err error) {
	length, coding, option := a.get("Content-Length"), a.get("Transfer-Encoding"), a.get("Connection")
	if a.status < 200 {
		if len(a.fields) > 0 && a.status == 100 || q.old {
			return false, errors.New("an interim answer with fields, or to HTTP/1.0")
		}
		return false, nil
	}
	if when, err := time.Parse(http.TimeFormat, a.get("Date")); err != nil || when.Before(noon) {
		return false, fmt.Errorf("Date: %q: %w", a.get("Date"), err)
	}
	if a.get("Upgrade") != "" { // RFC 9110 7.8
		var named bool
		if option, named = strings.CutSuffix(option, "upgrade"); !named {
			return false, errors.New("an Upgrade that Connection does not name")
		}
		option = strings.TrimSuffix(option, ", ")
	}
	switch {
	case length != "" && coding != "":
		return false, errors.New("a length and a coding") // RFC 9112 6.2
	case coding != "" && (coding != "chunked" || q.old):
		return false, errors.New("a coding that the client does not know") // RFC 9112 6.1
	case coding+length != "" && a.status == 204, coding != "" && a.status == 304:
		return false, errors.New("a length or a coding where there is no content") // RFC 9110 8.6
	case option != "" && option != "close" && !(option == "keep-alive" && q.old), option == "" && q.old:
		return false, fmt.Errorf("Connection: %q", option)
	}
	return option == "close", nil
}

// content reads the content of the response, and returns the bytes after it.
func (a answer) content(rest string, over bool, q asked) (answer, string, error) {
	length := a.get("Content-Length")
	switch {
	case q.head, a.status < 200, a.status == 204, a.status == 304:
		return a, rest, nil
	case a.get("Transfer-Encoding") != "":
		return a.unchunk(rest)
	case length == "" && !a.closes:
		return a, "", errors.New("nothing says where it ends")
	case length == "":
		a.body, a.cut = rest, !over
		return a, "", nil
	}
	n, err := strconv.ParseUint(length, 10, 62)
	if err != nil || strconv.FormatUint(n, 10) != length {
		return a, "", fmt.Errorf("Content-Length: %q", length)
	}
	if uint64(len(rest)) < n {
		a.body, a.cut = rest, true
		return a, "", nil
	}
	a.body = rest[:n]
	return a, rest[n:], nil
}

// unchunk wants chunks without extensions, of a size in lower case without zeros in front.
func (a answer) unchunk(rest string) (answer, string, error) {
	for {
		line, behind, found := strings.Cut(rest, "\r\n")
		if !found {
			a.cut = true
			return a, "", nil
		}
		size, err := strconv.ParseUint(line, 16, 62)
		if err != nil || strconv.FormatUint(size, 16) != line {
			return a, "", fmt.Errorf("a chunk of size %q", line)
		}
		if size == 0 {
			return a.trailers(behind)
		}
		if uint64(len(behind)) < size+2 {
			a.body, a.cut = a.body+behind[:min(uint64(len(behind)), size)], true
			return a, "", nil
		}
		if behind[size:size+2] != "\r\n" {
			return a, "", errors.New("a chunk without its end")
		}
		a.body, rest = a.body+behind[:size], behind[size+2:]
	}
}

func (a answer) trailers(rest string) (answer, string, error) {
	if strings.HasPrefix(rest, "\r\n") {
		return a, rest[2:], nil
	}
	lines, rest, found := strings.Cut(rest, "\r\n\r\n")
	if !found {
		a.cut = true
		return a, "", nil
	}
	var err error
	a.trailer, err = fieldsOf(lines)
	return a, rest, err
}

// statuses are the statuses of the answers, in order: "100 200 404!".
func statuses(all []answer) string {
	var b bytes.Buffer
	for i, a := range all {
		fmt.Fprint(&b, strings.Repeat(" ", min(i, 1)), a)
	}
	return b.String()
}
