package httpd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// http2Refuses wants a request that HTTP/1 refuses to be refused by HTTP/2 as well, when a gateway passes it on as it is: the
// same method, target, names and values, but names in lower case. It is not asked about what only HTTP/1 has: lines, versions, blanks
// around values, and how a body in chunks goes on.
func http2Refuses(t *testing.T, says string) {
	t.Helper()
	head, body, whole := strings.Cut(says, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	words := strings.Split(lines[0], " ")
	if !whole || len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") || len(words[2]) != len("HTTP/1.1") {
		return
	}
	fields := [][2]string{{":method", words[0]}, {":scheme", "http"}, {":path", words[1]}}
	for i, line := range lines[1:] {
		name, value, isField := strings.Cut(line, ":")
		switch last := &fields[len(fields)-1]; {
		case i > 0 && line != "" && (line[0] == ' ' || line[0] == '\t'):
			last[1] += "\r\n" + line
		case !isField:
			return
		default:
			fields = append(fields, [2]string{strings.ToLower(name), strings.TrimPrefix(value, " ")})
		}
	}
	var block []byte
	for _, f := range fields {
		block = appendString(appendString(append(block, 0), f[0]), f[1])
	}
	p := newPlayer(t)
	p.unknown = true
	p.dial()
	p.say(string(http2.AppendHeaders(nil, 1, block, body == "")))
	p.flush()
	if len(p.recorder.entries) > 0 {
		require.Fail(t, "HTTP/2 serves it", "%q: %s", says, p.seen())
	}
	_ = p.d.s.Close()
}
